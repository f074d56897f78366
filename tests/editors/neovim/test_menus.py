"""Suggestions as items of a completion menu: the sources for blink.cmp and nvim-cmp.

The plug-ins are packaged nowhere and are not ours to copy. What of a source they call, and what of
an item they read, is here as data, and is tried in a real Neovim; with clones of nvim-cmp and
blink.cmp (v1) in the folder that NEOVIM_PLUGINS names, their own code is.
"""

from __future__ import annotations

import pytest

from tests.scripted_server import completion, models, scripted_server

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
SELECT = {
    "blink": """
        require('codespec.blink').new({}, {}):resolve(found.items[1], function(i) selected = i end)
        """,
    "cmp": "require('codespec.cmp'):resolve(found.items[1], function(i) selected = i end)",
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
          mapping = {
            ['<C-n>'] = cmp.mapping.select_next_item(),
            ['<C-y>'] = cmp.mapping.confirm({ select = true }),
          },
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
          completion = {
            accept = { auto_brackets = { enabled = false } },
            list = { selection = { preselect = false } },
          },
          keymap = {
            preset = 'none',
            ['<C-n>'] = { 'select_next' },
            ['<C-y>'] = { 'select_and_accept' },
          },
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


def ids_shown(editor: Editor) -> list[str]:
    """Ids of the items that the server was told the user has seen."""
    return editor.lua("return shown")


def record(editor: Editor) -> None:
    """From now on, what the server is told of items."""
    editor.lua("""
        local client = require('codespec.client')
        local accept, notify = client.accepted, client.notify
        shown = {}
        client.accepted = function(item)
          accepted = (accepted or 0) + 1
          assert(item.command.command == 'codespec.accepted')
          accept(item)
        end
        client.notify = function(method, params)
          if method == 'textDocument/didShowCompletion' then
            table.insert(shown, params.item.command.arguments[1])
          end
          notify(method, params)
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
    record(editor)
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
    assert ids_shown(editor) == [], "what is listed is not yet seen"
    editor.lua(SELECT[menu])
    assert editor.lua("return vim.deep_equal(selected, found.items[1])")
    assert ids_shown(editor) == [item["data"]["item"]["command"]["arguments"][0]]
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
    record(editor)
    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.type("5Gccwith ope")
    editor.idle()
    editor.type("n")
    editor.wait_for(lambda: editor.lua(LISTED[name]) is not None, "no menu")
    text = editor.lua(LISTED[name])["textEdit"]["newText"]
    assert text.startswith("open")
    assert not editor.read().ghost
    editor.idle()
    assert ids_shown(editor) == [], "it is listed, and none is selected"
    before = editor.text
    editor.type("<C-n>")
    editor.wait_for(lambda: len(set(ids_shown(editor))) == 1, "selected")
    editor.type("<C-y>")
    editor.wait_for(lambda: editor.text == before.replace("with open", f"with {text}", 1))
    editor.wait_for(lambda: n_accepted(editor) == 1)
    # Another word, another item, and none is left over.
    editor.type("<Esc>")
    editor.idle()
    assert editor.messages == ""


def test_backticks_in_a_suggestion_do_not_end_its_documentation(
    newest: Neovim, own_desk: Desk, start: Start
) -> None:
    text = "'````' + name + '```') as f:\n"
    routes = {"/v1/models": models(), "/v1/completions": completion([text])}
    with scripted_server(routes) as server:
        config = own_desk.path / "CONFIG" / "codespec" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[model]\ntarget = "{server.url}"\n')
        editor = start(newest, own_desk, f"ghost_text='none', {PATIENT}")
        editor.open(own_desk.file("a.py", CODE))
        editor.wait_for_status("ready")
        editor.type("5Gccwith open(")
        editor.idle()
        editor.lua(ASK["cmp"])
        editor.wait_for(lambda: editor.lua("return found ~= nil and found.items[1] ~= nil"))
        shown = editor.lua("return found.items[1].documentation.value").split("\n")
    assert shown[0] == "`````python"
    assert shown[-1] == "`````"
    assert "````" in shown[1]
