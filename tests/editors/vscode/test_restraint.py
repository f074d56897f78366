"""Fewer, shorter, quieter suggestions in VS Code: keys in, screen out."""

from __future__ import annotations

import json
import time
from pathlib import Path

from playwright.sync_api import Browser

from .app import Code, Window, until
from .test_editor import CODE, START
from .test_editor import file as file


def test_a_workspace_asks_for_no_more_than_its_user(
    browser: Browser, workspace: Path, code: Code
) -> None:
    (workspace / ".vscode").mkdir(exist_ok=True)
    said = workspace / ".vscode" / "settings.json"
    said.write_text(json.dumps({"codespec.trigger": "auto"}))
    file = workspace / "asks_for_more.py"
    file.write_text(CODE)
    with code.settings({"codespec.trigger": "manual"}):
        window = Window(code, browser, file)
        try:
            window.wait_for_status("codespec: ready")
            window.press("Control+End")
            window.type(START)
            window.wait_for_text(CODE + START)
            assert window.ghost == ""
            window.press("Alt+\\")
            assert window.wait_for_ghost()
        finally:
            window.close()
            said.unlink()


def test_manual_and_subtle(window: Window, file: Path, workspace: Path, artifacts: Path) -> None:
    folder = workspace / ".vscode"
    folder.mkdir(exist_ok=True)
    said = folder / "settings.json"
    try:
        # A workspace may ask for less.
        with window.ready_again():
            said.write_text(json.dumps({"codespec.trigger": "manual", "codespec.lines": "single"}))
        window.type(START)
        window.wait_for_text(CODE + START)  # saved, long after an answer would have come
        assert window.ghost == ""
        window.press("Alt+\\")
        ghost = window.wait_for_ghost()
        assert ghost
        assert "\n" not in ghost
        window.press("Escape")
        with window.ready_again():
            said.write_text(json.dumps({"codespec.trigger": "subtle"}))
        window.press("Backspace")
        window.type(START[-1])
        window.wait_for_status("codespec: ready", "a suggestion is ready")
        assert window.ghost == ""
        window.screenshot(artifacts / "vscode-subtle.png")
        window.press("Alt+\\")
        ghost = window.wait_for_ghost()
        # What is left of it stays while words of it are accepted.
        window.press("Control+ArrowRight")
        until(lambda: window.ghost != ghost, "a word to be taken")
        rest = window.wait_for_ghost()
        assert rest != ghost
        assert ghost.endswith(rest)
        window.press("Tab")
        window.wait_for_text(CODE + START + ghost)
    finally:
        said.unlink(missing_ok=True)
        window.wait_for_status("codespec: ready")


GUESS = "label = "
"""Begins a line that nothing in the file tells the end of; `START` is nearly certain to go on as in
the functions above."""


def test_less_eager_the_editor_shows_what_is_likely_and_the_rest_when_asked(
    window: Window, file: Path, browser: Browser, workspace: Path, code: Code
) -> None:
    window.type(GUESS)

    def is_suggested() -> bool:
        # On a busy machine the first answer may come late; it is kept, and asked for again.
        again_at = time.monotonic() + 1.0
        while time.monotonic() < again_at:
            if window.ghost:
                return True
        window.press("Backspace")
        window.type(GUESS[-1])
        return False

    until(is_suggested, "a guess, as nothing is held back")
    other = workspace / "less_eager.py"
    other.write_text(CODE)
    with code.settings({"codespec.eagerness": "low"}):
        quiet = Window(code, browser, other)
        try:
            quiet.wait_for_status("codespec: ready")
            quiet.press("Control+End")
            quiet.type(GUESS)
            quiet.wait_for_text(CODE + GUESS)  # saved, long after an answer would have come
            quiet.press("Backspace")
            quiet.type(GUESS[-1])
            quiet.wait_for_text(CODE + GUESS)
            assert quiet.ghost == ""
            quiet.press("Alt+\\")
            assert quiet.wait_for_ghost()
            quiet.press("Escape")
            quiet.type("1\n" + START)
            assert quiet.wait_for_ghost().startswith("em in items:")
        finally:
            quiet.close()
