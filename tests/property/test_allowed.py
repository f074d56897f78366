"""Drafts that must begin with one of some ids, against a plain search of the text."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.native import Segment, SuffixAutomaton, build_segment

# So few occurrences that a segment asks all of them.
TEXTS = st.lists(st.integers(0, 3), min_size=1, max_size=40)
ALLOWED = st.sets(st.integers(0, 5)).map(sorted)


def oracle(text: list[int], context: list[int], allowed: list[int]) -> tuple[int, Counter[int]]:
    """(length of the longest suffix of the context that an allowed token follows, votes)."""
    for n in range(len(context), 0, -1):
        followers = (text[i + n] for i in range(len(text) - n) if text[i : i + n] == context[-n:])
        votes = Counter(t for t in followers if t in allowed)
        if votes:
            return n, votes
    return 0, Counter()


@settings(max_examples=300)
@given(text=TEXTS, context=TEXTS, allowed=ALLOWED)
def test_the_first_token_is_the_most_frequent_of_those_allowed(
    text: list[int], context: list[int], allowed: list[int]
) -> None:
    tokens, where = np.array(text, np.int32), np.array(context, np.int32)
    ids = np.array(allowed, np.int32)
    length, votes = oracle(text, context, allowed)
    automaton = SuffixAutomaton()
    automaton.extend(tokens)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        build_segment(path, tokens, np.zeros(1, np.int64))
        segment = Segment.open(path)
        drafts = [automaton.draft(where, 3, allowed=ids), segment.draft(where, 3, allowed=ids)]
    for draft in drafts:
        assert draft.match_length == length
        if votes:
            assert votes[int(draft.tokens[0])] == max(votes.values()) == int(draft.counts[0])
            assert int(draft.totals[0]) == sum(votes.values())


@given(text=TEXTS, allowed=ALLOWED)
def test_the_tail_is_continued_alike(text: list[int], allowed: list[int]) -> None:
    automaton = SuffixAutomaton()
    automaton.extend(np.array(text, np.int32))
    length, votes = oracle(text, text[1:], allowed)
    draft = automaton.draft_tail(1, allowed=np.array(allowed, np.int32))
    assert draft.match_length == length
    assert len(draft) == bool(votes)
