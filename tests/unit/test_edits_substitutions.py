"""Changes of lines as substitutions of tokens, and analogies."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from codespec.edits.analogy import analogous, difference
from codespec.edits.line_tokens import (
    dedented,
    indentation,
    indented,
    raw_tokens,
    shape,
    word_parts,
)
from codespec.edits.substitutions import (
    agreeing,
    aligned,
    number_substitution,
    occurrences,
    replaced,
    substitution,
)
from codespec.edits.template_pattern import renamed

LINES = st.text("ab_ (),.=", max_size=12)


@pytest.mark.parametrize(
    ("old", "new", "found", "put"),
    [
        ("x = load(a)", "x = read(a)", "load", "read"),
        ("f(a, b)", "f(a, b, key)", None, None),
        ("fit(a, b)", "fit(a, b, key)", "fit(a, b)", "fit(a, b, key)"),
        ("run(ctx, a)", "run(a)", "ctx, ", ""),
        ("call(a)", "call(ctx, a)", "call(a", "call(ctx, a"),
        ("return x", "return x", None, None),
        ("(", ")", None, None),
    ],
)
def test_the_least_replacement_that_can_be_searched_for(
    old: str, new: str, found: str | None, put: str | None
) -> None:
    made = substitution(old, new)
    if found is None or put is None:
        assert made is None
    else:
        assert made is not None
        assert found in old
        at = occurrences(old, made.found, made.put)
        assert replaced(old, at[:1], made.found, made.put) == new


@pytest.mark.parametrize(
    ("old", "new", "found", "put"),
    [
        ('"react": "^18.2.0"', '"react": "^18.3.0"', "18.2.0", "18.3.0"),
        ("x = 2.0.1, y", "x = 3.1, y", "2.0.1", "3.1"),
        ("listen(8080)", "listen(9090)", "8080", "9090"),
        ("wait(30)", "wait(60)", None, None),
        ("scale(1.5)", "scale(2.5)", None, None),
        ("x = 1.0.0", "x = 1.0.1", None, None),
        ("load(2024)", "read(2024)", None, None),
        ("listen(8080)", "listen()", None, None),
    ],
)
def test_a_version_or_a_long_number_is_found_wherever_it_stands(
    old: str, new: str, found: str | None, put: str | None
) -> None:
    made = number_substitution(old, new)
    assert (made and made.found, made and made.put) == (found, put)
    assert made is None or not (made.at_start or made.at_end)


def test_parts_of_a_number_are_other_numbers() -> None:
    lines = ["18.2.0", "^18.2.0-rc", "18.2.0.1", "1.18.2.0", "118.2.0", "18.2.05", "..18.2.0.."]
    assert [len(occurrences(line, "18.2.0", "18.3.0")) for line in lines] == [1, 1, 0, 0, 0, 0, 1]


def test_inserted_text_is_found_by_its_neighbours() -> None:
    made = substitution("open(path, mode)", "open(path, mode, encoding)")
    assert made is not None
    assert made.removed == ""
    assert made.added == ", encoding"
    assert "mode" in made.found


@given(LINES, LINES)
def test_a_substitution_makes_the_new_line(old: str, new: str) -> None:
    old, new = old.strip(), new.strip()
    made = substitution(old, new)
    if made is not None:
        starts = [i for i in range(len(old)) if old.startswith(made.found, i)]
        assert any(replaced(old, [i], made.found, made.put) == new for i in starts)


def test_occurrences_are_whole_words_and_not_done_already() -> None:
    assert occurrences("load(load2, load)", "load", "read") == [0, 12]
    assert occurrences("f(ctx, a) f(a)", "f(", "f(ctx, ") == [10]
    assert occurrences("aa.aa.aa", "aa.aa", "b") == [0]


def test_context_is_counted_from_the_place_outwards() -> None:
    made = substitution("x = load(a)", "x = read(a)")
    assert made is not None
    assert agreeing(("x", "="), ("(", "a", ")"), made) == (3, 4, True)
    assert agreeing(("y", "="), ("(", "a", ")", ";"), made) == (1, 3, False)


def test_lines_are_aligned_with_their_versions() -> None:
    old = ("a = load(x)", "b = load(y)")
    new = ("a = read(x)", "print(1, 2, 3)", "b = read(y)")
    assert aligned(old, new) == [(0, 0), (1, 2)]
    assert aligned(("a",), ("b",)) == [(0, 0)]
    assert aligned((), ("b",)) == []


def test_analogy_carries_what_differs() -> None:
    assert analogous("on1: H<R1>", "on1: H<P, R1>", "on2: H<R2>") == "on2: H<P, R2>"
    assert analogous("a.x = f(a)", "a.x = f(a, 1)", "b.x = f(b)") == "b.x = f(b, 1)"
    assert analogous("EnableAltScreen()", "WithAltScreen()", "EnableMouse()") == "WithMouse()"
    folder = 'd.new(d.path().join("a"), 1);', 'd.new("a", 1);'
    assert analogous(*folder, 'd.new(d.path().join("dir").join("a"), 1);') is None
    assert analogous("p q r", "p x r", "y r") is None


@given(LINES, LINES)
def test_analogy_with_itself_is_the_edit(old: str, new: str) -> None:
    assert analogous(old, new, old) == new


def test_difference_is_the_same_for_the_same_edit() -> None:
    assert difference("f(a1)", "g(a1)") == difference("f(b)", "g(b)") == (("f",), ("g",))
    assert difference("x " * 300, "y") == ()


@given(LINES)
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(raw_tokens(text)) == "".join(word_parts(text)) == text


def test_indentation_is_taken_away_and_put_back() -> None:
    block = ("    if x:", "", "        y")
    assert dedented(block) == ("if x:", "", "    y")
    assert indented(dedented(block), "\t") == ("\tif x:", "", "\t    y")
    assert indentation("\t x") == "\t "


def test_names_of_lines_of_one_shape() -> None:
    assert shape("if a.b(c):") == shape("if x.y(z):")
    assert renamed(("a", "=", "a"), ("b", "=", "b")) == {"a": "b"}
    assert renamed(("a", "=", "a"), ("b", "=", "c")) is None
