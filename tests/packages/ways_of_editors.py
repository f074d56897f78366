"""Ways to have codespec in an editor, from an empty home to the first suggestion on the screen."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.editors import chromium
from tests.editors.neovim.install import SUITES, install
from tests.editors.terminal import Terminal
from tests.editors.vscode import install as vscode
from tests.editors.vscode.app import Code, Window, launch

from .ways_of_users import CODE, ROOT, User

README = ROOT / "editor-plugins" / "neovim" / "README.md"
ADDRESS = "https://example.org/codespec.git"
GHOST = "80a0c0"
BEGUN, TYPED = CODE.rsplit("\n", 1)[0] + "\n", "        result "
OF_TESTS = f"""
vim.opt.termguicolors = true
vim.opt.autoindent = false
vim.cmd('autocmd ColorScheme,VimEnter * highlight CodespecGhostText guifg=#{GHOST}')
"""


def _codespec(user: User) -> None:
    wheel = next((ROOT / "dist").glob("codespec-*.whl"))
    user.step("installed", "uv", "tool", "install", "--python", sys.executable, wheel)
    user.step("built", "codespec", "setup")


def _file(user: User) -> Path:
    folder = user.home / "project"
    (folder / ".git").mkdir(parents=True)
    file = folder / "total.py"
    file.write_text(BEGUN)
    return file


def _from_readme(word: str) -> str:
    """The block of the plug-in's README with this word."""
    blocks = re.findall(r"```lua\n(.*?)```", README.read_text("utf-8"), re.S)
    return next(block for block in blocks if word in block)


def _in_neovim(user: User, init: str, *, says: str = "", key: str = "") -> None:
    """says: what the editor says about the installation, upon which the user presses this key."""
    newest = install(max(SUITES))
    config = user.home / ".config" / "nvim" / "init.lua"
    config.parent.mkdir(parents=True)
    config.write_text(init.replace(ADDRESS, ROOT.as_uri()) + OF_TESTS)
    file = _file(user)
    user.say("~/.config/nvim/init.lua:\n" + config.read_text("utf-8").strip())
    user.say(f"$ nvim {file}")
    with user.clock("suggested"):
        env = {**user.env, **newest.env}
        terminal = Terminal([str(newest.program), str(file)], file.parent, env)
        try:
            if says:
                terminal.wait_for(says)
                terminal.type(key)
            terminal.wait_for("def total")
            terminal.type("G$")
            terminal.wait_for("for value")
            terminal.type("o" + TYPED)
            terminal.wait(lambda: terminal.in_colour(GHOST))
            user.say(f"suggested: {terminal.in_colour(GHOST)!r}")
        finally:
            terminal.close()


def _lazy(user: User, spec: str) -> str:
    lazy = Path(os.environ.get("NEOVIM_PLUGINS", ""), "lazy.nvim")
    assert lazy.is_dir(), "NEOVIM_PLUGINS names no folder with a clone of lazy.nvim"
    return (
        f"vim.opt.rtp:prepend('{lazy}')\n"
        f"require('lazy').setup({{ spec = {{ {spec} }}, rocks = {{ enabled = false }} }})\n"
    )


def by_lazy(user: User) -> None:
    _codespec(user)
    _in_neovim(user, _lazy(user, _from_readme("plugin.dir")), says="Installed (1)", key="q")


def by_lazy_folder(user: User) -> None:
    _codespec(user)
    user.step("installed", "git", "clone", "--quiet", ROOT, user.home / "src" / "codespec")
    _in_neovim(user, _lazy(user, _from_readme("dir = '~/src")))


def by_vim_pack(user: User) -> None:
    _codespec(user)
    _in_neovim(user, _from_readme("vim.pack"), says="nstall", key="y")


def by_runtimepath(user: User) -> None:
    _codespec(user)
    user.step("installed", "git", "clone", "--quiet", ROOT, user.home / "src" / "codespec")
    _in_neovim(user, _from_readme("runtimepath:prepend"))


def by_vscode(user: User) -> None:
    """VS Code's server in a browser, which is what there is of it without a screen."""
    _codespec(user)
    program, browser = vscode.install(), chromium.install()
    vsix = user.home / "codespec.vsix"
    vsix.write_bytes(vscode.extension().read_bytes())
    file = _file(user)
    with sync_playwright() as playwright:
        shown_in = launch(playwright, browser)
        user.say("$ code --install-extension codespec.vsix && code project")
        with user.clock("suggested"):
            code = Code(program, vsix, user.home / "vscode", user.env, program="")
            try:
                window = Window(code, shown_in, file)
                window.press("Control+End")
                window.wait_for_status("ready")
                window.type(TYPED)
                user.say(f"suggested: {window.wait_for_ghost()!r}")
                user.say(json.dumps(window.status))
            finally:
                code.close()
        shown_in.close()
