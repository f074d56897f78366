"""The plug-in by the address of its repository, by the lines of its README, with a codespec that
was installed without a checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Desk
from .editor import PLUGIN
from .install import Neovim
from .test_neighbours import clone

ADDRESS = "https://example.org/codespec.git"
SAYS = (
    "lua print(vim.json.encode({require('codespec').is_set_up(), vim.fn.exists(':Codespec'), "
    "require('codespec.config').command()}))"
)


@pytest.fixture
def repository(tmp_path: Path) -> str:
    folder = tmp_path / "repository"
    shutil.copytree(PLUGIN, folder / "editor-plugins" / "neovim")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    return folder.as_uri()


@pytest.fixture
def program(own_desk: Desk) -> Path:
    """A codespec where uv and pipx put programs: the editor does not have it on its PATH."""
    link = own_desk.path / ".local" / "bin" / "codespec"
    link.parent.mkdir(parents=True)
    link.symlink_to(Path(sys.executable).parent / "codespec")
    return link


def lines(word: str) -> str:
    """The block of the README with this word."""
    blocks = re.findall(r"```lua\n(.*?)```", (PLUGIN / "README.md").read_text("utf-8"), re.S)
    (block,) = [block for block in blocks if ADDRESS in block and word in block]
    return block


def said(neovim: Neovim, desk: Desk, init: str) -> str:
    file = desk.path / "init.lua"
    file.write_text(init, "utf-8")
    env = {**os.environ, **desk.env, **neovim.env, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [neovim.program, "--headless", "-u", file, "+" + SAYS, "+qa"],
        cwd=desk.workspace,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stderr + done.stdout


def expected(program: Path) -> str:
    return f'[true,2,["{program}","lsp"]]'


def test_with_lazy(newest: Neovim, own_desk: Desk, repository: str, program: Path) -> None:
    spec = lines("plugin.dir").replace(ADDRESS, repository)
    init = (
        f"vim.opt.rtp:prepend('{clone('lazy.nvim')}')\n"
        f"require('lazy').setup({{ spec = {{ {spec} }}, rocks = {{ enabled = false }} }})\n"
    )
    answer = said(newest, own_desk, init)
    assert expected(program) in answer.replace("\\/", "/")


def test_with_vim_pack(newest: Neovim, own_desk: Desk, repository: str, program: Path) -> None:
    if newest.version < (0, 12):
        pytest.skip("vim.pack is Neovim 0.12's")
    init = lines("vim.pack").replace(ADDRESS, repository)
    answer = said(newest, own_desk, init.replace("  load =", "  confirm = false,\n  load =", 1))
    assert expected(program) in answer.replace("\\/", "/")


def test_without_any_codespec_the_next_step_is_named(newest: Neovim, own_desk: Desk) -> None:
    copy = own_desk.path / "plugin"
    shutil.copytree(PLUGIN, copy)
    init = f"vim.opt.rtp:prepend('{copy}')\nrequire('codespec').setup()\n"
    asked = "print(select(2, require('codespec.config').command()))\n"
    assert "uv tool install" in said(newest, own_desk, init + asked)
