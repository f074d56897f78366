"""A program in a terminal: keys go in, and what a terminal emulator shows comes out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pexpect
import pyte

TIMEOUT_S = 60.0
ROWS, COLUMNS = 24, 90


class Terminal:
    """env: all of the program's variables but TERM and COLORTERM."""

    def __init__(
        self,
        command: list[str],
        cwd: Path,
        env: Mapping[str, str],
        *,
        rows: int = ROWS,
        columns: int = COLUMNS,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        program, *more = command
        self.process = pexpect.spawn(
            program,
            more,
            dimensions=(rows, columns),
            cwd=str(cwd),
            env={**env, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )

    def type(self, keys: str) -> None:
        """Keys as a terminal sends them: Escape is \\x1b, Tab is \\t, Return is \\r."""
        self.process.send(keys)

    def wait(self, matches: Callable[[], object]) -> None:
        """Until `matches` says that the screen, or anything else, is as wanted."""
        give_up_at = time.monotonic() + TIMEOUT_S
        while not matches():
            assert time.monotonic() < give_up_at, self.text
            with contextlib.suppress(pexpect.TIMEOUT):
                self._stream.feed(self.process.read_nonblocking(1 << 14, 0.05))

    def wait_for(self, *words: str) -> None:
        self.wait(lambda: all(word in self.text for word in words))

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def in_colour(self, rgb: str) -> str:
        """The text that is drawn in a colour, in six hexadecimal digits; lines joined by newlines,
        without white space at their ends."""
        rows = [self.screen.buffer[row] for row in range(self.screen.lines)]
        shown = [
            "".join(row[x].data for x in range(self.screen.columns) if row[x].fg == rgb).rstrip()
            for row in rows
        ]
        return "\n".join(line for line in shown if line)

    def close(self) -> None:
        """End it, however it is."""
        self.process.close(force=True)
