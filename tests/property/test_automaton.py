"""The suffix automaton against a naive search of the whole text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from codespec.native import Proposal, SuffixAutomaton

Ints = npt.NDArray[np.int32]


def ids(values: list[int]) -> Ints:
    return np.array(values, np.int32)


def ends(text: list[int], string: list[int]) -> list[int]:
    """Indices after each occurrence of `string`."""
    n = len(string)
    return [i + n for i in range(len(text) - n + 1) if text[i : i + n] == string]


def usable(context: list[int], depth: int) -> list[int]:
    """The context after the last break, at most the last `depth` tokens."""
    start = max((i + 1 for i, t in enumerate(context) if t < 0), default=0)
    return context[max(start, len(context) - depth) :]


def oracle_match(text: list[int], context: list[int], depth: int) -> int:
    context = usable(context, depth)
    for n in range(len(context), 0, -1):
        if ends(text, context[-n:]):
            return n
    return 0


def oracle_draft(
    text: list[int], context: list[int], depth: int, n_max: int, min_length: int = 1
) -> tuple[list[tuple[int, ...]], int, int]:
    """Rows (token, count, total, match length, runner-up, its count), n_matches, position."""
    rows: list[tuple[int, ...]] = []
    n_matches, position = 0, -1
    context = list(context)
    while len(rows) < n_max:
        tail = usable(context, depth)
        for n in range(len(tail), min_length - 1, -1):
            found = ends(text, tail[-n:])
            places = [i for i in found if i < len(text) and text[i] >= 0]
            if places:
                break
        else:
            break
        votes = {t: [i for i in places if text[i] == t] for t in {text[i] for i in places}}
        ranked = sorted(votes, key=lambda t: (len(votes[t]), votes[t][-1]), reverse=True)
        best, second = ranked[0], ranked[1] if len(ranked) > 1 else -1
        if not rows:
            n_matches, position = len(found), votes[best][-1]
        rows.append((best, len(votes[best]), len(places), n, second, len(votes.get(second, ()))))
        context.append(best)
    return rows, n_matches, position


def unpack(p: Proposal) -> tuple[list[tuple[int, ...]], int, int]:
    columns = (p.tokens, p.counts, p.totals, p.match_lengths, p.alt_tokens, p.alt_counts)
    rows = [tuple(int(v) for v in row) for row in zip(*columns, strict=True)]
    assert len(p) == len(rows)
    assert p.match_length == (rows[0][3] if rows else 0)
    return rows, p.n_matches, p.position


def check(automaton: SuffixAutomaton, text: list[int], contexts: list[list[int]]) -> None:
    """Everything the automaton says equals what a search of `text` says."""
    depth = automaton.max_depth
    assert automaton.text.tolist() == text
    assert unpack(automaton.draft_tail(5)) == oracle_draft(text, text, depth, 5)
    assert unpack(automaton.draft_tail(3, 2)) == oracle_draft(text, text, depth, 3, 2)
    for context in [*contexts, text]:
        assert automaton.match(ids(context)) == oracle_match(text, context, depth)
        assert unpack(automaton.draft(ids(context), 5)) == oracle_draft(text, context, depth, 5)
        string = usable(context, depth)
        if string:
            assert automaton.count(ids(string)) == len(ends(text, string))


texts = st.integers(1, 4).flatmap(lambda k: st.lists(st.integers(-1, k - 1), max_size=60))
units = st.lists(st.integers(0, 2), min_size=1, max_size=20)
runs = units.map(lambda unit: (unit * 60)[:60])


@given(texts | runs, st.lists(texts, max_size=4), st.sampled_from([1, 2, 3, 7, 64]))
@settings(max_examples=300)
def test_lookup_equals_search(text: list[int], contexts: list[list[int]], depth: int) -> None:
    automaton = SuffixAutomaton(depth)
    automaton.extend(ids(text))
    check(automaton, text, contexts)


class Editing(RuleBasedStateMachine):
    """Random edits. After each, the automaton equals one that never knew the removed text."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 3
        self.automaton = SuffixAutomaton(self.depth)
        self.text: list[int] = []

    @rule(tokens=texts)
    def extend(self, tokens: list[int]) -> None:
        self.automaton.extend(ids(tokens))
        self.text += tokens

    @rule()
    def extend_break(self) -> None:
        self.automaton.extend_break()
        self.text.append(-1)

    @precondition(lambda self: self.text)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        begin = data.draw(st.integers(0, len(self.text) - 1))
        end = data.draw(st.integers(begin, min(begin + 30, len(self.text))))
        self.extend(self.text[begin:end])

    @precondition(lambda self: self.text)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        n = data.draw(st.integers(0, len(self.text)))
        self.automaton.truncate(n)
        del self.text[n:]

    @rule(context=texts)
    def query(self, context: list[int]) -> None:
        check(self.automaton, self.text, [context])

    @invariant()
    def equals_a_fresh_one(self) -> None:
        fresh = SuffixAutomaton(self.depth)
        fresh.extend(ids(self.text))
        assert len(self.automaton) == len(fresh) == len(self.text)
        assert self.automaton.n_states == fresh.n_states
        for cut in range(0, len(self.text), 7):
            context = ids(self.text[: cut + 1])
            assert self.automaton.match(context) == fresh.match(context)
            assert unpack(self.automaton.draft(context, 4)) == unpack(fresh.draft(context, 4))


