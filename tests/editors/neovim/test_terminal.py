"""Neovim as a program in a terminal: its output as a terminal emulator shows it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

from tests.e2e.conftest import wait_until_gone

from .conftest import PATIENT, Desk
from .editor import TIMEOUT_S, command
from .install import Neovim
from .screen import GHOST_RGB, svg
from .test_suggestions import CODE, OPEN, TAB

ROWS, COLUMNS = 19, 72
GHOST = f"{GHOST_RGB:06x}"

STACK = """\
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    def __len__(self):


stack = Stack()
"""


class Terminal:
    def __init__(self, neovim: Neovim, desk: Desk, *arguments: str) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self.screen)
        program, *more = command(
            neovim, "-c", f"lua require('codespec').setup({{{PATIENT}}})", *arguments
        )
        self.process = pexpect.spawn(
            program,
            more,
            dimensions=(ROWS, COLUMNS),
            cwd=str(desk.workspace),
            env={
                **os.environ, **desk.env, **neovim.env,
                "TERM": "xterm-256color", "COLORTERM": "truecolor",
            },
        )  # fmt: skip

    def wait(self, matches: Callable[[], object]) -> None:
        give_up_at = time.monotonic() + TIMEOUT_S
        while not matches():
            assert time.monotonic() < give_up_at, "\n".join(self.screen.display)
            with contextlib.suppress(pexpect.TIMEOUT):
                self._stream.feed(self.process.read_nonblocking(1 << 14, 0.05))

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def ghost(self) -> str:
        """The text that is drawn in the colour of ghost text."""
        rows = [self.screen.buffer[row] for row in range(ROWS)]
        shown = [
            "".join(row[x].data for x in range(COLUMNS) if row[x].fg == GHOST).rstrip()
            for row in rows
        ]
        return "\n".join(line for line in shown if line)

    def picture(self) -> str:
        def colour(fg: str) -> str:
            return "#e0e2ea" if fg == "default" or len(fg) != 6 else f"#{fg}"

        cells = [
            [(cell.data, colour(cell.fg)) for cell in (row[x] for x in range(COLUMNS))]
            for row in (self.screen.buffer[y] for y in range(ROWS))
        ]
        return svg(cells, (self.screen.cursor.y, self.screen.cursor.x))


@pytest.fixture
def terminal(newest: Neovim, desk: Desk) -> Iterator[Terminal]:
    terminal = Terminal(newest, desk, "-c", f"lua {TAB}", str(desk.file("a.py", CODE)))
    yield terminal
    terminal.process.close(force=True)
    wait_until_gone(terminal.process.pid)


def test_in_a_terminal(terminal: Terminal, artifacts: Path) -> None:
    terminal.wait(lambda: "def main():" in terminal.lines)
    terminal.process.send(OPEN)
    terminal.wait(lambda: terminal.ghost)
    shown = terminal.lines
    (artifacts / "neovim.txt").write_text("\n".join(shown) + "\n")
    # The cursor stands before the ghost text, not behind it.
    assert (terminal.screen.cursor.y, terminal.screen.cursor.x) == (4, len("    with open("))
    n_lines = len(terminal.ghost.split("\n"))
    terminal.process.send("\t")
    terminal.wait(lambda: not terminal.ghost)
    last = 4 + n_lines - 1
    terminal.wait(lambda: terminal.screen.cursor.y == last)
    assert terminal.lines[: last + 1] == shown[: last + 1]
    assert terminal.screen.cursor.x == len(shown[last])
    terminal.process.send("\x1b:qall!\r")
    terminal.process.expect(pexpect.EOF)


def test_the_picture_in_the_documentation(newest: Neovim, desk: Desk, artifacts: Path) -> None:
    """Made anew, for whoever looks at it and copies it to editor-plugins/neovim/doc."""
    before = STACK.index("def __len__")
    terminal = Terminal(newest, desk, str(desk.file("stack.py", STACK)))
    try:
        terminal.wait(lambda: "stack = Stack()" in terminal.lines)
        terminal.process.send(f":{STACK[:before].count(chr(10)) + 1}\rA\r")
        terminal.wait(lambda: terminal.ghost)
        (artifacts / "neovim.svg").write_text(terminal.picture())
    finally:
        terminal.process.close(force=True)
        wait_until_gone(terminal.process.pid)
