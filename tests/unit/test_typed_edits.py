"""A proposed edit that is typed by hand, at its place or elsewhere."""

from __future__ import annotations

import pytest

from codespec.edits.typed_edits import ChangedSpan, Typed, changed_span, typed

TEXT = "a = load(1)\nb = load(2)\nupload(a)\n"
OLD, NEW = "    x = load(n)", "    x = fetch(n)"


@pytest.mark.parametrize(
    ("after", "how"),
    [
        ("fetch", Typed.WHOLE),
        ("loa", Typed.PART),
        ("ad", Typed.PART),
        ("", Typed.PART),
        ("fet", Typed.PART),
        ("feload", Typed.PART),
        ("fead", Typed.PART),
        ("loads", Typed.OTHER),
        ("send", Typed.OTHER),
    ],
)
def test_a_name_typed_over_another(after: str, how: Typed) -> None:
    assert typed(TEXT, TEXT.replace("load(2)", f"{after}(2)"), OLD, NEW) is how


def test_other_words_and_other_changes_are_something_else() -> None:
    assert typed(TEXT, TEXT.replace("upload", "upfetch"), OLD, NEW) is Typed.OTHER
    assert typed(TEXT, TEXT + "fetch\n", OLD, NEW) is Typed.OTHER
    both = TEXT.replace("load(1)", "fetch(1)").replace("load(2)", "fetch(2)")
    assert typed(TEXT, both, OLD, NEW) is Typed.OTHER


def test_an_argument_is_typed_inside_brackets() -> None:
    text = "f(a)\ng(b)\n"
    for argument, how in ((",", Typed.PART), (", n", Typed.PART), (", n=1", Typed.WHOLE)):
        after = text.replace("f(a)", f"f(a{argument})")
        assert typed(text, after, "f(a)", "f(a, n=1)") is how
    assert typed(text, text.replace("g(b)", "g(b, n=1)"), "f(a)", "f(a, n=1)") is Typed.OTHER


@pytest.mark.parametrize(
    ("typed_over", "how"),
    [("8.3.0", Typed.WHOLE), ("8..0", Typed.PART), ("8.2", Typed.PART), ("8.4.0", Typed.OTHER)],
)
def test_a_version_is_typed_in_another_line(typed_over: str, how: Typed) -> None:
    text = '"a": "^8.2.0",\n"b": "^8.2.0"\n'
    after = text.replace("8.2.0", typed_over, 1)
    assert typed(text, after, '"b": "^8.2.0"', '"b": "^8.3.0"') is how


def test_brackets_that_an_editor_closed_are_no_other_edit() -> None:
    assert typed("x = item\n", "x = f()\n", "y = item", "y = f(item, b)") is Typed.PART


@pytest.mark.parametrize(
    ("old", "new", "after", "how"),
    [
        ("", "import os\n", "im", Typed.PART),
        ("", "import os\n", "import os", Typed.WHOLE),
        ("", "import os\n", "    import os", Typed.WHOLE),
        ("", "import os\n", "exp", Typed.OTHER),
    ],
)
def test_lines_are_typed_with_any_indentation(old: str, new: str, after: str, how: Typed) -> None:
    assert typed("a\n\nb\n", f"a\n{after}\nb\n", old, new) is how


def test_lines_are_deleted() -> None:
    text = "a\n  one(1)\n  two(2)\nb\n"
    old = "one(1)\n  two(2)\n"
    assert typed(text, text.replace("one(1)\n  two(2)", ""), old, "") is Typed.WHOLE
    assert typed(text, text.replace("two(2)", ""), old, "") is Typed.PART


def test_places_move_with_what_changed_before_them() -> None:
    span = changed_span("one two three", "one 2 three")
    assert span == ChangedSpan(4, 7, -2)
    assert (span.moved(0, 3), span.moved(8, 13), span.moved(3, 8)) == (0, 6, None)
