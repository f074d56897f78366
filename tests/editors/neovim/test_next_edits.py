"""Next edits as they are seen, gone to and made, with an engine that replaces "old" by "new"."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scripted_daemon

from .conftest import Desk, Start, clear_up, set_up
from .editor import TIMEOUT_S, Editor
from .install import Neovim

UNHURRIED = "settings={completion={deadline_auto_ms=60000}}"
TEXT = "first\nx = old(1)\nmiddle\nold(2)\nlast\n"
MAP = """
for _, mode in ipairs({ 'n', 'i' }) do
  vim.keymap.set(mode, '<M-n>', '<Plug>(codespec-next-edit)')
  vim.keymap.set(mode, '<M-d>', '<Plug>(codespec-dismiss-edit)')
end"""
MARKS = """
local ns = vim.api.nvim_create_namespace('codespec.next_edit')
local found = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })) do
  local d = mark[4]
  if d.hl_group then found.old = { mark[2], mark[3], d.end_col } end
  if d.virt_text_pos == 'inline' then found.new = d.virt_text[1][1] end
  if d.virt_text_pos == 'eol' then found.hint = { mark[2], vim.trim(d.virt_text[1][1]) } end
  if d.sign_text then found.sign = mark[2] end
  if d.virt_lines then
    found.lines = vim.tbl_map(function(line) return line[1][1] end, d.virt_lines)
  end
