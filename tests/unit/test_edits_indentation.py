"""A change that is made again elsewhere is indented as the text is that it comes to."""

from __future__ import annotations

import pytest

from codespec.edits.block_pattern import deeper
from codespec.edits.indentation_steps import StepsInstead, steps_instead
from codespec.edits.searched_text import SearchedTexts
from tests.edit_sessions import THERE, EditingSession

FOUR = "def f():\n    if ready(x):\n        begin(x)\n        work()\n"


def with_steps(text: str, step: str) -> str:
    return text.replace("    ", step)


@pytest.mark.parametrize("step", ["\t", "  ", "    "])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    if ready(x):\n", "    if ready(x):\n        log(x)\n"),
        ("        begin(x)\n", "        with lock:\n            begin(x)\n        end()\n"),
        ("        begin(x)\n", "        begin(x)\n        for y in x:\n            log(y)\n\n"),
    ],
)
def test_lines_are_deeper_by_the_steps_of_their_place(step: str, old: str, new: str) -> None:
    there = f"class C:\n{with_steps(FOUR, step)}\ndef g():\n{step}return 1\n"
    session = EditingSession(a=FOUR, b=there)
    session.edit(old, new)
    edit = next(edit for edit in session.proposed() if edit.path == THERE)
    session.apply(edit)
    assert session.texts.opened[THERE] == there.replace(
        with_steps(old, step), with_steps(new, step)
    )


def test_lines_that_are_less_deep_are_less_deep_there_as_well() -> None:
    text = FOUR + "        done()\n"
    session = EditingSession(a=text, b=with_steps(text, "  "))
    session.edit("        done()\n", "        done()\n    return x\n")
    assert [edit.new for edit in session.proposed() if edit.path == THERE] == [("  return x",)]


@pytest.mark.parametrize(
    ("step", "there", "instead"),
    [
        ("    ", "if a:\n  b\nif a:\n  b\nif a:\n    b\n", ""),
        ("    ", "a\nb\n", ""),
        ("", "if a:\n  b\n", ""),
        # An argument is aligned with what stands above it.
        ("    ", "f(a,\n         b)\n", ""),
        ("    ", "f(a,\n         b)\nif a:\n\tb\n", "\t"),
    ],
)
def test_steps_stay_where_they_are_in_use_or_not_known(step: str, there: str, instead: str) -> None:
    text = SearchedTexts(1).get(THERE, there, True)
    assert steps_instead(step, text, 1) == StepsInstead(step if instead else "", instead)


def test_an_indentation_of_no_whole_steps_stays() -> None:
    tabs = StepsInstead("    ", "\t")
    assert tabs.in_lines(["a", "    b", "     c", "        d"]) == ("a", "\tb", "     c", "\t\td")
    assert deeper("\t\t", -4, "    ", tabs) == "\t"
    assert deeper("\t", -8, "        ", tabs) == ""
    assert deeper("  ", -8, "        ") == ""
