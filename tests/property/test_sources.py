"""`Sources` against asking each automaton, while contexts and texts change in any way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.native import Planner, Segment, Sources, SuffixAutomaton, build_segment
from codespec.types import Source

TOKEN = st.integers(0, 3)
TOKENS = st.lists(TOKEN, max_size=12)
STEP = st.one_of(
    st.tuples(st.just("grow"), TOKENS),
    st.tuples(st.just("replace"), TOKENS),
    st.tuples(st.just("write"), TOKENS),
    st.tuples(st.just("assign"), TOKENS),
)


def ids(tokens: list[int]) -> np.ndarray:
    return np.array(tokens, np.int32)


@given(
    texts=st.lists(TOKENS, min_size=1, max_size=3),
    max_depth=st.integers(1, 20),
    steps=st.lists(STEP, max_size=12),
    allowed=st.one_of(st.none(), st.sets(TOKEN)),
)
@settings(deadline=None)
def test_several_automata_draft_what_the_automaton_with_the_longest_match_drafts(
    texts: list[list[int]],
    max_depth: int,
    steps: list[tuple[str, list[int]]],
    allowed: set[int] | None,
):
    automata = [SuffixAutomaton(max_depth) for _ in texts]
    for automaton, text in zip(automata, texts, strict=True):
        automaton.extend(ids(text))
    sources = Sources(ids([]))
    sources.add_automata(6, automata)
    may = None if allowed is None else ids(sorted(allowed))
    context: list[int] = []
    for what, tokens in steps:
        if what == "grow":
            context = context + tokens
        elif what == "replace":
            context = tokens
        elif what == "write":
            automata[0].extend(ids(tokens))
        else:
            automata[-1].assign(ids(tokens))
        each = [a.draft(ids(context), 6, allowed=may) for a in automata]
        best = max(each, key=lambda p: p.match_length)  # the first of equals
        found = sources.draft(0, ids(context), 6, may)
        assert found.columns.tolist() == best.columns.tolist()
        assert (found.position, found.n_matches) == (best.position, best.n_matches)


@given(texts=st.lists(st.lists(st.integers(-1, 3), max_size=12), max_size=8))
def test_assigning_makes_the_same_automaton_as_reading(texts: list[list[int]]):
    followed = SuffixAutomaton()
    for text in texts:
        followed.assign(ids(text))
        read = SuffixAutomaton()
        read.extend(ids(text))
        assert followed.text.tolist() == text
        assert followed.n_states == read.n_states
        for start in range(len(text)):
            context = ids(text[start : start + 4])
            both = followed.draft(context, 5), read.draft(context, 5)
            assert both[0].columns.tolist() == both[1].columns.tolist()


def test_no_automata_draft_nothing():
    sources = Sources(ids([]))
    sources.add_automata(6, [])
    assert len(sources.draft(0, ids([1]), 4)) == 0
    assert sources.ask(ids([1]), ids([]), 4) == 0


ASK = st.one_of(
    st.tuples(st.just("tail"), TOKENS),
    st.tuples(st.just("grow"), TOKENS),
    st.tuples(st.just("one"), TOKENS),
    st.tuples(st.just("before"), TOKENS),
    st.tuples(st.just("after"), TOKENS),
)


def segment_of(path: Path, text: list[int]) -> Segment:
    build_segment(path, ids(text), np.zeros(1, np.int64))
    return Segment.open(path)


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> list[Segment]:
    folder = tmp_path_factory.mktemp("segments")
    texts = [[0], [0, 1, 0, 1, 2, 3], [3, 1, 2] * 6]
    return [segment_of(folder / f"{i}", text) for i, text in enumerate(texts)]


@given(
    base=TOKENS,
    which=st.integers(0, 2),
    texts=st.lists(TOKENS, min_size=1, max_size=2),
    steps=st.lists(ASK, max_size=10),
    max_leaves=st.integers(1, 3),
)
@settings(deadline=None)
def test_asking_all_at_once_is_asking_each(
    segments: list[Segment],
    base: list[int],
    which: int,
    texts: list[list[int]],
    steps: list[tuple[str, list[int]]],
    max_leaves: int,
):
    """Whatever was asked or changed before: what is planned from the offers is what is planned from
    each source's own draft, asked anew."""
    before, after = SuffixAutomaton(), [SuffixAutomaton() for _ in texts]
    for automaton, text in zip(after, texts, strict=True):
        automaton.extend(ids(text))

    def new_sources() -> Sources:
        sources = Sources(ids(base))
        sources.add_before(0, before)
        sources.add_automata(1, after, is_after=True)
        sources.add_segments(2, [(segments[which], None)])
        return sources

    def plan(sources: Sources):
        planner = Planner(np.zeros(4, np.uint8), 8)
        planner.begin(ids(base), ids(texts[0]))
        found = planner.plan(sources, 8, max_leaves, np.ones(9))
        return None if found is None else [column.tolist() for column in found]

    asked = new_sources()
    tail: list[int] = []
    for what, tokens in steps:
        if what == "one":
            asked.draft(0, ids(tokens), 3)
        elif what == "before":
            before.assign(ids(tokens))
        elif what == "after":
            after[0].assign(ids(tokens))
        else:
            tail = tokens if what == "tail" else tail + tokens
            asked.clear()
            n_offers = asked.ask(ids(tail), ids([]), 8)
            together = plan(asked)
            anew = new_sources()
            found = [anew.draft(i, ids(tail), 8) for i in range(3)]
            all_found = {i: p.columns.tolist() for i, p in new_sources().draft_all(ids(tail), 8)}
            assert all_found == {i: p.columns.tolist() for i, p in enumerate(found) if len(p)}
            for i, proposal in enumerate(found):
                if len(proposal):
                    anew.offer(i, proposal.position, proposal.columns, ids([]))
            assert n_offers == sum(len(proposal) > 0 for proposal in found)
            assert together == plan(anew)


def test_a_damaged_segment_is_asked_no_more(tmp_path: Path):
    texts = [[1, 2, 3] * 2000, [1, 2, 4] * 2000]
    parts = []
    for i, text in enumerate(texts):
        path = tmp_path / f"{i}"
        parts.append((segment_of(path, text), None))
        if not i:  # after it was opened: in the blocks that only lookups read
            with path.open("r+b") as f:
                f.seek(4096)
                f.write(b"\xff" * (path.stat().st_size - 4096))
    sources = Sources(ids([1]))
    sources.add_segments(2, parts)
    for _ in range(2):
        assert sources.draft(0, ids([1, 2]), 1).tokens.tolist() == [4]


def test_what_sources_refuse(tmp_path: Path):
    sources = Sources(ids([]))
    segment = segment_of(tmp_path / "s", [1, 2])
    with pytest.raises(ValueError, match="source"):
        sources.add_automata(Source.MOST, [])
    with pytest.raises(ValueError, match="one element per document"):
        sources.add_segments(2, [(segment, np.zeros(3, np.bool_))])
    wrong: Any = np.zeros(1, np.int64)
    with pytest.raises(TypeError):
        sources.add_segments(2, [(segment, wrong)])
    for call in (
        lambda: sources.draft(0, ids([1]), 4),
        lambda: sources.offer(0, 0, np.zeros((6, 1), np.int32), ids([])),
    ):
        with pytest.raises(IndexError):
            call()