class DeepEditing(Editing):
    def __init__(self) -> None:
        super().__init__()
        self.depth = 64
        self.automaton = SuffixAutomaton(self.depth)


TestEditing = Editing.TestCase
TestEditing.settings = settings(max_examples=60, stateful_step_count=25)
TestDeepEditing = DeepEditing.TestCase
TestDeepEditing.settings = settings(max_examples=60, stateful_step_count=25)


@pytest.mark.parametrize("depth", [1, 2, 64])
def test_long_repeats_beyond_the_depth(depth: int) -> None:
    text = [7] * 150 + [-1] + [7] * 150 + [8] + [7] * 100
    automaton = SuffixAutomaton(depth)
    automaton.extend(ids(text))
    for n in [len(text), 290, 152, 151, 150, 65, 64, 3, 1, 0]:
        automaton.truncate(n)
        check(automaton, text[:n], [[7] * 200, [8], [7, 8], [8, 7]])


def test_a_second_copy_of_a_text_adds_no_states() -> None:
    rng = np.random.default_rng(0)
    text = rng.integers(0, 50, 500).astype(np.int32)
    automaton = SuffixAutomaton()
    automaton.extend(text)
    n_states = automaton.n_states
    automaton.extend_break()
    automaton.extend(text)
    # Those that now occur in two places need no state of their own; a few are split.
    assert automaton.n_states < 1.1 * n_states
    check(automaton, [*text.tolist(), -1, *text.tolist()], [text[100:180].tolist()])
    automaton.truncate(500)
    assert automaton.n_states == n_states


def test_text_that_comes_and_goes_leaves_no_memory_behind() -> None:
    automaton = SuffixAutomaton()
    automaton.extend(ids([7]))
    # All that begins anew goes on in another way: the states of that beginning have many edges.
    text = [t for i in range(40) for t in (8, 9, 10 + i, 7)]
    figures: list[int] = []
    for _ in range(50):
        automaton.extend(ids(text))
        automaton.truncate(1)
        figures.append(automaton.n_bytes)
    assert len(set(figures)) == 1
    check(automaton, [7], [[7], [8], [7, 8]])


def test_large_alphabet_and_every_edge_table_size() -> None:
    """States with up to thousands of transitions, grown and shrunk again."""
    rng = np.random.default_rng(1)
    big = np.int32(2**31 - 1)
    text: list[int] = []
    for t in rng.permutation(3000):
        text += [5, int(big) - int(t)]
    automaton = SuffixAutomaton()
    automaton.extend(ids(text))
    context = ids([5])
    for n in [6000, 5999, 3001, 100, 33, 20, 9, 2, 1]:
        automaton.truncate(n)
        got = automaton.draft(context, 1)
        followers = [t for t in text[:n] if t != 5]
        if not followers:
            assert len(got) == 0
            continue
        assert got.totals.tolist() == [len(followers)]
        assert got.tokens.tolist() == followers[-1:]
        assert all(automaton.count(ids([5, t])) == 1 for t in followers)
    automaton.extend(ids(text[1:]))
    assert automaton.draft(context, 1).totals.tolist() == [3000]
