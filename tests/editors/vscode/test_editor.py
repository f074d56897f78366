"""The extension in VS Code, with the bundled model: keys in, screen and file out."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.e2e.test_daemon import stopped

from ..recorded import listening, told
from .app import Code, Window, until

CODE = """\
def first(items):
    for item in items:
        print(item)
    return len(items)


def second(items):
    for item in items:
        print(item)
    return len(items)


def third(items):
    """
START = "for it"


@pytest.fixture
def file(window: Window, workspace: Path, request: pytest.FixtureRequest) -> Path:
    """A file of the test's own, open, the cursor at its end."""
    file = workspace / f"{request.node.name.removeprefix('test_')}.py"
    file.write_bytes(CODE.encode())
    window.open(file)
    window.press("Control+End")
    return file


def test_tab_accepts_into_the_buffer(window: Window, file: Path, artifacts: Path) -> None:
    window.type(START)
    ghost = window.wait_for_ghost()
    window.page.screenshot(
        path=artifacts / "vscode-suggestion.png",
        clip={"x": 328, "y": 36, "width": 520, "height": 400},
    )
    window.press("Tab")
    window.wait_for_text(CODE + START + ghost)
    window.wait_for_status("codespec: ready")


def test_acceptance_word_by_word_and_line_by_line(window: Window, file: Path) -> None:
    window.type(START)
    ghost = window.wait_for_ghost()
    line = ghost.split("\n")[0]
    window.press("Control+ArrowRight")
    until(lambda: window.ghost != ghost, "a word to be taken")
    rest = window.ghost.split("\n")[0]
    assert rest
    assert line.endswith(rest)
    taken = line.removesuffix(rest)
    window.wait_for_text(CODE + START + taken)
    window.press("Control+Shift+ArrowRight")
    until(lambda: window.ghost.split("\n")[0] != rest, "the line to be taken")
    until(lambda: has(window, CODE + START + line), "the line in the file")


def has(window: Window, text: str) -> bool:
    window.press("Control+KeyS")
    return window.file.read_text().startswith(text)


def test_typing_along_keeps_the_text(window: Window, file: Path) -> None:
    window.type(START)
    line = window.wait_for_ghost().split("\n")[0]
    window.record_frames()
    for n, character in enumerate(line[:-2], start=1):
        window.type(character, delay_ms=0)
        left = line[n:]
        until(lambda left=left: window.ghost.split("\n")[0] == left, f"{left!r} left to type")
        window.wait_for_frame()
    frames = window.recorded_frames()
    assert len(frames) > len(line[:-2])
    assert all(frames), f"{frames.count('')} of {len(frames)} frames without text"


def test_at_the_speed_of_a_typist_no_frame_is_without_text(window: Window, file: Path) -> None:
    """Nothing waits for anything here: keys come as they come."""
    window.type(START)
    ghost = window.wait_for_ghost()
    assert "\n" in ghost, "a line to type and a line to see"
    line = ghost.split("\n")[0]
    window.record_frames()
    window.type(line, delay_ms=90)
    until(lambda: window.ghost.startswith("\n"), "the lines below, when this one is typed")
    frames = window.recorded_frames()
    assert len(frames) > len(line)
    assert all(frames), f"{frames.count('')} of {len(frames)} frames without text"


def test_escape_dismisses(window: Window, file: Path) -> None:
    window.type(START)
    window.wait_for_ghost()
    window.press("Escape")
    window.wait_for_no_ghost()
    window.wait_for_text(CODE + START)


def test_cycling_through_candidates(window: Window, file: Path) -> None:
    window.type("x = ")
    window.command("codespec: Suggest Now")
    seen = [window.wait_for_ghost()]
    window.press("Alt+BracketRight")
    until(lambda: window.ghost not in ("", seen[0]), "another candidate")
    second = window.ghost
    window.press("Alt+BracketLeft")
    until(lambda: window.ghost == seen[0], "the first candidate again")
    window.press("Alt+BracketRight")
    until(lambda: window.ghost == second, "the second candidate again")
    window.press("Tab")
    window.wait_for_text(CODE + "x = " + second)


def test_a_key_asks_where_nothing_comes_by_itself(window: Window, file: Path) -> None:
    """Nothing comes by itself after a deletion."""
    window.page.keyboard.insert_text(START + "y")
    window.press("Backspace", "Alt+Backslash")
    window.wait_for_ghost()


