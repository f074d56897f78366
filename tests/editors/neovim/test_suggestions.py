"""A suggestion from the first key to the last: the real model answers, real keys are typed."""

from __future__ import annotations

import pytest

from .conftest import Desk, Start
from .editor import Editor
from .install import Neovim

CODE = """\
import os


def read_file(path):
    pass


def main():
    pass
"""
# On the line of the first `pass`.
OPEN = "5Gccwith open("
TAB = """vim.keymap.set('i', '<Tab>', function()
  return require('codespec').accept_or('<Tab>')
end, { expr = true })"""


def test_first_start_without_an_index(neovim: Neovim, own_desk: Desk, start: Start) -> None:
    path = own_desk.file("a.py", CODE)
    editor = start(neovim, own_desk)
    editor.open(path)
    # Nothing runs yet. No further key is pressed: the answer comes when the model is there.
    editor.type(OPEN)
    assert editor.wait_for_ghost().ghost
    assert editor.wait_for_status("ready") == "codespec-base"
    assert editor.messages == ""


@pytest.fixture
def editor(neovim: Neovim, desk: Desk, start: Start) -> Editor:
    editor = start(neovim, desk)
    editor.lua(TAB)
    editor.open(desk.file("a.py", CODE))
    return editor


def test_tab_accepts_what_is_shown(editor: Editor) -> None:
    editor.type(OPEN)
    before = editor.wait_for_ghost()
    typed = editor.text
    text = editor.suggested
    editor.type("<Tab>")
    editor.wait(lambda frame: not frame.ghost or editor.text != typed)
    assert editor.text == typed.replace("open(", f"open({text}")
    # The screen showed exactly what is in the buffer now.
    editor.type("<Esc>")
    editor.idle()
    after = editor.read()
    assert after.lines[:-2] == before.lines[:-2]
    assert not after.ghost
    # Accepting is undone by itself.
    editor.type("u")
    assert editor.text == typed
    # Where nothing is suggested it is a key like any other.
    assert not editor.suggested
    editor.type("Go<Esc>S<Tab>")
    assert editor.text.split("\n")[-1].isspace()


def test_tab_goes_on_in_a_snippet(editor: Editor) -> None:
    """Neovim does so by itself from 0.11 on."""
    editor.lua("vim.snippet.expand('zz(${1:a}, ${2:b})')")

    def is_chosen(place: str) -> bool:
        return editor.request("nvim_get_mode")["mode"] == "s" and place in editor.text

    editor.wait_for(lambda: is_chosen("zz(a, b)"))
    editor.type("q<Tab>")
    editor.wait_for(lambda: is_chosen("zz(q, b)"), lambda: editor.text)
    assert editor.cursor[1] >= len("zz(q, ")


def test_word_by_word_and_line_by_line(editor: Editor) -> None:
    editor.lua("vim.keymap.set('i', '<M-w>', '<Plug>(codespec-accept-word)')")
    editor.lua("vim.keymap.set('i', '<M-l>', '<Plug>(codespec-accept-line)')")
    editor.type(OPEN)
    editor.wait_for_ghost()
    text = editor.suggested
    typed = editor.text

    editor.type("<M-w>")
    editor.idle()
    (word, rest) = text[:1], text[1:]
    while editor.text != typed.replace("open(", f"open({word}"):
        word, rest = word + rest[:1], rest[1:]
        assert rest, f"{editor.text} has no part of {text}"
    assert word.isidentifier() or not word.strip().isalnum()
    assert editor.suggested == rest

    editor.type("<M-l>")
    editor.idle()
    line = rest.split("\n")[0] or "\n" + rest.split("\n")[1]
    assert editor.text == typed.replace("open(", f"open({word}{line}")


def test_typing_along_shows_the_rest_in_every_frame(editor: Editor) -> None:
    editor.type(OPEN)
    shown = editor.wait_for_ghost()
    text = editor.suggested.split("\n")[0]
    assert len(text) > 4
    first = len(editor.screen.frames) - 1
    for n, char in enumerate(text[:-1], 1):
        editor.type("<lt>" if char == "<" else char)
        editor.wait_for(lambda n=n: f"open({text[:n]}" in editor.text)
        if n % 4 == 0:
            editor.idle()  # also with the reply to this key
    frames = editor.screen.frames[first:]
    assert len(frames) > len(text) / 2
    assert frames[0] == shown
    for frame in frames:
        assert frame.ghost, "\n".join(frame.lines)
        # Typed or suggested: the line on the screen stays the same.
        assert frame.lines[4] == shown.lines[4]


