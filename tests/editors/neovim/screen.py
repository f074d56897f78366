"""The screen of a Neovim as it sends it to a user interface, frame by frame."""

from __future__ import annotations

import time
from dataclasses import dataclass
from html import escape
from typing import Any

# Of the ghost text in tests, so that it can be told from everything else.
GHOST_RGB = 0x80A0C0


@dataclass(frozen=True)
class Cell:
    text: str = " "
    rgb: int | None = None


@dataclass(frozen=True)
class Frame:
    """cells: rows of columns. at_s: when it was read, on the clock of time.perf_counter()."""

    cells: tuple[tuple[Cell, ...], ...]
    cursor: tuple[int, int]
    at_s: float

    @property
    def lines(self) -> list[str]:
        return ["".join(cell.text for cell in row).rstrip() for row in self.cells]

    @property
    def ghost(self) -> str:
        """The ghost text, lines joined by newlines, without white space at their ends."""
        rows = ["".join(c.text for c in row if c.rgb == GHOST_RGB).rstrip() for row in self.cells]
        return "\n".join(row for row in rows if row)


class Screen:
    """Neovim's linegrid protocol. Source: Neovim's help, "ui-linegrid"."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._rgb: dict[int, int | None] = {}
        self._cells: list[list[Cell]] = []
        self._cursor = (0, 0)

    def redraw(self, events: list[Any]) -> None:
        for name, *calls in events:
            handler = getattr(self, f"_{name}", None)
            if handler is not None:
                for arguments in calls:
                    handler(*arguments)

    def _hl_attr_define(self, number: int, rgb: dict[str, int], *_: object) -> None:
        self._rgb[number] = rgb.get("foreground")

    def _grid_resize(self, _grid: int, width: int, height: int) -> None:
        self._cells = [[Cell()] * width for _ in range(height)]

    def _grid_clear(self, _grid: int) -> None:
        self._cells = [[Cell()] * len(row) for row in self._cells]

    def _grid_cursor_goto(self, _grid: int, row: int, column: int) -> None:
        self._cursor = (row, column)

    def _grid_line(
        self, _grid: int, row: int, column: int, cells: list[Any], *_rest: object
    ) -> None:
        highlight = 0
        for text, *more in cells:
            highlight = more[0] if more else highlight
            for _ in range(more[1] if len(more) > 1 else 1):
                self._cells[row][column] = Cell(text, self._rgb.get(highlight))
                column += 1

    def _grid_scroll(
        self, _grid: int, top: int, bottom: int, left: int, right: int, n_rows: int, _columns: int
    ) -> None:
        rows = list(range(max(top, top - n_rows), min(bottom, bottom - n_rows)))
        rows = rows if n_rows > 0 else rows[::-1]
        for row in rows:
            self._cells[row][left:right] = self._cells[row + n_rows][left:right]

    def _flush(self) -> None:
        cells = tuple(map(tuple, self._cells))
        self.frames.append(Frame(cells, self._cursor, time.perf_counter()))


def svg(rows: list[list[tuple[str, str]]], cursor: tuple[int, int]) -> str:
    """A picture of a terminal. rows: cells with their text and colour, e.g. "#80a0c0"."""
    width, height, left, top = 8.4, 18, 12, 24
    n_columns = max(map(len, rows))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{n_columns * width + 2 * left:.0f}" '
        f'height="{len(rows) * height + top}" font-family="monospace" font-size="14">',
        '<rect width="100%" height="100%" rx="6" fill="#14161b"/>',
        f'<rect x="{left + cursor[1] * width:.1f}" y="{top + cursor[0] * height - 14}" '
        f'width="2" height="{height}" fill="#e0e2ea"/>',
    ]
    for number, row in enumerate(rows):
        for column, (text, colour) in enumerate(row):
            if text.strip():
                out.append(
                    f'<text x="{left + column * width:.1f}" y="{top + number * height}" '
                    f'fill="{colour}">{escape(text)}</text>'
                )
    return "\n".join([*out, "</svg>\n"])
