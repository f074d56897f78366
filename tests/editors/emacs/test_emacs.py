"""Emacs with the lines of its page, as a program in a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.conftest import installed
from tests.editors.neovim.conftest import Desk, clear_up, set_up
from tests.editors.terminal import Terminal

from .install import Emacs, install

PAGE = Path(__file__).parents[3] / "docs" / "editors" / "emacs.md"
PROGRAM = Path(sys.executable).parent / "codespec"
CODE = """\
def first(items):
    for item in items:
        print(item)
    return len(items)


def second(items):
    """
# Like a user's own: no question is asked.
QUIET = """\
(setq inhibit-startup-screen t make-backup-files nil
      lsp-auto-guess-root t lsp-enable-suggest-server-download nil
      lsp-warn-no-matched-clients nil lsp-headerline-breadcrumb-enable nil)
"""


def started(emacs: Emacs, desk: Desk, file: Path) -> Terminal:
    _, _, rest = PAGE.read_text().partition("```elisp\n")
    lines = rest.partition("```")[0].replace("~/src/codespec/.venv/bin/codespec", str(PROGRAM))
    init = desk.path / "init.el"
    init.write_text(QUIET + lines)
    # The deadline is for users, who do not share their machine with tests.
    env = {**os.environ, **desk.env, **emacs.env}
    env["CODESPEC_COMPLETION_DEADLINE_AUTO_MS"] = "30000"
    return Terminal([*emacs.command, "-l", str(init), str(file)], desk.workspace, env)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = set_up(tmp_path, tmp_path / "cache")
    yield desk
    clear_up(desk)


def test_a_suggestion_comes_by_itself_and_tab_takes_it(desk: Desk, artifacts: Path) -> None:
    emacs = installed(install)
    file = desk.file("a.py", CODE)
    terminal = started(emacs, desk, file)
    try:
        terminal.wait_for("codespec: ready")
        terminal.type("\x1b>for it")  # M->: to the end
        terminal.wait_for("    for it", "Completion 1/1")
        terminal.wait(lambda: terminal.text.count("for item in items:") >= 2)
        (artifacts / "emacs.txt").write_text(terminal.text + "\n")
        terminal.type("\t\x18\x13")  # C-x C-s
        terminal.wait(lambda: len(file.read_text()) > len(CODE))
        assert file.read_text().startswith(CODE + "for item in items:")
        # Asked for by key, after it was hidden.
        terminal.type("\r    return ")
        terminal.wait_for("Completion 1/1")
        terminal.type("\x07")  # C-g
        terminal.wait(lambda: "Completion 1/1" not in terminal.text)
        terminal.type("\x1b\\")
        terminal.wait_for("Completion 1/")
    finally:
        terminal.close()
