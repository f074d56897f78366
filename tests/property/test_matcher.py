"""`Matcher` against asking each automaton, while contexts and texts change in any way."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.native import Matcher, SuffixAutomaton

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
    max_depth=st.integers(1, 5),
    steps=st.lists(STEP, max_size=12),
    allowed=st.one_of(st.none(), st.sets(TOKEN)),
)
@settings(deadline=None)
def test_a_matcher_drafts_what_the_automaton_with_the_longest_match_drafts(
    texts: list[list[int]], max_depth: int, steps: list[tuple[str, list[int]]], allowed: set[int]
):
    automata = [SuffixAutomaton(max_depth) for _ in texts]
    for automaton, text in zip(automata, texts, strict=True):
        automaton.extend(ids(text))
    matcher = Matcher(automata)
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
        found = matcher.draft(ids(context), 6, allowed=may)
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


def test_a_matcher_without_automata_drafts_nothing():
    assert len(Matcher([]).draft(ids([1]), 4)) == 0
