"""Beside the plug-ins that many use. They are packaged nowhere and are not ours to copy:
NEOVIM_PLUGINS names a folder with clones of nvim-cmp, blink.cmp (v1) and lazy.nvim."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import PATIENT, Desk
from .editor import PLUGIN, Editor
from .install import Neovim
from .test_suggestions import CODE

PLUGINS = Path(os.environ.get("NEOVIM_PLUGINS", ""))
CMP = """
vim.cmd.runtime('plugin/cmp.lua')
local cmp = require('cmp')
cmp.register_source('words', {
  complete = function(_, _, callback)
    callback({ { label = 'openings' }, { label = 'opener' } })
  end,
})
cmp.setup({
  sources = { { name = 'words' } },
  mapping = {
    ['<C-n>'] = cmp.mapping.select_next_item(),
    ['<Tab>'] = cmp.mapping(function(fallback)
      if not require('codespec').accept() then fallback() end
    end, { 'i' }),
  },
})
"""
BLINK = """
require('blink.cmp').setup({
  fuzzy = { implementation = 'lua' },
  sources = { default = { 'buffer' } },
  completion = { list = { selection = { preselect = false, auto_insert = true } } },
  keymap = {
    preset = 'none',
    ['<C-n>'] = { 'select_next', 'fallback' },
    ['<Tab>'] = { function() return require('codespec').accept() end, 'fallback' },
  },
})
"""


def clone(name: str) -> Path:
    if not os.environ.get("NEOVIM_PLUGINS") or not (PLUGINS / name).is_dir():
        pytest.skip(f"NEOVIM_PLUGINS names no folder with a clone of {name}")
    return PLUGINS / name


@pytest.mark.parametrize(
    ("name", "setup", "visible"),
    [
        ("nvim-cmp", CMP, "return require('cmp').visible()"),
        ("blink.cmp", BLINK, "return require('blink.cmp').is_menu_visible()"),
    ],
)
def test_beside_a_completion_menu(
    neovim: Neovim, desk: Desk, editors: list[Editor], name: str, setup: str, visible: str
) -> None:
    path = f"set rtp^={clone(name)}"
    editor = Editor(neovim, desk.env, desk.workspace, f"{{{PATIENT}}}", "--cmd", path)
    editors.append(editor)
    editor.lua(setup)
    editor.open(desk.file("a.py", f"# opener openings\n{CODE}"))
    editor.wait_for_status("ready")
    editor.type("6Gccwith op")
    editor.idle()
    editor.type("e")
    editor.wait_for(lambda: editor.lua(visible), "no menu")
    # Both are there.
    editor.wait_for_ghost()
    editor.idle()
    assert editor.lua(visible)
    # The menu goes its way: its entry is inserted, and completed anew.
    editor.type("<C-n>")
    editor.wait_for(lambda: "with opener" in editor.text or "with openings" in editor.text)
    editor.type("(")
    shown = editor.wait_for_ghost()
    assert "(" in shown.lines[5]
    text, before = editor.suggested, editor.text
    editor.type("<Tab>")
    editor.wait_for(lambda: editor.text != before)
    line = before.split("\n")[5]
    assert f"{line}{text}" in editor.text


def test_with_lazy(neovim: Neovim, desk: Desk, editors: list[Editor]) -> None:
    path = f"set rtp^={clone('lazy.nvim')}"
    editor = Editor(neovim, desk.env, desk.workspace, "", "--cmd", path)
    editors.append(editor)
    editor.lua(
        """vim.go.loadplugins = true
        require('lazy').setup({
          { dir = ..., main = 'codespec', opts = { debounce_ms = 10 } },
        }, { install = { missing = false }, rocks = { enabled = false } })""",
        str(PLUGIN),
    )
    assert editor.lua("return require('codespec').is_set_up()")
    editor.open(desk.file("a.py", CODE))
    assert editor.wait_for_status("ready")
    assert editor.lua("return vim.fn.exists(':Codespec')") == 2
