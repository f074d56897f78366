"""Fewer, shorter, quieter suggestions in Neovim: the real model answers, real keys are typed."""

from __future__ import annotations

from .conftest import PATIENT, Desk, Start
from .editor import Editor
from .install import Neovim
from .test_suggestions import CODE, OPEN

TRIGGER = "vim.keymap.set('i', '<M-t>', '<Plug>(codespec-trigger)')"
SIGNS = """local marks = vim.api.nvim_buf_get_extmarks(0,
  vim.api.nvim_get_namespaces()['codespec.mark'], 0, -1, { details = true })
return vim.tbl_map(function(mark) return { mark[2], mark[4].sign_text } end, marks)"""


def opened(neovim: Neovim, desk: Desk, start: Start, options: str) -> Editor:
    editor = start(neovim, desk, f"{PATIENT}, {options}")
    editor.lua(TRIGGER)
    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    return editor


def test_manual_shows_what_is_asked_for_alone(newest: Neovim, desk: Desk, start: Start) -> None:
    editor = opened(newest, desk, start, "trigger='manual'")
    editor.type(OPEN)
    editor.idle()
    assert not editor.suggested
    editor.type("<M-t>")
    assert editor.wait_for_ghost().ghost


def test_subtle_shows_a_sign_and_what_is_ready_until_the_next_edit(
    neovim: Neovim, desk: Desk, start: Start
) -> None:
    editor = opened(neovim, desk, start, "trigger='subtle'")
    editor.type(OPEN)
    editor.wait_for(lambda: editor.lua(SIGNS))
    assert editor.lua(SIGNS) == [[4, "» "]]
    # The model may still read ahead.
    editor.wait_for(
        lambda: editor.status() == {"kind": "ready", "message": "a suggestion is ready"},
        lambda: str(editor.status()),
    )
    assert editor.lua("return require('codespec').statusline()") == "codespec »"
    assert not editor.suggested
    editor.type("<M-t>")
    shown = editor.wait_for_ghost().ghost
    assert shown
    editor.wait_for(lambda: not editor.lua(SIGNS))
    editor.wait_for(lambda: editor.suggested)
    editor.type(editor.suggested[0])  # typed along, it is an edit all the same
    editor.wait_for(lambda: editor.lua(SIGNS))
    assert not editor.suggested


def test_one_line_at_a_time(newest: Neovim, desk: Desk, start: Start) -> None:
    editor = opened(newest, desk, start, "lines='single'")
    editor.type("GoO<BS>class Reader:<CR>")
    editor.type("def read_file(self, path):<CR>")
    editor.wait_for_ghost()
    assert "\n" not in editor.suggested


def test_a_snooze_is_told_with_its_time_and_ends(newest: Neovim, desk: Desk, start: Start) -> None:
    editor = opened(newest, desk, start, "enabled=true")
    editor.lua("vim.cmd('Codespec snooze 30')")
    assert editor.status() == {"kind": "off", "message": "snoozed for 30 more minutes"}
    assert "snoozed for 30 more minutes" in editor.messages
    editor.type(OPEN)
    editor.idle()
    assert not editor.suggested
    editor.lua("vim.cmd('Codespec snooze off')")
    assert editor.wait_for_ghost().ghost
    editor.lua("require('codespec').snooze(0.01)")
    assert editor.status()["message"] == "snoozed for 1 more minute"
    assert not editor.suggested
    editor.lua("pcall(vim.cmd, 'Codespec snooze soon')")
    assert '"soon" is no number of minutes' in editor.messages
