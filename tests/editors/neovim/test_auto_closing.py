"""Beside mappings that close brackets, quotes and tags, as many plug-ins have: what is shown
between them, and what the buffer holds once that is accepted."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Desk, Start
from .editor import Editor
from .install import Neovim
from .test_suggestions import TAB

CLOSING = """
for opener, closer in pairs({ ['('] = ')', ['{'] = '}', ["'"] = "'", ['"'] = '"' }) do
  vim.keymap.set('i', opener, opener .. closer .. '<C-g>U<Left>')
end
vim.keymap.set('i', '>', function()
  local before = vim.api.nvim_get_current_line():sub(1, vim.fn.col('.') - 1)
  local name = before:match('<(%w+)[^<>]*$')
  if not name then return '>' end
  return ('></%s>'):format(name) .. ('<C-g>U<Left>'):rep(#name + 3)
end, { expr = true })
"""
COMMENTS = "add(1)  # one\nadd(2)  # two\n"
TESTS = """\
const filters = require('./filters');

describe('filter', () => {
  it('filters', () => {});
});

"""
LIST = "<ul>\n  <li>One</li>\n  <li>Two</li>\n"

Typed = Callable[[str, str, str], str]
"""Types keys on a last line: (file's name, its text, keys) -> what is shown then."""


@pytest.fixture
def editor(neovim: Neovim, desk: Desk, start: Start) -> Editor:
    editor = start(neovim, desk)
    editor.lua(TAB)
    editor.lua(CLOSING)
    return editor


@pytest.fixture
def typed(editor: Editor, desk: Desk, artifacts: Path, request: pytest.FixtureRequest) -> Typed:
    def type_at_end(name: str, text: str, keys: str) -> str:
        editor.open(desk.file(name, text))
        editor.request("nvim_command", "set noautoindent indentexpr=")
        editor.type("Go")
        for key in keys:  # as they are typed: a mapping that is looked up ahead sees another line
            editor.type("<lt>" if key == "<" else key)
            editor.read()
        frame = editor.wait_for_ghost()
        frame = editor.idle()
        said = f"{editor.suggested!r} in {editor.text!r}\n\n" + "\n".join(frame.lines)
        (artifacts / f"neovim-{request.node.name}.txt").write_text(said)
        return editor.suggested

    return type_at_end


def accepted(editor: Editor) -> str:
    """The last line once what is shown is accepted."""
    before = editor.text
    editor.type("<Tab>")
    editor.wait_for(lambda: editor.text != before)
    return editor.text.split("\n")[-1]


def test_a_bracket_that_was_closed_stays_a_bracket(editor: Editor, typed: Typed) -> None:
    """Also where the model says a comment, as each line above ends with one."""
    typed("closed_bracket.py", COMMENTS, "add(")
    line = accepted(editor)
    (statement,) = ast.parse(line).body
    assert isinstance(statement, ast.Expr), line
    assert isinstance(statement.value, ast.Call), line


def test_a_quote_that_was_closed_ends_what_is_shown(editor: Editor, typed: Typed) -> None:
    typed("closed_quote.js", TESTS, "describe('fi")
    line = accepted(editor)
    assert re.match(r"describe\('fi[^'\n]+'", line), line
    assert line.count("'") == 2, line


def test_text_between_tags_that_were_closed(editor: Editor, typed: Typed) -> None:
    shown = typed("closed_tag.html", LIST, "  <li>")
    assert "<" not in shown
    assert accepted(editor) == f"  <li>{shown}</li>"


def test_text_between_quotes_in_a_tag(editor: Editor, typed: Typed) -> None:
    text = LIST.replace("<li>", '<li class="item">')
    shown = typed("closed_attribute.html", text, '  <li class="')
    assert '"' not in shown
    assert accepted(editor) == f'  <li class="{shown}"'
