from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codespec.backends.fake import ByteTokenizer
from codespec.engine.until import StopTexts, before_first

TOKENIZER = ByteTokenizer()
words = st.text("ab\n", max_size=3)


@given(st.text("ab\n", max_size=30), st.lists(words, max_size=3), st.integers(0, 3), st.data())
def test_it_ends_with_the_token_that_completes_a_stop(text, stops, n_healed, data):
    """However many tokens come at once."""
    rule = StopTexts(TOKENIZER, stops, n_healed)
    emitted: list[int] = []
    rest = text
    ended = False
    while rest and not ended:
        n = data.draw(st.integers(1, 3))
        emitted += TOKENIZER.encode(rest[:n]).tolist()
        rest = rest[n:]
        ended = rule(emitted)
        seen = bytes(emitted).decode()[n_healed:]
        assert ended == any(stop in seen for stop in stops if stop)
        assert ended == (before_first(seen, stops) != seen or any(seen == s for s in stops if s))


def test_the_first_place_counts_not_the_first_text():
    assert before_first("one two three", ["three", "two"]) == "one "
    assert before_first("one", []) == "one"
    assert before_first("one", [""]) == "one"
