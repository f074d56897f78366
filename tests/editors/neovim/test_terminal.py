"""Neovim as a program in a terminal: its output as a terminal emulator shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.e2e.conftest import wait_until_gone
from tests.editors.terminal import Terminal

from .conftest import PATIENT, Desk
from .editor import command
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


class NeovimTerminal(Terminal):
    def __init__(self, neovim: Neovim, desk: Desk, *arguments: str) -> None:
        set_up = f"lua require('codespec').setup({{{PATIENT}}})"
        super().__init__(
            command(neovim, "-c", set_up, *arguments),
            desk.workspace,
            {**os.environ, **desk.env, **neovim.env},
            rows=ROWS,
            columns=COLUMNS,
        )

    @property
    def ghost(self) -> str:
        """The text that is drawn in the colour of ghost text."""
        return self.in_colour(GHOST)

    def picture(self) -> str:
        def colour(fg: str) -> str:
            return "#e0e2ea" if fg == "default" or len(fg) != 6 else f"#{fg}"

        cells = [
            [(cell.data, colour(cell.fg)) for cell in (row[x] for x in range(COLUMNS))]
            for row in (self.screen.buffer[y] for y in range(ROWS))
        ]
        return svg(cells, (self.screen.cursor.y, self.screen.cursor.x))


@pytest.fixture
def terminal(newest: Neovim, desk: Desk) -> Iterator[NeovimTerminal]:
    terminal = NeovimTerminal(newest, desk, "-c", f"lua {TAB}", str(desk.file("a.py", CODE)))
    yield terminal
    terminal.close()
    wait_until_gone(terminal.process.pid)


def test_in_a_terminal(terminal: NeovimTerminal, artifacts: Path) -> None:
    terminal.wait(lambda: "def main():" in terminal.lines)
    terminal.type(OPEN)
    terminal.wait(lambda: terminal.ghost)
    shown = terminal.lines
    (artifacts / "neovim.txt").write_text("\n".join(shown) + "\n")
    # The cursor stands before the ghost text, not behind it.
    assert (terminal.screen.cursor.y, terminal.screen.cursor.x) == (4, len("    with open("))
    n_lines = len(terminal.ghost.split("\n"))
    terminal.type("\t")
    terminal.wait(lambda: not terminal.ghost)
    last = 4 + n_lines - 1
    terminal.wait(lambda: terminal.screen.cursor.y == last)
    assert terminal.lines[: last + 1] == shown[: last + 1]
    assert terminal.screen.cursor.x == len(shown[last])
    terminal.type("\x1b:qall!\r")
    terminal.process.expect(pexpect.EOF)


def test_the_picture_in_the_documentation(newest: Neovim, desk: Desk, artifacts: Path) -> None:
    """Made anew, for whoever looks at it and copies it to editor-plugins/neovim/doc."""
    before = STACK.index("def __len__")
    terminal = NeovimTerminal(newest, desk, str(desk.file("stack.py", STACK)))
    try:
        terminal.wait(lambda: "stack = Stack()" in terminal.lines)
        terminal.type(f":{STACK[:before].count(chr(10)) + 1}\rA\r")
        terminal.wait(lambda: terminal.ghost)
        (artifacts / "neovim.svg").write_text(terminal.picture())
    finally:
        terminal.close()
        wait_until_gone(terminal.process.pid)
