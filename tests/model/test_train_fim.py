"""The FIM transform: layouts are the serving contract, and no text is lost or invented."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.context.fim import assemble
from codespec.languages.registry import parsed_languages
from codespec.train import bpe, fim_cuts
from codespec.train.fim_cuts import Fim
from codespec.training import line_cuts
from codespec.types import FimTokens
from tests import training

END, PREFIX, SUFFIX, MIDDLE = range(4)


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return bpe.train([training.source_text(i) for i in range(20)], training.N_VOCAB)


def test_layouts(words: Tokenizer) -> None:
    transform = Fim(words)
    assert transform.prompt([10], [20], psm=True) == [PREFIX, 10, SUFFIX, 20, MIDDLE]
    assert transform.prompt([10], [20], psm=False) == [PREFIX, SUFFIX, 20, MIDDLE, 10]
    assert transform.prompt([10], [20], psm=True, begun=[11]) == [
        PREFIX, 10, SUFFIX, 20, MIDDLE, 11,
    ]  # fmt: skip
    assert transform.prompt([10], [20], psm=False, begun=[11]) == [
        PREFIX, SUFFIX, 20, MIDDLE, 10, 11,
    ]  # fmt: skip


@pytest.mark.parametrize("order", ["psm", "spm"])
def test_what_is_trained_is_what_is_served(words: Tokenizer, order: Literal["psm", "spm"]) -> None:
    """The prompt builder's tokens, with the text before the cursor in its line where it puts it."""
    markers = FimTokens(PREFIX, SUFFIX, MIDDLE, order=order)
    info = dataclasses.replace(
        FakeTarget(hashed_logits(training.N_VOCAB), training.N_VOCAB).info, fim=markers
    )
    left, right = [10, 11, 12], [20]
    served, _ = assemble(info, np.array(left, np.int32), np.array(right, np.int32), n_in_line=1)
    trained = Fim(words).prompt(left[:2], right, psm=order == "psm", begun=left[2:])
    assert served.tolist() == trained


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


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(alphabet="ab(){}=.,'#:; \n\té🐍", min_size=1, max_size=60),
    seed=st.integers(0, 10**6),
    language=st.sampled_from(["", *parsed_languages()]),
)
def test_a_cut_lies_in_the_text_and_depends_on_the_seed_alone(
    text: str, seed: int, language: str
) -> None:
    cut = fim_cuts.choose_cut(text, random.Random(seed), language)
    assert 0 <= cut.start <= cut.end <= len(text)
    assert text[: cut.start] + text[cut.start : cut.end] + text[cut.end :] == text
    assert cut == fim_cuts.choose_cut(text, random.Random(seed), language)


def test_kinds_of_cuts_occur_in_their_shares() -> None:
    n, finished = 4_000, 0.3
    for of_all, cuts in ((1 - finished, fim_cuts.CUTS), (finished, fim_cuts.CUTS_OF_FINISHED)):
        assert sum(share for share, _, _ in cuts) == pytest.approx(1.0)
        rng = random.Random(0)
        kinds = (fim_cuts.choose_cut(SNIPPET, rng, "python", finished).kind for _ in range(n))
        drawn = Counter(kinds)
        for share, kind, _ in cuts:
            assert drawn[kind] / n == pytest.approx(of_all * share, abs=0.03)


UNITS = {
    "python": ("def f(self, first=1):\n    return [g(first), (2)]\n", "[g(first), (2)]"),
    "javascript": ("function f(first) {\n  return g(first, {a: 1});\n}\n", "{a: 1}"),
    "typescript": ("const f = (first: number): A => g(first, 'é');\n", "g(first, 'é')"),
    "go": ("func f(first int) int {\n\treturn g(first + 1)\n}\n", "first + 1"),
    "rust": ("fn f(first: &str) -> u8 {\n    g(first.len() as u8)\n}\n", "first.len() as u8"),
    "c": ("int f(int first) {\n  return g(first, 1 << 2);\n}\n", "1 << 2"),
    "cpp": ("auto f(int first) {\n  return std::move(first);\n}\n", "std::move(first)"),
    "java": ("class A {\n  int f(int first) { return g(first, 'x'); }\n}\n", "g(first, 'x')"),
}


