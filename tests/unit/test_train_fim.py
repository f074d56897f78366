"""The FIM transform: layouts are the serving contract, and no text is lost or invented."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from codespec.train import fim, tokenizer
from codespec.train.fim import Fim
from tests import training

END, PREFIX, SUFFIX, MIDDLE = range(4)


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return tokenizer.train([training.source_text(i) for i in range(20)], training.N_VOCAB)


def test_layouts(words: Tokenizer) -> None:
    transform = Fim(words)
    assert transform.layout([10], [20], [30, 31], psm=True) == [
        PREFIX, 10, SUFFIX, 20, MIDDLE, 30, 31, END,
    ]  # fmt: skip
    assert transform.layout([10], [20], [30, 31], psm=False) == [
        PREFIX, SUFFIX, 20, MIDDLE, 10, 30, 31, END,
    ]  # fmt: skip


def split_parts(row: list[int]) -> tuple[list[int], list[int], bool]:
    """(text before the end of the middle, suffix, psm) of a sequence."""
    assert row[0] == PREFIX
    assert row[-1] == END
    assert row.count(MIDDLE) == row.count(SUFFIX) == row.count(PREFIX) == row.count(END) == 1
    at_suffix, at_middle = row.index(SUFFIX), row.index(MIDDLE)
    psm = at_suffix > 1
    return row[1:at_suffix] + row[at_middle + 1 : -1], row[at_suffix + 1 : at_middle], psm


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), which=st.integers(0, 19))
def test_the_parts_of_a_short_text_join_to_the_text(
    seed: int, which: int, words: Tokenizer
) -> None:
    text = training.source_text(which, n_functions=3)
    row = Fim(words).sequence(text, random.Random(seed), 4096)
    before, suffix, _ = split_parts(row)
    assert words.decode(before) + words.decode(suffix) == text


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_long_text_is_cut_far_from_the_cursor(seed: int, words: Tokenizer) -> None:
    text = training.source_text(5, n_functions=60)
    row = Fim(words).sequence(text, random.Random(seed), 400)
    if row:  # empty: the middle alone left too little room
        before, suffix, _ = split_parts(row)
        assert len(row) <= 400
        assert words.decode(before) + words.decode(suffix) in text


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet="ab \n\té", min_size=1, max_size=60), seed=st.integers(0, 10**6))
def test_a_span_lies_in_the_text(text: str, seed: int) -> None:
    start, end = fim.choose_span(text, random.Random(seed))
    assert 0 <= start <= end <= len(text)


def test_both_orders_occur_and_middles_start_inside_tokens(words: Tokenizer) -> None:
    text = training.source_text(6)
    rows = [Fim(words).sequence(text, random.Random(seed), 4096) for seed in range(60)]
    orders = [split_parts(row)[2] for row in rows]
    assert 15 < sum(orders) < 45
    retokenised = [Fim(words).encode(words.decode(split_parts(row)[0])) for row in rows]
    assert any(split_parts(row)[0] != ids for row, ids in zip(rows, retokenised, strict=True))


SNIPPET = """\
class A:
    def f(self):
        x = 1
        return x

    def g(self):
        return 2
"""


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [
        ("def f(se|lf):", "lf):\n        x = 1\n        return x"),
        ("x| = 1", " = 1\n        return x"),
        ("class| A", SNIPPET.removeprefix("class").rstrip()),
    ],
)
def test_a_block_ends_where_its_indentation_does(
    cursor: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = SNIPPET.index(cursor.replace("|", "")) + cursor.index("|")
    monkeypatch.setattr(fim, "cut_in_line", lambda _text, _rng: at)
    start, end = fim.indented_block(SNIPPET, random.Random(0))
    assert SNIPPET[start:end] == expected


def test_the_rest_of_a_line_ends_before_its_newline_and_is_never_empty() -> None:
    for seed in range(200):
        start, end = fim.rest_of_line(SNIPPET, random.Random(seed))
        assert SNIPPET[end : end + 1] in ("\n", "")
        at_end_of_line = SNIPPET[start : start + 1] in ("\n", "")
        assert at_end_of_line or "\n" not in SNIPPET[start:end]
        assert end > start or start == len(SNIPPET)


def test_cuts_fall_where_code_is_typed() -> None:
    """Never inside indentation, often where the code of a line begins."""
    at_start = 0
    for seed in range(300):
        cut = fim.cut_in_line(SNIPPET, random.Random(seed))
        first, end = fim.line_bounds(SNIPPET, cut)
        before = SNIPPET[first:cut]
        assert cut == end or not SNIPPET[cut].isspace() or before.strip()
        at_start += not before.strip() and cut < end
    assert 60 < at_start < 150
