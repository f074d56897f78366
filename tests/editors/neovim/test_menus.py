"""Suggestions as items of a completion menu: the sources for blink.cmp and nvim-cmp.

The plug-ins are packaged nowhere and are not ours to copy. What of a source they call, and what of
an item they read, is here as data, and is tried in a real Neovim; with clones of nvim-cmp and
blink.cmp (v1) in the folder that NEOVIM_PLUGINS names, their own code is.
"""

from __future__ import annotations

import pytest

from .conftest import PATIENT, Desk, Start
from .editor import Editor
from .install import Neovim
from .test_neighbours import clone
from .test_suggestions import CODE

# What blink.cmp 1.10.2 and nvim-cmp a1d5048 do with a source, without their windows.
ASK = {
    "blink": """
        local source = require('codespec.blink').new({}, {})
        local context = { trigger = { kind = 'manual' } }
        source:get_completions(context, function(response) found = response end)
        """,
    "cmp": """
        local source = require('codespec.cmp')
        assert(source:get_position_encoding_kind() == 'utf-8')
        local params = { context = { option = { reason = 'manual' } } }
        source:complete(params, function(response) found = response end)
        """,
}
TAKE = {
    "blink": """
        require('codespec.blink').new({}, {}):execute({}, found.items[1], function() end, insert)
        """,
    "cmp": "insert() require('codespec.cmp'):execute(found.items[1], function() end)",
}
INSERT = """
local function insert()
  local buf = vim.api.nvim_get_current_buf()
  vim.lsp.util.apply_text_edits({ found.items[1].textEdit }, buf, 'utf-8')
end
"""
SETUP = {
    "nvim-cmp": """
        vim.cmd.runtime('plugin/cmp.lua')
        local cmp = require('cmp')
        cmp.register_source('codespec', require('codespec.cmp'))
        cmp.setup({
          sources = { { name = 'codespec' } },
          mapping = { ['<C-y>'] = cmp.mapping.confirm({ select = true }) },
        })""",
    "blink.cmp": """
        require('blink.cmp').setup({
          fuzzy = { implementation = 'lua' },
          sources = {
            default = { 'codespec' },
            providers = {
              codespec = { name = 'codespec', module = 'codespec.blink', async = true },
            },
          },
          completion = { accept = { auto_brackets = { enabled = false } } },
          keymap = { preset = 'none', ['<C-y>'] = { 'select_and_accept' } },
        })""",
}
LISTED = {
    "nvim-cmp": """
        local entry = require('cmp').visible() and require('cmp').get_entries()[1]
        return entry and entry:get_completion_item() or vim.NIL""",
    "blink.cmp": """
        local item = require('blink.cmp').is_menu_visible() and require('blink.cmp').get_items()[1]
        return item or vim.NIL""",
}


def n_accepted(editor: Editor) -> int:
    """Suggestions that the server counted as accepted, by the command that tells of one."""
    return editor.lua("return accepted or 0")


def count_accepted(editor: Editor) -> None:
    editor.lua("""
        local client = require('codespec.client')
        local tell = client.accepted
        client.accepted = function(item)
          accepted = (accepted or 0) + 1
          assert(item.command.command == 'codespec.accepted')
          tell(item)
        end""")


@pytest.mark.parametrize("menu", sorted(ASK))
def test_a_source_answers_as_its_menu_reads(
    neovim: Neovim, desk: Desk, start: Start, menu: str
) -> None:
    editor = start(neovim, desk, f"ghost_text='none', {PATIENT}")
    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.type("5Gccwith ope")
    editor.wait_for(lambda: "with ope" in editor.text)
    count_accepted(editor)
    editor.lua(ASK[menu])
    editor.wait_for(lambda: editor.lua("return found ~= nil and found.items[1] ~= nil"))
    assert not editor.lua("return require('codespec').next()")
    assert not editor.read().ghost, "no ghost text beside the menu"
    item = editor.lua("return found.items[1]")
    assert item["filterText"].startswith("ope"), "found by the word at the cursor"
    assert item["textEdit"]["newText"].startswith("ope")
    begin = item["textEdit"]["range"]["start"]
    assert (begin["line"], begin["character"]) == (4, len("    with "))
    assert item["label"].startswith("ope")
    before = editor.text
    editor.lua(INSERT + TAKE[menu])
    assert editor.text == before.replace("with ope", f"with {item['textEdit']['newText']}", 1)
    assert n_accepted(editor) == 1
    assert editor.messages == ""


@pytest.mark.parametrize("name", sorted(SETUP))
def test_in_the_menu_itself(newest: Neovim, desk: Desk, editors: list[Editor], name: str) -> None:
    path = f"set rtp^={clone(name)}"
    options = f"{{ghost_text='none', {PATIENT}}}"
    editor = Editor(newest, desk.env, desk.workspace, options, "--cmd", path)
    editors.append(editor)
    editor.lua(SETUP[name])
    count_accepted(editor)
    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.type("5Gccwith ope")
    editor.idle()
    editor.type("n")
    editor.wait_for(lambda: editor.lua(LISTED[name]) is not None, "no menu")
    text = editor.lua(LISTED[name])["textEdit"]["newText"]
    assert text.startswith("open")
    assert not editor.read().ghost
    before = editor.text
    editor.type("<C-y>")
    editor.wait_for(lambda: editor.text == before.replace("with open", f"with {text}", 1))
    editor.wait_for(lambda: n_accepted(editor) == 1)
    # Another word, another item, and none is left over.
    editor.type("<Esc>")
    editor.idle()
    assert editor.messages == ""
