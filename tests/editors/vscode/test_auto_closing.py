"""VS Code closes brackets, quotes and tags itself, as it does unless told otherwise: what is shown
between them, and what the file holds once that is accepted."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from .app import Code, Window, until

CLOSING: dict[str, object] = {
    "editor.autoClosingBrackets": "languageDefined",
    "editor.autoClosingQuotes": "languageDefined",
}
COMMENTS = "add(1)  # one\nadd(2)  # two\n"
TESTS = """\
const filters = require('./filters');

describe('filter', () => {
  it('filters', () => {});
});

"""
LIST = "<ul>\n  <li>One</li>\n  <li>Two</li>\n"

Typed = Callable[..., str]
"""Types keys near the end of a file: (its name, its text, keys, number of characters behind them)
-> what is shown then."""


@pytest.fixture(scope="module")
def closing_window(code: Code, browser: Browser, workspace: Path) -> Iterator[Window]:
    file = workspace / "closing.txt"
    file.write_text("")
    with code.settings(CLOSING):
        window = Window(code, browser, file)
        window.wait_for_status("ready")
        yield window
        window.close()


@pytest.fixture
def typed(closing_window: Window, workspace: Path, artifacts: Path) -> Iterator[Typed]:
    def type_in(name: str, text: str, keys: str, n_left: int = 0) -> str:
        (workspace / name).write_text(text)
        closing_window.open(workspace / name)
        closing_window.press("Control+End")
        closing_window.press(*["ArrowLeft"] * n_left)
        closing_window.type(keys)
        ghost = closing_window.wait_for_ghost()
        closing_window.screenshot(artifacts / f"vscode-closing-{name}.png")
        return ghost

    yield type_in
    closing_window.press("Escape")


def accepted(window: Window, before: str, closed: str) -> str:
    """The line that `before` ends with, the last of the file, once what is shown is accepted.
    closed: what the editor put after it."""
    window.press("Tab")
    start, _, line = before.rpartition("\n")

    def is_saved() -> bool:
        window.press("Control+KeyS")
        return len(window.file.read_text()) > len(before + closed) and not window.ghost

    until(is_saved, f"more than {line!r} in the file")
    text = window.file.read_text()
    assert text.startswith(before)
    return text[len(start) + 1 :]


def test_a_bracket_that_was_closed_stays_a_bracket(closing_window: Window, typed: Typed) -> None:
    """Also where the model says a comment, as each line above ends with one."""
    typed("closed_bracket.py", COMMENTS, "add(")
    line = accepted(closing_window, f"{COMMENTS}add(", ")")
    assert isinstance(ast.parse(line).body[0].value, ast.Call), line  # type: ignore[attr-defined]


def test_a_quote_that_was_closed_ends_what_is_shown(closing_window: Window, typed: Typed) -> None:
    """A call that was made before the quote was typed is shown whole."""
    typed("closed_quote.js", TESTS, "describe('fi")
    line = accepted(closing_window, f"{TESTS}describe('fi", "')")
    assert re.fullmatch(r"describe\('fi[^'\n]+'(?:\)|, \(\) => \{\n.*\n\}\);)\n?", line, re.S), line


def test_text_between_tags(closing_window: Window, typed: Typed) -> None:
    """Not the editor but who types closes the element: its server for HTML may not be there."""
    text = f"{LIST}  <li></li>"
    ghost = typed("closed_tag.html", text, "T", len("</li>"))
    assert "<" not in ghost
    line = accepted(closing_window, f"{LIST}  <li>T", "</li>")
    assert line == f"  <li>T{ghost}</li>"


def test_text_between_quotes_in_a_tag(closing_window: Window, typed: Typed) -> None:
    ghost = typed(
        "closed_attribute.html", LIST.replace("<li>", '<li class="item">'), '  <li class="'
    )
    assert '"' not in ghost
