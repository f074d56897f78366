"""The screen of a Neovim with all that a picture of it needs: colours and styles of each cell."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from .screen import Screen


@dataclass(frozen=True, slots=True)
class Style:
    """Colours of cells, 0xRRGGBB."""

    foreground: int
    background: int
    bold: bool = False
    italic: bool = False
    strikethrough: bool = False


@dataclass(frozen=True, slots=True)
class Painting:
    """One frame. rows: runs of text with their style. at_s: on the clock of time.monotonic()."""

    rows: tuple[tuple[tuple[str, Style], ...], ...]
    cursor: tuple[int, int]
    is_inserting: bool
    at_s: float
    paper: int


class PaintedScreen(Screen):
    """Keeps a painting of each frame beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.paintings: list[Painting] = []
        self._ink, self._paper = 0xE0E2EA, 0x14161B
        self._attributes: dict[int, dict[str, Any]] = {0: {}}
        self._styles: list[list[int]] = []
        self._mode = "normal"

    def _default_colors_set(self, foreground: int, background: int, *_: object) -> None:
        self._ink, self._paper = foreground, background

    def _hl_attr_define(self, number: int, rgb: dict[str, int], *_: object) -> None:
        super()._hl_attr_define(number, rgb)
        self._attributes[number] = rgb

    def _mode_change(self, mode: str, *_: object) -> None:
        self._mode = mode

    def _grid_resize(self, _grid: int, width: int, height: int) -> None:
        super()._grid_resize(_grid, width, height)
        self._styles = [[0] * width for _ in range(height)]

    def _grid_clear(self, _grid: int) -> None:
        super()._grid_clear(_grid)
        self._styles = [[0] * len(row) for row in self._styles]

    def _grid_line(
        self, _grid: int, row: int, column: int, cells: list[Any], *_rest: object
    ) -> None:
        super()._grid_line(_grid, row, column, cells)
        highlight = 0
        for _, *more in cells:
            highlight = more[0] if more else highlight
            n = more[1] if len(more) > 1 else 1
            self._styles[row][column : column + n] = [highlight] * n
            column += n

    def _grid_scroll(
        self, _grid: int, top: int, bottom: int, left: int, right: int, n_rows: int, _columns: int
    ) -> None:
        super()._grid_scroll(_grid, top, bottom, left, right, n_rows, _columns)
        rows = list(range(max(top, top - n_rows), min(bottom, bottom - n_rows)))
        for row in rows if n_rows > 0 else rows[::-1]:
            self._styles[row][left:right] = self._styles[row + n_rows][left:right]

    def _flush(self) -> None:
        super()._flush()
        rows = tuple(map(self._runs, self._cells, self._styles))
        is_inserting = self._mode.startswith("insert")
        painting = Painting(rows, self._cursor, is_inserting, time.monotonic(), self._paper)
        self.paintings.append(painting)

    def _runs(self, cells: list[Any], styles: list[int]) -> tuple[tuple[str, Style], ...]:
        runs: list[tuple[str, Style]] = []
        for cell, number in zip(cells, styles, strict=True):
            style = self._style(number)
            if runs and runs[-1][1] == style:
                runs[-1] = (runs[-1][0] + (cell.text or " "), style)
            else:
                runs.append((cell.text or " ", style))
        return tuple(runs)

    def _style(self, number: int) -> Style:
        said = self._attributes.get(number, {})
        colours = said.get("foreground", self._ink), said.get("background", self._paper)
        front, back = reversed(colours) if said.get("reverse") else colours
        return Style(
            front, back, *(bool(said.get(key)) for key in ("bold", "italic", "strikethrough"))
        )
