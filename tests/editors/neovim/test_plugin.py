"""The plug-in as a package: help, health, commands, options, style; its text logic by itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.editors import debian
from tests.editors.conftest import installed
from tests.editors.install import cached

from .conftest import Desk, Start
from .editor import PLUGIN, Editor
from .install import Neovim
from .test_suggestions import CODE


@pytest.fixture
def bare(newest: Neovim, desk: Desk, editors: list[Editor]) -> Editor:
    """An editor in which setup() was not called."""
    editors.append(Editor(newest, desk.env, desk.workspace, setup=""))
    return editors[-1]


def test_help_is_what_the_sources_say(newest: Neovim, tmp_path: Path) -> None:
    written = tmp_path / "codespec.txt"
    script = PLUGIN / "scripts" / "vimdoc.lua"
    env = {**os.environ, **newest.env}
    subprocess.run(
        [newest.program, "-u", "NONE", "-i", "NONE", "-l", script, written], env=env, check=True
    )
    assert written.read_text() == (PLUGIN / "doc" / "codespec.txt").read_text()
    subprocess.run(
        [newest.program, "-u", "NONE", "-i", "NONE", "--headless",
         "-c", f"helptags {tmp_path}", "-c", "q"],
        env=env, check=True, capture_output=True,
    )  # fmt: skip
    tags = {line.split("\t")[0] for line in (tmp_path / "tags").read_text().splitlines()}
    referred = set(written.read_text().split("|")[1::2])
    assert {name for name in referred if name.startswith("codespec")} <= tags
    assert len(tags) > 25


def test_lua_sources_are_clean() -> None:
    packages = ["lua-check", "lua5.1"]
    root = installed(
        lambda: cached("luacheck", [packages, debian], lambda into: debian.unpack(packages, into))
    )
    share = root / "usr/share/lua/5.1"
    libraries = next(iter(root.glob("usr/lib/*-linux-gnu")), root)
    interpreter = next(iter(root.glob("usr/bin/lua5.1")), Path("/usr/bin/lua5.1"))
    lua = [share, "/usr/share/lua/5.1"]
    env = {
        **os.environ,
        "LUA_PATH": ";".join(f"{folder}/?.lua;{folder}/?/init.lua" for folder in lua),
        "LUA_CPATH": f"{libraries}/lua/5.1/?.so;/usr/lib/{libraries.name}/lua/5.1/?.so",
    }
    checker = next(root.glob("usr/bin/luacheck"))
    done = subprocess.run(
        [interpreter, checker, "--no-cache", "--no-color", "--quiet", "--std", "luajit",
         "--globals", "vim", "--max-line-length", "110", PLUGIN],
        env=env, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_setup_nothing_happens(bare: Editor, desk: Desk) -> None:
    bare.open(desk.file("a.py", CODE))
    bare.type("5Gccwith open(")
    assert bare.server_pid == 0
    assert bare.status() == {"kind": "off", "message": "setup() was not called"}
    assert bare.lua("return require('codespec').accept_or('<Tab>')") == "<Tab>"
    assert bare.lua("return require('codespec').statusline()") == ""
    assert bare.lua("return require('codespec').toggle('global', true)") is False
    bare.type("<Esc>:Codespec enable<CR>")
    bare.wait_for(lambda: "setup() was not called, see :help codespec-install" in bare.messages)
    assert bare.server_pid == 0
    bare.type(":checkhealth codespec<CR>")
    bare.wait_for(lambda: "setup() was not called" in bare.text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("debouce_ms = 5", 'Did you mean "debounce_ms"?'),
        ("nonsense = 5", "Known: cmd,"),
        ("debounce_ms = '5'", 'option "debounce_ms" is a string; give a number'),
        ("cmd = {}", "is a list such as"),
        ("ghost_text = 'mine'", "is 'own', 'builtin' or 'none'"),
    ],
)
def test_options_that_cannot_be(bare: Editor, options: str, message: str) -> None:
    said = bare.lua(f"return select(2, pcall(require('codespec').setup, {{ {options} }}))")
    assert message in said


def test_a_missing_program_is_named(newest: Neovim, desk: Desk, start: Start) -> None:
    editor = start(newest, desk, "cmd = { '/nowhere/codespec', 'lsp' }")
    editor.open(desk.file("a.py", CODE))
    assert "/nowhere/codespec" in editor.wait_for_status("error")
    editor.type(":checkhealth codespec<CR>")
    editor.wait_for(lambda: "/nowhere/codespec" in editor.text)


def test_a_program_that_cannot_be_run_is_said_once(
    neovim: Neovim, desk: Desk, start: Start
) -> None:
    """The program belongs to an environment whose Python is gone."""
    program = desk.path / "moved"
    program.write_text("#!/nowhere/python3\n")
    program.chmod(0o755)
    editor = start(neovim, desk, f"cmd = {{ '{program}', 'lsp' }}")
    for name in ("a.py", "b.py"):
        editor.open(desk.file(name, CODE))
    said = editor.wait_for_status("error")
    assert f"{program} cannot be run" in said
    editor.type(":Codespec restart<CR>")
    assert editor.wait_for_status("error") == said
    assert "Spawning" not in editor.messages
    editor.type(":Codespec log<CR>")
    editor.wait_for(lambda: editor.messages.count(f"codespec: {program} cannot be run") > 1)
    assert len(editor.request("nvim_list_wins")) == 1
    assert editor.request("nvim_buf_get_name", 0).endswith("b.py")
    editor.type(":checkhealth codespec<CR>")
    editor.wait_for(lambda: f"{program} --version fails: ENOENT" in editor.text)


def test_health_of_a_healthy_one(neovim: Neovim, desk: Desk, start: Start) -> None:
    editor = start(neovim, desk)
    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.type(":checkhealth codespec<CR>")
    editor.wait_for(lambda: "The server says: ready: codespec-base" in editor.text)
    assert "codespec, version" in editor.text
    assert "ERROR" not in editor.text
    assert "WARNING" not in editor.text


def test_health_knows_the_mapping_that_the_readme_shows(
    newest: Neovim, desk: Desk, start: Start
) -> None:
    editor = start(newest, desk)
    readme = (PLUGIN / "README.md").read_text()
    editor.lua(next(line for line in readme.splitlines() if "accept_or" in line))
    editor.type(":checkhealth codespec<CR>")
    editor.wait_for(lambda: "<Tab>: a function" in editor.text)


def test_a_server_that_ends_again_and_again_says_where_to_look(
    newest: Neovim, desk: Desk, start: Start
) -> None:
    editor = start(newest, desk, "cmd = { '/bin/sh', '-c', 'echo too old >&2; exit 3' }")
    editor.open(desk.file("a.py", CODE))
    said = editor.wait_for_status("error")
    assert "status 3" in said
    assert ":checkhealth codespec" in said
    editor.type("<CR>:checkhealth codespec<CR>")
    log = editor.lua("return require('vim.lsp.log').get_filename()")
    editor.wait_for(lambda: log in editor.text.replace("\n", ""))
    assert "too old" in Path(log).read_text()


def test_commands_complete_and_explain(bare: Editor) -> None:
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert bare.lua(complete, "Codespec re") == ["restart"]
    assert bare.lua(complete, "Codespec toggle ") == ["buffer", "filetype", "global"]
    assert bare.lua(complete, "Codespec toggle buffer ") == []
    bare.type(":Codespec nonsense<CR>")
    bare.wait_for(lambda: 'no command "nonsense"' in bare.messages)


def test_the_daemons_log_opens(neovim: Neovim, desk: Desk, start: Start) -> None:
    editor = start(neovim, desk, "")  # as most have it: no settings of their own
    editor.open(desk.file("a.py", CODE))
    editor.wait_for_status("ready")
    editor.type(":Codespec log<CR>")
    editor.wait(lambda frame: "codespec daemon 0" in "".join(frame.lines))


def test_explain_says_why_the_file_cannot_be_saved(
    newest: Neovim, desk: Desk, start: Start
) -> None:
    editor = start(newest, desk)
    editor.open(desk.file("a.py", CODE))
    editor.type("ox<Esc>:set readonly<CR>:Codespec explain<CR>")
    said = "codespec: not saved: E45: 'readonly' option is set"
    editor.wait_for(lambda: "\n" + said in "\n" + editor.messages)
    assert not editor.request("nvim_get_mode")["blocking"]


def test_doctor_and_explain_are_about_the_place_at_hand(
    neovim: Neovim, desk: Desk, start: Start
) -> None:
    desk.file(".gitignore", "left_out.py\n")
    # Options of setup() that the command line has to know of.
    settings = "completion = { max_tokens = 7 }, index = { exclude = { 'a,b.sql' } }, model = {}"
    editor = start(neovim, desk, f"settings = {{ {settings} }}")
    editor.open(desk.file("left_out.py", CODE))
    editor.type(":Codespec doctor<CR>")

    def said() -> str:
        """The terminal breaks lines."""
        return editor.text.replace("\n", "")

    editor.wait_for(lambda: "ignored by .gitignore" in said())
    assert "build:" in said()
    assert "completion.max_tokens = 7" in said()
    assert "excluded by index.exclude: a,b.sql" in said()
    editor.type(":close<CR>")
    editor.open(desk.file("a.py", CODE.replace("pass", "x = '😀'; pass", 1)))
    editor.wait_for_status("ready")
    editor.type("5GA<Esc>:Codespec explain<CR>")
    editor.wait_for(lambda: "passes of the model" in editor.text)
    assert "error" not in editor.text


# --- suggestions as text ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tail", "typed", "after", "rest"),
    [
        ("ab)", "", "", "", {"text": "ab)", "replaced": ""}),
        ("ab)", "", "a", "", {"text": "b)", "replaced": ""}),
        ("ab)", "", "x", "", None),
        ("ab)", "", "ab)", "", None),
        # A bracket that stands there, that an editor has put there, that was overtyped.
        ("ab)", "", "a", ")", {"text": "b)", "replaced": ")"}),
        ("ab)", ";", "a", ");", {"text": "b)", "replaced": ")"}),
        ("f(x)\n}", "", "f(", ")", {"text": "x)\n}", "replaced": ")"}),
        ("ab) + 1", "", "ab)", "", {"text": " + 1", "replaced": ""}),
        # What stands there is not in it, is no bracket, or has gone.
        ("ab", "", "a", ")", None),
        ("abc", "", "a", "c", None),
        ("ab", ";", "a", "", None),
        ("ab", ";", "a", "; x", None),
        ("\n  return 1", "", "\n  re", "", {"text": "turn 1", "replaced": ""}),
    ],
)
def test_what_is_left_of_a_suggestion(
    bare: Editor, text: str, tail: str, typed: str, after: str, rest: Any
) -> None:
    found = bare.lua(
        "local text, tail, typed, after = ... "
        "return require('codespec.suggestion').rest({ text = text, tail = tail }, typed, after)",
        text, tail, typed, after,
    )  # fmt: skip
    assert found == rest


def test_how_it_is_laid_out_and_cut(bare: Editor) -> None:
    module = "local m, rest, n = require('codespec.suggestion'), ... "
    layout = module + "local pieces, below = m.layout(rest) return { pieces, below }"
    rest = {"text": "x, y) as f:\n  pass", "replaced": "):"}
    assert bare.lua(layout, rest) == [[[0, "x, y"], [1, " as f"]], ["  pass"]]
    assert bare.lua(layout, {"text": "a\n)", "replaced": ")"}) == [[[0, "a"]], [")"]]
    assert bare.lua(layout, {"text": "\n)", "replaced": ""}) == [[], [")"]]
    n_replaced = module + "return m.n_replaced(rest, n)"
    assert [bare.lua(n_replaced, rest, n) for n in (4, 5, 10, 11, 18)] == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("text", "word", "line"),
    [
        ("foo(bar)\nbaz", "foo", "foo(bar)"),
        ("(bar)", "(", "(bar)"),
        ("  foo bar", "  foo", "  foo bar"),
        ("\n    return x\n}", "\n    return", "\n    return x"),
        ("größe😀 = 1", "größe😀", "größe😀 = 1"),
        ("\n\n", "\n\n", "\n\n"),
    ],
)
def test_words_and_lines(bare: Editor, text: str, word: str, line: str) -> None:
    code = "local m, text = require('codespec.suggestion'), ... return { text:sub(1, m.%s(text)) }"
    assert bare.lua(code % "word_length", text) == [word]
    assert bare.lua(code % "line_length", text) == [line]


def test_nothing_of_a_workspace_is_run(neovim: Neovim, desk: Desk, tmp_path: Path) -> None:
    """A workspace may hold a program of any name, and a PATH or a folder of tools lead there."""
    workspace, good, out = tmp_path / "workspace", tmp_path / "good", tmp_path / "out"
    for folder in (workspace, workspace / "bin", workspace / ".git", good):
        folder.mkdir()
        (folder / "tool").write_text("#!/bin/sh\n")
        (folder / "tool").chmod(0o755)
    for name, to in (
        ("link", workspace / "bin"),
        ("program/tool", workspace / "bin" / "tool"),
        ("through/tool", workspace / "hop"),
        ("above", workspace),
    ):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).symlink_to(to)
    (workspace / "hop").symlink_to(good / "tool")
    (workspace / "good").symlink_to(good)
    hostile = [
        "", ".", "bin", f"{workspace}", f"{workspace}/bin", f"{good}/../workspace/bin",
        f"{out}/link", f"{out}/program", f"{out}/through", f"{out}/above/bin", f"{workspace}/good",
    ]  # fmt: skip
    script = tmp_path / "find.lua"
    script.write_text(
        "local programs = require('codespec.program')\n"
        "local find, find_tool = programs.find, programs.find_tool\n"
        "for path in io.lines(arg[1]) do\n"
        "  vim.env.PATH = path\n"
        "  local alone = find('tool')\n"
        "  vim.env.PATH = path .. ':' .. arg[2]\n"
        "  vim.env.PIPX_BIN_DIR = path\n"
        "  local found = { tostring(alone), tostring(find('tool')), tostring(find_tool('tool')) }\n"
        "  io.write(table.concat(found, ' '), '\\n')\n"
        "end\n"
        "vim.env.PIPX_BIN_DIR = arg[2]\n"
        "local found = { tostring(find('./tool')), find(arg[2] .. '/tool'), find_tool('tool') }\n"
        "io.write(table.concat(found, ' '), '\\n')\n"
    )
    (tmp_path / "paths").write_text("".join(f"{path}\n" for path in hostile))
    options = ("-u", "NONE", "-i", "NONE", "--cmd", f"set rtp^={PLUGIN}", "-l", script)
    env = {**os.environ, **desk.env, **neovim.env}
    for folder in (workspace, workspace / "bin"):
        done = subprocess.run(
            [neovim.program, *options, tmp_path / "paths", good],
            cwd=folder, env=env, capture_output=True, text=True, check=True,
        )  # fmt: skip
        expected = [f"nil {good}/tool nil"] * len(hostile) + [f"nil {good}/tool {good}/tool"]
        assert done.stdout.splitlines() == expected, done.stderr
