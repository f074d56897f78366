"""Two different editors, one user: one daemon serves both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_daemon import stopped

from ..conftest import installed
from ..neovim.conftest import PATIENT
from ..neovim.editor import Editor
from ..neovim.install import SUITES
from ..neovim.install import install as install_neovim
from .app import PROGRAM, Code, Window
from .test_editor import CODE, START


@pytest.fixture
def before(window: Window, code: Code) -> dict[str, int]:
    """The daemon's status while VS Code is its only editor."""
    return code.daemon(n_editors=1)


@pytest.fixture
def neovim(
    before: dict[str, int], code: Code, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Editor]:
    """A Neovim of the same user, in the same workspace. Its server starts with it, for the empty
    buffer."""
    for name in [name for name in os.environ if name.startswith("CODESPEC_")]:
        monkeypatch.delenv(name)  # folders of the test's own
    program = installed(lambda: install_neovim(max(SUITES)))
    # A deadline is no setting of the daemon's.
    options = f"{{cmd={{'{PROGRAM}', 'lsp'}}, {PATIENT}}}"
    editor = Editor(program, code.env, workspace, options)
    yield editor
    editor.close()


def test_both_get_suggestions_from_one_daemon(
    window: Window, code: Code, before: dict[str, int], neovim: Editor, workspace: Path
) -> None:
    ours, theirs = workspace / "in_code.py", workspace / "in_neovim.py"
    for file in (ours, theirs):
        file.write_text(CODE)
    window.open(ours)
    window.press("Control+End")
    neovim.open(theirs)
    neovim.wait_for_status("ready")
    assert code.daemon(n_editors=2)["pid"] == before["pid"]

    # Both ask while the model is busy with neither.
    with stopped(before["worker_pid"]):
        window.type(START)
        neovim.type(f"GA{START}")
        neovim.wait_for(lambda: neovim.lua("return require('codespec.inline').thinking()"))
    shown = neovim.wait_for_ghost().ghost
    window.press("Escape")
    window.type("e", delay_ms=0)
    assert window.wait_for_ghost()
    assert shown
    # One server dies, the other goes on; the editor starts it anew.
    os.kill(neovim.server_pid, 9)
    window.press("Escape")
    window.type("m", delay_ms=0)
    assert window.wait_for_ghost()
    assert code.daemon(n_editors=2)["pid"] == before["pid"]
