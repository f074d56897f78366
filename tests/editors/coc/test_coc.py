"""coc.nvim with the lines of its page, in Vim and in Neovim, each in a terminal.

No package source has it built: with a built clone of it (`npm ci && npm run build`) as coc.nvim in
the folder that NEOVIM_PLUGINS names, its own code is tried.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.editors import node
from tests.editors.neovim.conftest import Desk, clear_up, set_up
from tests.editors.neovim.install import SUITES, install
from tests.editors.neovim.test_neighbours import clone
from tests.editors.neovim.test_suggestions import CODE
from tests.editors.recorded import listening, told
from tests.editors.terminal import TIMEOUT_S, Terminal

from ..conftest import installed

PAGE = Path(__file__).parents[3] / "docs" / "editors" / "coc.md"
PROGRAM = Path(sys.executable).parent / "codespec"
GHOST = "80a0c0"
INIT = """\
set nocompatible nobackup noswapfile hidden termguicolors shortmess+=I
filetype plugin indent on
if !has('nvim') | set t_RK= t_AL= t_al= t_cs= t_CS= t_DL= t_dl= | endif
let g:coc_node_path = '{node}'
let g:coc_config_home = '{folder}'
let g:coc_data_home = '{folder}/data'
set runtimepath^={clone}
autocmd User CocNvimInit highlight CocInlineVirtualText guifg=#{ghost}
{lines}
"""


Editor = Callable[[], tuple[list[str], dict[str, str]]]
"""Gives a command, and variables that it needs; skips the test where there is none."""


def block(language: str) -> str:
    """The page's block of code in this language."""
    return PAGE.read_text("utf-8").partition(f"```{language}\n")[2].partition("```")[0]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = set_up(tmp_path, tmp_path / "cache")
    yield desk
    clear_up(desk)


def vim() -> tuple[list[str], dict[str, str]]:
    """The system's Vim, where coc.nvim takes it."""
    program = shutil.which("vim")
    if not program:
        pytest.skip("there is no Vim")
    asks = "if !has('patch-9.0.0438') || !has('textprop') | cquit | endif | quit"
    if subprocess.run([program, "-u", "NONE", "-es", "-c", asks], check=False).returncode:
        pytest.skip("coc.nvim needs Vim 9.0.0438")
    return [program], {}


def neovim() -> tuple[list[str], dict[str, str]]:
    newest = installed(lambda: install(max(SUITES)))
    return [str(newest.program)], newest.env


@pytest.mark.parametrize("editor", [vim, neovim])
def test_a_suggestion_comes_by_itself_and_tab_takes_it(
    desk: Desk, tmp_path: Path, artifacts: Path, editor: Editor
) -> None:
    command, env = editor()
    messages, coc = tmp_path / "messages", tmp_path / "coc"
    messages.mkdir()
    coc.mkdir()
    program = listening(str(PROGRAM), messages)
    settings = json.loads(block("json"))
    settings["languageserver"]["codespec"]["command"] = program
    (coc / "coc-settings.json").write_text(json.dumps(settings))
    init = coc / "init.vim"
    init.write_text(
        INIT.format(
            node=node.PROGRAM, folder=coc, clone=clone("coc.nvim"), ghost=GHOST, lines=block("vim")
        )
    )
    file = desk.file("a.py", CODE)
    terminal = Terminal(
        [*command, "-u", str(init), "-i", "NONE", str(file)],
        desk.workspace,
        # The deadline is for users, who do not share their machine with tests.
        {**os.environ, **desk.env, **env, "CODESPEC_COMPLETION_DEADLINE_AUTO_MS": "30000"},
    )

    def ghost() -> str:
        return terminal.in_colour(GHOST)

    try:
        terminal.wait(lambda: told(messages, "textDocument/didOpen"))
        terminal.type("5Gccwith open(")
        terminal.wait(ghost)
        suggested = ghost()
        (artifacts / f"coc-{Path(command[0]).name}.txt").write_text(terminal.text + "\n")
        terminal.type("\t")
        terminal.wait(lambda: told(messages, "workspace/executeCommand"))
        terminal.type("\x1b:w\r")
        terminal.wait(lambda: suggested.split("\n")[0] in file.read_text())
        assert file.read_text().startswith(CODE.partition("    pass")[0] + "    with open(")
        # Asked for by key, with others to choose from.
        terminal.type("Go\rx = ")
        terminal.wait(ghost)
        terminal.type("\x0c")  # C-l
        terminal.wait(lambda: "(1/" in terminal.text)
    finally:
        # What coc.nvim started ends with an editor that is left, not with one that is killed.
        started = psutil.Process(terminal.process.pid).children(recursive=True)
        terminal.type("\x1b:qall!\r")
        terminal.process.expect(pexpect.EOF)
        terminal.close()
        _, alive = psutil.wait_procs(started, TIMEOUT_S)
        for process in alive:
            process.kill()
    assert not alive