def test_other_keys_take_it_away(editor: Editor) -> None:
    editor.type(OPEN)
    editor.wait_for_ghost()
    editor.type("<Esc>")
    assert not editor.read().ghost
    editor.type("A")
    editor.wait_for_ghost()
    first = len(editor.screen.frames)
    editor.type("€")
    editor.wait_for(lambda: "open(€" in editor.text)
    editor.idle()
    stale = editor.screen.frames[first].ghost
    assert not stale or "€" in editor.screen.frames[first].lines[4]


def test_dismissed_until_the_text_changes(editor: Editor) -> None:
    editor.lua("vim.keymap.set('i', '<C-]>', '<Plug>(codespec-dismiss)')")
    editor.type(OPEN)
    editor.wait_for_ghost()
    editor.type("<C-]>")
    editor.idle()
    assert not editor.read().ghost
    assert editor.lua("return require('codespec').accept()") is False
    editor.type("<Left><Right>")
    editor.idle()
    assert not editor.read().ghost
    editor.type("p")
    editor.wait_for_ghost()


def test_line_ends_of_another_system(editor: Editor, desk: Desk) -> None:
    # Two lines that stand above twice already.
    body = "    with open(path) as f:\n        return f.read()\n"
    code = "".join(f"def {name}(path):\n{body}\n\n" for name in ("read_file", "read_lines"))
    code = f"import os\n\n\n{code}def main(path):\n    pass\n"
    path = desk.file("crlf.py", code.replace("\n", "\r\n"))
    editor.open(path)
    assert editor.lua("return vim.bo.fileformat") == "dos"
    editor.type("15Gccwith open(")
    frame = editor.wait_for_ghost()
    assert "^M" not in "".join(frame.lines)
    text = editor.suggested
    assert "\n" in text
    editor.type("<Tab><Esc>:write<CR>")
    editor.wait_for(lambda: not editor.lua("return vim.bo.modified"))
    written = path.read_bytes().decode()
    assert written == code.replace("    pass", f"    with open({text}").replace("\n", "\r\n")


def test_only_the_window_with_the_cursor_shows_it(editor: Editor) -> None:
    editor.type(OPEN)
    once = editor.wait_for_ghost().ghost
    editor.type("<Esc>")
    editor.request("nvim_command", "set noequalalways | vsplit")
    for turn in ("", "<C-w>w"):  # also when it was the other one before
        editor.type(f"{turn}{OPEN}")
        assert editor.wait_for_ghost().ghost == once
        editor.type("<Esc>")
        editor.wait(lambda frame: not frame.ghost)


def test_tabs_are_shown_as_wide_as_they_are(editor: Editor, desk: Desk) -> None:
    loop = "\tfor (const item of items) {\n\t\tconsole.log(item);\n\t}\n"
    code = f"function first(items) {{\n{loop}}}\n\nfunction second(items) {{\n\tpass\n}}\n"
    editor.open(desk.file("a.js", code))
    editor.type("8Gccfor (const item of items) {<CR>")
    before = editor.wait_for_ghost()
    editor.type("<Tab><Esc>")
    editor.idle()
    assert editor.read().lines[:-2] == before.lines[:-2]


def test_beyond_the_basic_plane(editor: Editor, desk: Desk) -> None:
    """The same place by bytes and by units of UTF-16; incremental edits before it included."""
    editor.open(desk.file("emoji.py", CODE.replace("pass", 'x = "😀𝒳😀"; pass', 1)))
    editor.type('5Gf"a😀<Esc>fpC')
    editor.type("f = open(")
    editor.wait_for_ghost()
    line = '    x = "😀😀𝒳😀"; f = open('
    assert line in editor.text.split("\n")
    text = editor.suggested
    editor.type("<Tab>")
    editor.idle()
    assert f"{line}{text}" in editor.text
    row, column = editor.cursor
    last = f"{line}{text}".split("\n")[-1]
    assert editor.text.split("\n")[row - 1] == last
    assert column == len(last.encode())
