"""Rows of figures: what every benchmark returns, prints as JSON lines and keeps in files.

A row is one configuration's figures. Strings say what was measured (bench, config, curve, ...),
numbers are the figures, and `samples` may hold single measurements by name. `machine` says on
what.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from codespec.errors import InputError

from .machine import stamp

Row: TypeAlias = dict[str, Any]
"""JSON values by name."""


def stamped(bench: str, rows: Iterable[Row]) -> list[Row]:
    """The rows with their benchmark's name first and this machine last."""
    machine = stamp()
    return [{"bench": bench, **row, "machine": row.get("machine", machine)} for row in rows]


def append(path: Path, rows: Sequence[Row]) -> None:
    """Add rows to a file of JSON lines: on a full disk none of them. Raises: InputError."""
    try:
        with path.open("ab", buffering=0) as file:
            before = os.fstat(file.fileno()).st_size
            data = "".join(json.dumps(row) + "\n" for row in rows).encode()
            if file.write(data) < len(data):
                file.truncate(before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as e:
        raise InputError(f"{path}: {e.strerror}", "Give a file that can be written.") from e


def json_lines(path: Path) -> Iterator[tuple[int, Row]]:
    """(number of its line, object) of a file of JSON lines. Raises: InputError."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "not UTF-8 text"
        raise InputError(
            f"{path}: {why}", "Give a file that a benchmark wrote with --output."
        ) from e
    for n, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise InputError(
                f"{path}, line {n}: no JSON object", "One line a result, as --json prints them."
            )
        yield n, cast("Row", row)


def read(path: Path) -> list[Row]:
    """Rows of a file of JSON lines. Raises: InputError."""
    rows: list[Row] = []
    for n, row in json_lines(path):
        if not isinstance(row.get("bench"), str) or not isinstance(row.get("machine", {}), dict):
            raise InputError(
                f"{path}, line {n}: no result of a benchmark",
                "Give a file written with --output; what --answers keeps are no results.",
            )
        curve = (row.get("n"), row.get("ratio"))
        if len({len(cast("list[object]", part)) for part in curve if isinstance(part, list)}) > 1:
            raise InputError(
                f"{path}, line {n}: n and ratio of a curve are not equally long",
                "Give what a benchmark wrote.",
            )
        rows.append(row)
    return rows


# Numbers that say what was measured, not how it came out.
PARAMETERS = frozenset({"n_context", "n_threads", "n_hunks", "n_windows", "width", "commits"})


def identity(row: Row) -> tuple[tuple[str, str], ...]:
    """The measurement that a row is of, without the machine: its strings, in the row's order, and
    parameters."""
    return tuple(
        (k, v if isinstance(v, str) else f"{k}={v}")
        for k, v in row.items()
        if isinstance(v, str) or k in PARAMETERS
    )


def figures(row: Row) -> dict[str, float]:
    """How it came out: a row's other numbers."""
    return {
        k: float(v)
        for k, v in row.items()
        if isinstance(v, int | float) and not isinstance(v, bool) and k not in PARAMETERS
    }
