"""Lookups around a cursor inside a token, on a small vocabulary and with hostile texts. With a real
tokenizer and real files: tests/model/test_boundaries.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.documents.sources import BUFFERS, PREFIX
from codespec.native import (
    Boundary,
    Drafting,
    Planner,
    Sources,
    SuffixAutomaton,
    Vocabulary,
)
from codespec.types import NO_TOKENS, Source, Tokens
from tests.property.test_stretch import N_VOCAB, Model

PIECES = [
    b"",
    b"a",
    b"b",
    b"ab",
    b"aba",
    b" ",
    b" a",
    b"(",
    b"(a",
    b"\n",
    b"\n ",
    b"1",
    "ä".encode(),
]
PIECES += [b"\xc3", b"\xa4"]
VOCABULARY = Vocabulary(PIECES)
LONGEST_FIRST = sorted(range(1, len(PIECES)), key=lambda t: -len(PIECES[t]))


def ids(tokens: list[int]) -> Tokens:
    return np.array(tokens, np.int32)


def spell(tokens: list[int]) -> bytes:
    return b"".join(PIECES[t] for t in tokens if 0 <= t < len(PIECES))


def encode(text: bytes) -> Tokens:
    """Longest piece first; what no piece begins is left out."""
    tokens: list[int] = []
    at = 0
    while at < len(text):
        found = next((t for t in LONGEST_FIRST if text.startswith(PIECES[t], at)), 0)
        tokens += [found] * (found > 0)
        at += max(1, len(PIECES[found]))
    return ids(tokens)


TOKENS = st.lists(st.integers(0, len(PIECES) - 1), max_size=12)
WILD = st.lists(st.one_of(st.integers(0, len(PIECES) - 1), st.integers(-2, 2**31 - 1)), max_size=12)
HEALED = st.lists(st.sampled_from(PIECES), max_size=2).map(b"".join)


def asked(left, healed, emitted, elsewhere, n_max) -> tuple[Boundary, Sources]:
    boundary = Boundary(ids(left), healed, VOCABULARY, encode)
    sources = Sources(ids(left)[: boundary.n_base])
    sources.add_before(PREFIX, SuffixAutomaton())
    other = SuffixAutomaton()
    other.extend(ids(elsewhere))
    sources.add_automata(BUFFERS, [other])
    n_offers = boundary.ask(ids(emitted), NO_TOKENS, n_max, sources)
    assert n_offers == len(sources.offers)
    return boundary, sources


@given(left=TOKENS, healed=HEALED, emitted=TOKENS, elsewhere=TOKENS, n_max=st.integers(1, 9))
@settings(max_examples=500)
def test_what_is_offered_begins_with_what_was_held_back(left, healed, emitted, elsewhere, n_max):
    boundary, sources = asked(left, healed, emitted, elsewhere, n_max)
    assert 0 <= boundary.n_base <= len(left)
    missing = healed[len(spell(emitted)) :]
    assert boundary.is_within(ids(emitted)) or not missing
    for _, tokens in sources.offers:
        said = spell(tokens.tolist())
        assert 0 < len(tokens) <= n_max
        assert said.startswith(missing) or (len(tokens) == n_max and missing.startswith(said))


@given(left=WILD, healed=st.binary(max_size=4), emitted=WILD, elsewhere=WILD)
@settings(max_examples=300)
def test_ids_that_are_none_and_bytes_that_are_no_text(left, healed, emitted, elsewhere):
    elsewhere = [t for t in elsewhere if t >= 0]
    boundary, _ = asked(left, healed, emitted, elsewhere, 4)
    assert 0 <= boundary.n_base <= len(left)


@given(left=TOKENS, emitted=TOKENS, wanted=st.binary(min_size=1, max_size=3))
def test_a_vocabulary_by_its_definition(left, emitted, wanted):
    naive = [
        t for t, p in enumerate(PIECES) if p and (p.startswith(wanted) or wanted.startswith(p))
    ]
    for _ in range(2):  # the second time it is known
        assert VOCABULARY.compatible(wanted).tolist() == naive
    assert sorted(VOCABULARY.containing(wanted).tolist()) == [
        t for t, p in enumerate(PIECES) if wanted in p
    ]


def failing(text: bytes) -> Tokens:
    raise OSError("no tokenizer")


def test_a_tokenizer_that_fails_is_heard_of_and_harms_no_stretch():
    vocabulary = Vocabulary([bytes([97 + t]) for t in range(N_VOCAB)])
    boundary = Boundary(ids([1, 2]), b"", vocabulary, failing)
    sources = Sources(ids([]))
    with pytest.raises(OSError, match="no tokenizer"):
        boundary.ask(ids([3]), NO_TOKENS, 4, sources)
    planner = Planner(np.zeros(N_VOCAB, np.uint8), Source.MOST)
    who = Drafting(sources, boundary, planner, np.ones((2, 5)))
    done = Model([1]).stretch(who, [3], 2, n_tokens=6, n_draft=4)
    assert done.is_damaged
    assert len(done.tokens) == 6
    plain = Model([1]).stretch(None, [3], 2, n_tokens=6, n_draft=0)
    assert done.tokens == plain.tokens


def test_what_is_refused():
    with pytest.raises(ValueError, match="wanted"):
        VOCABULARY.compatible(b"")
    with pytest.raises(TypeError):
        Boundary(ids([1]), b"", None, encode)  # pyright: ignore[reportArgumentType]
    args = Planner(np.zeros(2, np.uint8), 1), np.ones((2, 2))
    with pytest.raises(TypeError, match="no boundary"):
        Drafting(Sources(ids([])), 3, *args)  # pyright: ignore[reportArgumentType]
