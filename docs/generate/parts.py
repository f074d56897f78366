"""Pages with a part that is made from the code, between two comments; pictures that are made."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from docs.generate import (
    command_tables,
    route_table,
    settings_tables,
    speed_chart,
    team_files,
)

DOCS = Path(__file__).parents[1]
MADE: dict[str, Callable[[], str]] = {
    "settings.md": settings_tables.tables,
    "cli.md": command_tables.sections,
    "team-operation.md": team_files.blocks,
    "http.md": route_table.table,
}
"""Page -> its part."""
PICTURES: dict[str, Callable[[], str]] = {"images/speed.svg": speed_chart.svg}
"""Picture -> all of it."""

_PART = re.compile(r"(<!-- made by: python -m docs\.generate -->\n).*?(\n<!-- end -->)", re.S)


def renewed(page: str) -> str:
    """The text of a page, with its part as the code is now. Raises: ValueError without a place
    for the part."""
    text = (DOCS / page).read_text("utf-8")
    made, n = _PART.subn(lambda m: f"{m[1]}\n{MADE[page]()}\n{m[2]}", text)
    if n != 1:
        raise ValueError(f"{page} needs one part between the comments, it has {n}")
    return made


def update() -> list[str]:
    """Write what is out of date. Returns: the names of these pages and pictures."""
    now = {page: renewed(page) for page in MADE} | {name: made() for name, made in PICTURES.items()}
    changed = [name for name, text in now.items() if text != _read(name)]
    for name in changed:
        (DOCS / name).write_text(now[name], "utf-8")
    return changed


def _read(name: str) -> str:
    """Its text; "" where it is not there yet."""
    path = DOCS / name
    return path.read_text("utf-8") if path.exists() else ""
