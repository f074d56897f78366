"""The extension with a language server that ends, never begins, or answers no more; and with
settings that a workspace brings for it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ..recorded import answers, listening, told
from .app import Code, Window, until
from .test_editor import CODE, START


@pytest.fixture
def program(window: Window, code: Code, tmp_path: Path) -> Iterator[Path]:
    """A program of the test's own in the settings, which notes its process id in `pid`."""
    good, program = code.program, tmp_path / "codespec"
    noted = f"echo $$ > {tmp_path}/new\nmv {tmp_path}/new {tmp_path}/pid\n"
    program.write_text(f'#!/bin/sh\n{noted}exec {good} "$@"\n')
    program.chmod(0o755)
    with window.ready_again():
        code.set_program(str(program))
    yield program
    if is_alive(pid_of(program)):
        with window.ready_again():
            code.set_program(good)
    else:
        code.set_program(good)
        window.wait_for_status("codespec: ready")


def pid_of(program: Path) -> int:
    return int((program.parent / "pid").read_text())


def is_alive(pid: int) -> bool:
    """One that has ended and that nobody has asked about is not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_server_that_is_killed_is_started_again(
    window: Window, program: Path, workspace: Path
) -> None:
    file = workspace / "killed.py"
    file.write_text(CODE)
    window.open(file)
    window.press("Control+End")
    pid = pid_of(program)
    with window.ready_again():
        os.kill(pid, signal.SIGKILL)
    assert pid_of(program) != pid, "another server"
    window.type(START)
    window.wait_for_ghost()
    window.press("Escape")


def test_a_program_that_is_gone_when_its_server_ends_is_said(window: Window, program: Path) -> None:
    text = program.read_text()
    program.unlink()
    os.kill(pid_of(program), signal.SIGKILL)
    window.wait_for_status("codespec: error", str(program), "not a file")
    program.write_text(text)
    program.chmod(0o755)
    window.command("codespec: Restart")
    window.wait_for_status("codespec: ready")


def test_the_last_words_of_a_program_that_is_too_old_are_said(
    window: Window, program: Path
) -> None:
    program.write_text("#!/bin/sh\necho \"Error: No such command 'lsp'.\" >&2\nexit 2\n")
    window.command("codespec: Restart")
    window.wait_for_status("codespec: error", "status 2", "No such command 'lsp'", "see the log")


def test_nobody_waits_for_a_program_that_never_answers(
    window: Window, program: Path, code: Code
) -> None:
    # A child of it that outlives it keeps its outputs open.
    program.write_text(f"#!/bin/sh\nsleep 50 &\necho $! > {program.parent}/pid\nwait\n")
    pid = pid_of(program)
    window.command("codespec: Restart")
    until(lambda: pid_of(program) != pid, "the program that does not answer")
    began = time.monotonic()
    with window.ready_again():
        code.set_program(code.program)
    assert time.monotonic() - began < 30, "half of what such a program is given"
    os.kill(pid_of(program), signal.SIGKILL)
    until(lambda: not is_alive(pid_of(program)), "the end of the child")


def test_a_server_that_hangs_does_not_outlive_a_restart(window: Window, program: Path) -> None:
    pid = pid_of(program)
    os.kill(pid, signal.SIGSTOP)
    with window.ready_again():
        window.command("codespec: Restart")
    assert not is_alive(pid), "its end"


def test_a_workspace_switches_no_index_on(
    window: Window, code: Code, workspace: Path, tmp_path: Path
) -> None:
    good = code.program
    machine = code.folder / "user" / "Machine" / "settings.json"
    program = listening(good, tmp_path)
    of_workspace = workspace / ".vscode" / "settings.json"
    of_workspace.parent.mkdir(exist_ok=True)
    try:
        of_workspace.write_text('{"codespec.indexWorkspace": true}')
        settings = {
            "codespec.path": program,
            "codespec.indexWorkspace": False,
            "codespec.server": {"index": {"enabled": True, "max_file_bytes": 999_999}},
        }
        with window.ready_again():
            machine.write_text(json.dumps(settings))
        # Two files were written: the last server has seen both.
        with window.ready_again():
            window.command("codespec: Restart")
        options = told(tmp_path, "initialize")[-1]["initializationOptions"]
        asked = {"enabled": False, "max_file_bytes": 999_999}
        assert options["index"] == asked
        # The server asks again once it runs, and is told the same.
        until(lambda: answers(tmp_path), "the settings that the server asked for")
        assert answers(tmp_path)[-1]["index"] == asked
    finally:
        of_workspace.unlink()
        with window.ready_again():
            code.set_program(good)


def test_settings_that_are_none_are_said_or_left_out(window: Window, code: Code) -> None:
    good = code.program
    machine = code.folder / "user" / "Machine" / "settings.json"

    def set_server(settings: object) -> None:
        machine.write_text(json.dumps({"codespec.path": good, "codespec.server": settings}))

    try:
        for nothing in (None, {"completion": None}):
            set_server({"completion": 3})
            window.wait_for_status("codespec: error", "completion must be a table")
            set_server(nothing)
            window.wait_for_status("codespec: ready")
    finally:
        code.set_program(good)


@pytest.mark.parametrize("how", ["close", "reload"])
def test_a_server_that_hangs_does_not_outlive_its_window(
    window: Window, code: Code, browser: Browser, workspace: Path, how: str
) -> None:
    file = workspace / "hangs.py"
    file.write_text(CODE)
    until(code.servers, "the first window's server")
    before = code.servers()
    other = Window(code, browser, file)
    try:
        other.wait_for_status("codespec: ready")
        (pid,) = (pid for host, pid in code.servers().items() if host not in before)
        os.kill(pid, signal.SIGSTOP)
        if how == "reload":
            other.page.reload()
            other.wait_for_status("codespec: ready")
    finally:
        other.close()
    until(lambda: not is_alive(pid), "its end")