def test_characters_outside_the_basic_plane_before_the_cursor(window: Window, file: Path) -> None:
    before = "face = '😀🎉👩‍💻𝒳'; return len("
    window.page.keyboard.insert_text(before[:-1])
    window.type(before[-1])
    ghost = window.wait_for_ghost()
    window.press("Tab")
    window.wait_for_text(CODE + before + ghost)


def test_line_ends_of_windows_stay(window: Window, file: Path, workspace: Path) -> None:
    file = workspace / "crlf.py"
    file.write_bytes(CODE.replace("\n", "\r\n").encode())
    window.open(file)
    window.press("Control+End")
    window.type("for item in items:\n")
    ghost = window.wait_for_ghost()
    window.press("Tab")

    def is_saved() -> bool:
        window.press("Control+KeyS")
        text = file.read_text()
        return len(text) > len(CODE) and ghost.split("\n")[-1].strip() in text[len(CODE) :]

    until(is_saved, "the text in the file")
    saved = file.read_bytes()
    assert saved.count(b"\n") == saved.count(b"\r\n") > CODE.count("\n")


def test_a_read_only_buffer_gets_nothing(window: Window, file: Path, workspace: Path) -> None:
    window.command("File: Set Active Editor Read-only in Session")
    window.command("codespec: Suggest Now")
    window.type("x")
    # What a writable file gets, at the same place, comes after it.
    file = workspace / "writable.py"
    file.write_text(CODE)
    window.open(file)
    window.press("Control+End")
    window.type(START)
    window.wait_for_ghost()
    window.press("Escape")
    assert (workspace / "a_read_only_buffer_gets_nothing.py").read_text() == CODE


def test_an_excluded_file_stays_silent_and_says_why(window: Window, workspace: Path) -> None:
    (workspace / ".gitignore").write_text("private_*\n")
    file = workspace / "private_keys.py"
    file.write_text(CODE)
    window.open(file)
    window.press("Control+End")
    window.type(START)
    window.wait_for_status("codespec: paused", ".gitignore")
    window.command("codespec: Suggest Now")
    assert not window.ghost
    other = workspace / "public.py"
    other.write_text(CODE)
    window.open(other)
    window.wait_for_status("codespec: ready")


def test_a_language_can_be_switched_off_and_on(window: Window, file: Path) -> None:
    window.command("codespec: Enable or Disable for This Language")
    window.wait_for_status("codespec: off", "disabled for python")
    window.type(START)
    window.command("codespec: Suggest Now")
    assert not window.ghost
    window.command("codespec: Enable or Disable for This Language")
    window.wait_for_status("codespec: ready")
    window.type("em")
    window.wait_for_ghost()


def test_it_is_said_where_the_editor_itself_shows_nothing(
    window: Window, file: Path, workspace: Path
) -> None:
    settings = workspace / ".vscode" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"editor.inlineSuggest.enabled": false}')
    try:
        window.wait_for_status("codespec: off", "editor.inlineSuggest.enabled")
    finally:
        settings.unlink()
    window.wait_for_status("codespec: ready")


def test_what_is_no_file_is_paused(window: Window, file: Path) -> None:
    """VS Code's own settings are such a document; the server is not told of them."""
    window.command("Preferences: Open Default Settings (JSON)")
    window.wait_for_status("codespec: paused", "not a file of this machine")
    window.open(file)
    window.wait_for_status("codespec: ready")


def test_a_worker_killed_in_the_middle(window: Window, file: Path, code: Code) -> None:
    worker_pid = json.loads(code.codespec("daemon", "status", "--json"))["worker_pid"]
    with stopped(worker_pid):
        window.type(START)
        window.wait_for_status("codespec: thinking")
        os.kill(worker_pid, signal.SIGKILL)
        until(lambda: "SIGKILL" in window.status or "ready" in window.status, "what happened")
    window.wait_for_status("codespec: ready")
    window.type("em")
    window.wait_for_ghost()
    assert json.loads(code.codespec("daemon", "status", "--json"))["worker_pid"] != worker_pid


def test_restart(window: Window, file: Path) -> None:
    with window.ready_again():
        window.command("codespec: Restart")
    window.type(START)
    window.wait_for_ghost()