@pytest.mark.parametrize("language", UNITS)
def test_units_are_what_the_grammar_says(language: str) -> None:
    text, unit = UNITS[language]
    at = text.index(unit)
    found = fim_cuts.Units(text, language).around(at, in_line=False)
    assert unit in [text[start:end] for start, end in found]
    assert all(start <= at < end for start, end in found)
    sizes = [end - start for start, end in found]
    assert sizes == sorted(sizes)
    for start, end in fim_cuts.Units(text, language).around(at, in_line=True):
        rest = text[end:].partition("\n")[0]
        assert rest.strip()
        assert "\n" not in text[start:end]


def test_middles_of_units_end_where_a_unit_does() -> None:
    text = training.source_text(3)
    ends = {
        end
        for at in range(len(text))
        for _, end in fim_cuts.Units(text, "python").around(at, in_line=False)
    }
    for seed in range(100):
        start, end = fim_cuts.whole_unit(text, random.Random(seed), fim_cuts.Units(text, "python"))
        assert end in ends or (start, end) == (start, start + len(text[start:end].rstrip()))
        assert end - start <= fim_cuts.MAX_MIDDLE


def test_a_language_without_a_grammar_is_cut_by_lines_and_indentation() -> None:
    assert not fim_cuts.Units(SNIPPET, "cobol").around(3, in_line=False)
    for seed in range(50):
        start, end = fim_cuts.within_line(SNIPPET, random.Random(seed), fim_cuts.Units(SNIPPET, ""))
        rest = SNIPPET[end:].partition("\n")[0]
        assert end > start
        assert rest or "\n" in SNIPPET[start:end] or end == len(SNIPPET.rstrip("\n"))


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
def test_a_block_ends_where_its_indentation_does(cursor: str, expected: str) -> None:
    at = SNIPPET.index(cursor.replace("|", "")) + cursor.index("|")
    start, end = fim_cuts.indented_block(SNIPPET, at)
    assert SNIPPET[start:end] == expected


def test_nothing_is_missing_where_a_line_is_finished_or_an_editor_would_close_it() -> None:
    closed = 0
    for seed in range(200):
        start, end = fim_cuts.nothing(SNIPPET, random.Random(seed))
        first, line_end = line_cuts.line_bounds(SNIPPET, start)
        after = SNIPPET[start:line_end].strip()
        assert start == end
        assert SNIPPET[first:start].strip()
        assert set(after) <= set(")]}\"'`;:,")
        closed += bool(after)
    assert 20 < closed < 180


def test_what_is_below_a_finished_line_begins_with_its_end() -> None:
    for seed in range(200):
        start, end = fim_cuts.lines_below(SNIPPET, random.Random(seed))
        first, line_end = line_cuts.line_bounds(SNIPPET, start)
        assert SNIPPET[first:start].strip()
        assert not SNIPPET[start:line_end].strip()
        assert end == start or SNIPPET[start:end].strip()


def test_the_rest_of_a_line_ends_before_its_newline_and_is_never_empty() -> None:
    for seed in range(200):
        start, end = line_cuts.rest_of_line(SNIPPET, random.Random(seed))
        assert SNIPPET[end : end + 1] in ("\n", "")
        at_end_of_line = SNIPPET[start : start + 1] in ("\n", "")
        assert at_end_of_line or "\n" not in SNIPPET[start:end]
        assert end > start or start == len(SNIPPET)


def test_cuts_fall_where_code_is_typed() -> None:
    """Never inside indentation, often where the code of a line begins."""
    at_start = 0
    for seed in range(300):
        cut = line_cuts.cut_in_line(SNIPPET, random.Random(seed))
        first, end = line_cuts.line_bounds(SNIPPET, cut)
        before = SNIPPET[first:cut]
        assert cut == end or not SNIPPET[cut].isspace() or before.strip()
        at_start += not before.strip() and cut < end
    assert 60 < at_start < 150
