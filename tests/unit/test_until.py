"""Ends of a text that the client sets: while it is generated, afterwards, and the text that may be
sent before."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from codespec.backends.fake import ByteTokenizer
from codespec.suggest.until import Until, UntilRule
from codespec.types import Trace

TOKENIZER = ByteTokenizer()
words = st.text("ab\n", max_size=3)
code = st.text("ab\n ", max_size=30)
untils = st.builds(Until, st.lists(words, max_size=3).map(tuple), st.integers(0, 3))


@given(code, untils, st.integers(0, 3), st.data())
def test_it_ends_with_the_token_that_completes_an_end(text, until, n_healed, data):
    """However many tokens come at once."""
    rule = UntilRule(TOKENIZER, until, n_healed)
    emitted: list[int] = []
    rest = text
    ended = False
    while rest and not ended:
        n = data.draw(st.integers(1, 3))
        emitted += TOKENIZER.encode(rest[:n]).tolist()
        rest = rest[n:]
        ended = rule(emitted)
        seen = bytes(emitted).decode()[n_healed:]
        assert ended == (until.cut(seen) != seen)


@given(code, untils, st.data())
def test_what_is_settled_is_never_taken_back(text, until, data):
    sent = [""]
    n = 0
    # A generation ends where it is cut.
    while n < len(text) and until.cut(text[:n]) == text[:n]:
        n += data.draw(st.integers(1, 3))
        sent.append(until.settled(text[:n]))
    sent.append(until.cut(text[:n]))
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(sent))


def test_text_is_settled_as_soon_as_no_end_can_take_it_back():
    assert Until(("\n\n",)).settled("one\n") == "one"
    assert Until(("\n\n",)).settled("one\ntwo") == "one\ntwo"
    assert Until((), 4).settled("a\n    b\n  ") == "a\n    b"
    assert Until((), 4).settled("a\n    b\n    c") == "a\n    b\n    c"


def test_the_first_place_counts_not_the_first_text():
    assert Until(("three", "two")).cut("one two three") == "one "
    assert Until().cut("one") == "one"
    assert Until(("",)).cut("one") == "one"


def test_a_line_with_less_indentation_ends_it():
    until = Until((), 4)
    assert until.cut("a\n\n    b\n   c\n") == "a\n\n    b"
    assert until.cut("a\n\tb\n\n") == "a\n\tb\n\n"
    assert until.cut("ä\n    ö\nü") == "ä\n    ö"
    assert until.cut("  a\n    b\n") == "  a\n    b\n"


def test_it_ends_with_the_line_once_it_has_taken_long():
    now = [0.0]
    rule = UntilRule(TOKENIZER, Until(max_line_ms=100), 0, lambda: now[0])

    def ends(text: str) -> bool:
        return rule(TOKENIZER.encode(text).tolist())

    assert not ends("one")
    assert not ends("one\n")  # soon enough
    now[0] = 0.2
    assert not ends("one\ntwo")
    assert ends("one\ntwo\n")


def test_the_trace_says_whether_a_limit_ended_it():
    until = Until(("stop",), 4, 100)
    for text, is_limited in (("a stop", False), ("a\nb", True), ("a\n", True), ("a", False)):
        trace = Trace()
        clock = itertools.count().__next__
        rule = UntilRule(TOKENIZER, until, 0, clock, trace)
        tokens = TOKENIZER.encode(text).tolist()
        ended = any(rule(tokens[:n]) for n in range(1, len(tokens) + 1))
        assert (ended, trace.is_limited) == (text != "a", is_limited)


def test_the_stop_text_that_ends_a_text_is_known():
    until = Until(("three", "", "two", "tw"))
    assert until.first_stop("one two three") == (4, 2)
    assert until.first_stop("one tw") == (4, 3)
    assert until.first_stop("one") is None