def test_a_program_that_is_missing_or_wrong_is_said(
    window: Window, code: Code, tmp_path: Path
) -> None:
    good = code.program
    wrong = tmp_path / "codespec"
    wrong.write_text("#!/bin/sh\nexit 3\n")
    code.set_program(str(wrong))
    window.wait_for_status("codespec: error", str(wrong), "cannot be run")
    wrong.chmod(0o755)
    window.command("codespec: Restart")
    window.wait_for_status("codespec: error", "see the log")
    code.set_program("/nowhere/codespec")
    window.wait_for_status("codespec: error", "/nowhere/codespec", "not a file")
    code.set_program("")
    window.wait_for_status("codespec: error", "codespec is not installed")
    code.set_program(good)
    window.wait_for_status("codespec: ready")


def test_where_the_cursor_rests_is_told(
    window: Window, file: Path, code: Code, tmp_path: Path
) -> None:
    """So that the server reads ahead what a first suggestion there needs."""
    good = code.program
    with window.ready_again():
        code.set_program(listening(good, tmp_path))
    try:

        def lines() -> list[int | None]:
            """Lines of the places that were told; None without one."""
            found = told(tmp_path, "textDocument/didFocus")
            assert all(params["textDocument"]["uri"].endswith(file.name) for params in found)
            return [params.get("position", {}).get("line") for params in found]

        window.press("Control+Home")
        until(lambda: 0 in lines(), "the first line told")
        window.press("ArrowDown", "ArrowDown", "ArrowDown")
        until(lambda: lines()[-1] == 3, "the line where it rests")
        window.command("codespec: Enable or Disable in This File")
        window.wait_for_status("codespec: off")
        window.press("Control+End")
        until(lambda: lines()[-1] is None, "no place where nothing is wanted")
        window.command("codespec: Enable or Disable in This File")
    finally:
        with window.ready_again():
            code.set_program(good)


def test_a_workspace_chooses_no_program_and_switches_nothing_on(
    window: Window, file: Path, workspace: Path
) -> None:
    evil = workspace / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {workspace}/was_run\n")
    evil.chmod(0o755)
    window.command("codespec: Enable or Disable for This Language")
    window.wait_for_status("codespec: off", "python")
    (workspace / ".vscode").mkdir(exist_ok=True)
    settings = {"codespec.path": str(evil), "codespec.enabled": True}
    (workspace / ".vscode" / "settings.json").write_text(json.dumps(settings))
    window.command("codespec: Restart")
    window.command("codespec: Enable or Disable in This File")
    window.wait_for_status("codespec: off", "in this file")
    window.command("codespec: Enable or Disable in This File")
    window.wait_for_status("codespec: off", "disabled for python")
    (workspace / ".vscode" / "settings.json").unlink()
    window.command("codespec: Enable or Disable for This Language")
    window.wait_for_status("codespec: ready")
    assert not (workspace / "was_run").exists()


def test_what_was_shown_and_accepted_is_counted(window: Window, file: Path, code: Code) -> None:
    def counted() -> tuple[int, int]:
        found = json.loads(code.codespec("stats", "--json"))["languages"]
        python = [row for row in found if row["language"] == "python"]
        return (python[0]["n_shown"], python[0]["n_accepted_chars"]) if python else (0, 0)

    n_shown, n_accepted_chars = counted()
    window.type(START)
    ghost = window.wait_for_ghost()
    window.press("Control+ArrowRight")
    until(lambda: window.ghost != ghost, "a word to be taken")
    window.command("codespec: Restart")  # which writes what was counted
    until(lambda: counted()[0] > n_shown and counted()[1] > n_accepted_chars, "statistics")
    window.wait_for_status("codespec: ready")


def test_a_first_start_without_an_index_and_two_windows_on_one_daemon(
    window: Window, code: Code, browser: Browser, tmp_path: Path, artifacts: Path
) -> None:
    folder = tmp_path / "fresh"
    folder.mkdir()
    assert str(folder) not in code.codespec("index", "--status")
    before = code.daemon(n_editors=1)
    file = folder / "main.py"
    file.write_text(CODE)
    other = Window(code, browser, file)
    try:
        other.wait_for_status("codespec: ready")
        other.press("Control+End")
        other.type(START)
        other.wait_for_ghost()
        other.screenshot(artifacts / "vscode-first-start.png")
        assert code.daemon(n_editors=2)["pid"] == before["pid"]
        until(lambda: str(folder) in code.codespec("index", "--status"), "an index")
    finally:
        other.close()
