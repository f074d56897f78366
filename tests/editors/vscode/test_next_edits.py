"""Next edits in VS Code, with an engine that replaces "old" by "new": keys in, screen and file
out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests import scripted_daemon

from ..conftest import end_daemons
from .app import Code, Window, home_in, until
from .conftest import Parts

TEXT = "first\nx = old(1)\nmiddle\nold(2)\nlast\n"
DRAWN = """() => {
  const after = (e) => getComputedStyle(e, '::after').content.replace(/^"|"$/g, '');
  const spans = [...document.querySelectorAll('.monaco-editor .view-line span span')];
  const isStruck = (e) => getComputedStyle(e).textDecorationLine.includes('line-through');
  return {
    old: spans.filter(isStruck).map((e) => e.textContent).join(''),
    added: spans.map(after).filter((words) => words !== 'none').join('|'),
  };
}"""


@pytest.fixture
def desk(parts: Parts, tmp_path: Path) -> Iterator[Code]:
    """A user whose daemon has the scripted engine, and who asks for suggestions by hand."""
    env = {**home_in(tmp_path), "CODESPEC_MODEL_N_THREADS": "1"}
    command = [sys.executable, scripted_daemon.SCRIPT, "ok"]
    daemon = subprocess.Popen(command, env=env, cwd=tmp_path)
    until(lambda: list((tmp_path / "run").rglob("*.sock")), "the daemon to listen")
    code = Code(parts.server_main, parts.vsix, tmp_path / "code", env)
    (tmp_path / "workspace").mkdir()
    unhurried = {"completion": {"deadline_auto_ms": 60_000}}
    with code.settings({"codespec.trigger": "manual", "codespec.server": unhurried}):
        yield code
    code.close()
    daemon.terminate()
    daemon.wait(60)
    end_daemons(tmp_path / "run")


def drawn(window: Window) -> dict[str, str]:
    found: dict[str, str] = window.page.evaluate(DRAWN)
    return {name: words.replace("\u00a0", " ") for name, words in found.items()}


def wait_for_hint(window: Window, words: str) -> None:
    until(lambda: words in drawn(window)["added"], lambda: f"{words}, not {drawn(window)}")


@pytest.mark.timeout(240, func_only=True)  # many steps
def test_next_edits(desk: Code, browser: Browser, tmp_path: Path, artifacts: Path) -> None:
    """In one window, which takes long to open."""
    workspace = tmp_path / "workspace"
    file = workspace / "a.py"
    file.write_text(TEXT)
    window = Window(desk, browser, file)
    try:
        window.wait_for_status("codespec: ready")
        # Elsewhere in the file: drawn, gone to, made; the next one comes without a key.
        window.press("Control+Home", "End")
        window.type("y")
        wait_for_hint(window, "→ line 2 (1 of 2)")
        assert drawn(window)["old"] == "old"
        assert "new" in drawn(window)["added"]
        window.screenshot(artifacts / "vscode-next-edit.png")
        # What is suggested at the cursor goes first.
        window.press("Alt+\\")
        until(lambda: "firsty" in window.ghost, lambda: f"{window.ghost!r} {drawn(window)}")
        until(lambda: not any(drawn(window).values()), lambda: str(drawn(window)))
        window.press("Escape")
        window.wait_for_no_ghost()
        window.press("ArrowLeft", "End")
        wait_for_hint(window, "→ line 2 (1 of 2)")
        window.press("Tab")
        until(lambda: "→" not in drawn(window)["added"], "the cursor to be there")
        before = TEXT.replace("first", "firsty")
        window.wait_for_text(before)
        window.press("Tab")
        made = before.replace("old(1)", "new(1)")
        window.wait_for_text(made)
        wait_for_hint(window, "→ line 4 (2 of 2)")
        window.press("Control+KeyZ")
        window.wait_for_text(before)
        wait_for_hint(window, "→ line 4 ")

        # One that was undone does not come again, nor does a dismissed one.
        window.press("Escape")
        until(lambda: not drawn(window)["added"], "nothing to be drawn")
        window.press("Control+Home", "End")
        window.type("zz")
        window.wait_for_text(before.replace("firsty", "firstyzz"))
        assert not drawn(window)["added"]

        # An edit of another file is seen before it is made.
        other = workspace / "b.py"
        other.write_text("old(9)\n")
        here = workspace / "c.py"
        here.write_text(f"elsewhere {other}\nx\n")
        window.open(here)
        window.press("Control+End")
        window.type("y")
        wait_for_hint(window, "→ b.py, line 1")
        window.press("Tab")
        title = '.tab.active[data-resource-name="b.py"]'
        window.page.locator(title).first.wait_for()
        until(lambda: drawn(window)["old"] == "old", lambda: str(drawn(window)))
        window.file = other
        window.wait_for_text("old(9)\n")
        window.press("Tab")
        window.wait_for_text("new(9)\n")

        # One that only adds to the cursor's line is ghost text.
        ghost = workspace / "d.py"
        ghost.write_text("x\nprint(a)\n")
        window.open(ghost)
        window.press("Control+Home", "ArrowDown", "End", "ArrowLeft")
        window.type(" add")
        until(lambda: "more" in window.ghost, lambda: f"{window.ghost!r} {drawn(window)}")
        window.press("Tab")
        window.wait_for_text("x\nprint(a add more)\n")
    finally:
        window.close()