end
return found"""


@pytest.fixture(scope="module")
def served_desk(tmp_path_factory: pytest.TempPathFactory, measured_costs: Path) -> Iterator[Desk]:
    """A desk whose daemon has the scripted engine."""
    desk = set_up(tmp_path_factory.mktemp("scripted"), measured_costs)
    command = [sys.executable, scripted_daemon.SCRIPT, "ok"]
    daemon = subprocess.Popen(command, env={**os.environ, **desk.env}, cwd=desk.path)
    give_up_at = time.monotonic() + TIMEOUT_S
    while not list((desk.path / "run").glob("*.sock")):
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    yield desk
    daemon.terminate()
    daemon.wait(TIMEOUT_S)
    clear_up(desk)


@pytest.fixture
def scripted_desk(served_desk: Desk) -> Desk:
    """With an empty workspace."""
    served_desk.empty()
    return served_desk


@pytest.fixture
def editor(neovim: Neovim, scripted_desk: Desk, start: Start) -> Editor:
    editor = start(neovim, scripted_desk, f"trigger='manual', {UNHURRIED}")
    editor.lua(MAP)
    editor.open(scripted_desk.file("a.py", TEXT))
    editor.wait_for_status("ready")
    return editor


def marks(editor: Editor) -> dict[str, object]:
    return dict(editor.lua(MARKS) or {})


def wait_for_hint(editor: Editor, row: int, words: str) -> dict[str, object]:
    editor.wait_for(lambda: marks(editor).get("hint") == [row, words], lambda: str(marks(editor)))
    return marks(editor)


def test_an_edit_is_drawn_gone_to_made_and_taken_back(editor: Editor) -> None:
    editor.type("ggAy<Esc>")
    seen = wait_for_hint(editor, 0, "→ line 2 (1 of 2)")
    assert (seen["old"], seen["new"], seen["sign"]) == ([1, 4, 7], "new", 1)
    before = editor.text
    editor.type("<M-n>")
    editor.wait_for(lambda: editor.cursor == (2, 0))
    assert editor.text == before
    wait_for_hint(editor, 1, "(1 of 2)")
    editor.type("<M-n>")
    made = before.replace("old(1)", "new(1)")
    editor.wait_for(lambda: editor.text == made)
    # The next one is there without a key.
    wait_for_hint(editor, 1, "→ line 4 (2 of 2)")
    editor.type("<M-n><M-n>")
    editor.wait_for(lambda: "old" not in editor.text)
    editor.wait_for(lambda: marks(editor) == {})
    editor.type("u")
    editor.wait_for(lambda: editor.text == made)
    editor.type("u")
    editor.wait_for(lambda: editor.text == before)


def test_in_insert_mode_too(editor: Editor) -> None:
    editor.type("ggAy")
    wait_for_hint(editor, 0, "→ line 2 (1 of 2)")
    editor.type("<M-n><M-n>")
    editor.wait_for(lambda: "new(1)" in editor.text)
    assert editor.request("nvim_get_mode")["mode"] == "i"
    editor.type("<Esc>u")
    editor.wait_for(lambda: "old(1)" in editor.text and "firsty" in editor.text)


def test_suggestions_at_the_cursor_go_first(
    neovim: Neovim, scripted_desk: Desk, start: Start
) -> None:
    """The engine answers about the edit before it suggests anything."""
    editor = start(neovim, scripted_desk, UNHURRIED)
    editor.lua(MAP)
    editor.open(scripted_desk.file("a.py", "until paused 1\nx = old(1)\n"))
    editor.wait_for_status("ready")
    editor.type("ggA ")
    editor.wait_for_ghost()
    typed = editor.text
    editor.wait_for(lambda: not editor.lua("return require('codespec.next_edit').busy()"))
    assert marks(editor) == {}
    editor.type("<M-n>")  # no key for what is not seen
    editor.idle()
    assert (editor.text, editor.cursor[0]) == (typed, 1)
    for frame in editor.screen.frames:
        assert not (frame.ghost and "→" in "".join(frame.lines)), "\n".join(frame.lines)
    # Once it is gone there is room.
    editor.type("<Esc>")
    wait_for_hint(editor, 0, "→ line 2")


def test_a_dismissed_one_does_not_come_again(editor: Editor) -> None:
    editor.type("ggAy<Esc>")
    wait_for_hint(editor, 0, "→ line 2 (1 of 2)")
    editor.type("<M-d>")
    editor.wait_for(lambda: marks(editor) == {})
    editor.type("ggAz<Esc>")
    wait_for_hint(editor, 0, "→ line 4")


@pytest.mark.parametrize("name", ["b.py", "(b)@1,é[c]'+%20~.py"])
def test_an_edit_of_another_file_is_seen_before_it_is_made(
    editor: Editor, scripted_desk: Desk, name: str
) -> None:
    other = scripted_desk.file(name, "old(9)\nx\n")
    here = scripted_desk.file("c.py", f"elsewhere {other}\nx\n")
    editor.open(here)
    editor.type("Gox<Esc>")
    wait_for_hint(editor, 2, f"→ {name}:1")
    editor.type("<M-n>")
    editor.wait_for(lambda: editor.text == "old(9)\nx")
    editor.wait_for(lambda: marks(editor).get("new") == "new")
    editor.type("<M-n>")
    editor.wait_for(lambda: editor.text == "new(9)\nx")
    assert other.read_text() == "old(9)\nx\n"


def test_an_edit_whose_old_text_is_gone_is_not_made(editor: Editor, scripted_desk: Desk) -> None:
    other = scripted_desk.file("b.py", "old(9)\n")
    editor.open(scripted_desk.file("c.py", f"elsewhere {other}\nx\n"))
    editor.type("Gox<Esc>")
    wait_for_hint(editor, 2, "→ b.py:1")
    other.write_text("other\n")
    editor.type("<M-n>")
    editor.wait_for(lambda: editor.text == "other")
    editor.type("<M-n>")
    editor.idle()
    assert editor.text == "other"
    assert marks(editor) == {}


def test_a_buffer_that_is_not_to_be_changed_has_none(editor: Editor) -> None:
    editor.type("ggAy<Esc>")
    wait_for_hint(editor, 0, "→ line 2 (1 of 2)")
    editor.lua("vim.bo.readonly = true")
    editor.type("<M-n>")
    editor.wait_for(lambda: marks(editor) == {})
    editor.lua("vim.bo.readonly = false")
    editor.type("ggAy<Esc>")
    wait_for_hint(editor, 0, "→ line 2 (1 of 2)")


def test_all_places_are_listed(editor: Editor) -> None:
    editor.type("gg")
    editor.request("nvim_command", "Codespec edits")
    listed = "return vim.fn.getqflist({ title = 1, items = 1 })"
    editor.wait_for(lambda: editor.lua(listed)["items"])
    items = editor.lua(listed)["items"]
    assert [(item["lnum"], item["text"]) for item in items] == [(2, "x = new(1)"), (4, "new(2)")]


def test_the_key_is_itself_where_there_is_none(editor: Editor) -> None:
    editor.lua(
        "vim.keymap.set('n', '<Tab>', function() "
        "return require('codespec').next_edit_or('x') end, { expr = true })"
    )
    editor.type("gg<Tab>")
    editor.wait_for(lambda: editor.text.startswith("irst"))
    wait_for_hint(editor, 0, "→ line 2 (1 of 2)")
    editor.type("<Tab>")
    editor.wait_for(lambda: editor.cursor == (2, 0))


def test_they_can_be_switched_off(newest: Neovim, scripted_desk: Desk, start: Start) -> None:
    editor = start(newest, scripted_desk, "trigger='manual', next_edits=false")
    editor.open(scripted_desk.file("a.py", TEXT))
    editor.wait_for_status("ready")
    editor.type("ggAy<Esc>")
    editor.request("nvim_command", "Codespec edits")
    editor.wait_for(lambda: "no next edits in this buffer" in editor.messages)
    assert marks(editor) == {}


def test_lines_that_come_and_go_are_drawn(
    newest: Neovim, scripted_desk: Desk, start: Start
) -> None:
    editor = start(newest, scripted_desk, f"trigger='manual', {UNHURRIED}")
    editor.open(scripted_desk.file("a.py", TEXT))
    editor.lua(
        "require('codespec.edit_view').show({ buf = 0, row = 1, col = 0, end_row = 1, end_col = 0, "
        "old = { '' }, new = { 'a', 'b', '' } })"
    )
    assert marks(editor)["lines"] == ["a", "b"]
    editor.lua("require('codespec.edit_view').hide()")
    editor.lua(
        "require('codespec.edit_view').show({ buf = 0, row = 1, col = 0, end_row = 2, end_col = 0, "
        "old = { 'x = old(1)', '' }, new = { '' } })"
    )
    assert marks(editor)["old"] == [1, 0, 0]
    assert "lines" not in marks(editor)


STORE = """\
class Store:
    def __init__(self, folder):
        self.folder = folder

    def read(self, name):
        return self.folder.joinpath(name).read_text()

    def write(self, name, text):
        self.folder.joinpath(name).write_text(text)

    def remove(self, name):
        self.folder.joinpath(name).unlink()
"""


def test_a_rename_is_followed_with_the_bundled_model(
    neovim: Neovim, desk: Desk, start: Start
) -> None:
    editor = start(
        neovim, desk, "settings={completion={deadline_auto_ms=60000}, edits={eagerness='high'}}"
    )
    editor.lua(MAP)
    editor.open(desk.file("store.py", STORE))
    editor.wait_for_status("ready")
    editor.type("3G:s/folder =/root =/<CR>")
    editor.type("6G:s#folder#root#<CR>")
    editor.wait_for(lambda: "→ line 9" in str(marks(editor).get("hint")), lambda: marks(editor))
    editor.type("<M-n><M-n>")
    editor.wait_for(lambda: "self.root.joinpath(name).write_text" in editor.text)
    editor.wait_for(lambda: "→ line 12" in str(marks(editor).get("hint")), lambda: marks(editor))
    editor.type("<M-n><M-n>")
    editor.wait_for(lambda: "self.folder" not in editor.text)
