"""Keys for measurements of editors: ways of working, the same in each editor.

Writing on: keys in a row, at the speed of a quick typist, who waits for an answer to each. The
prompt changes by a key each time. Jumping: one key at a place that nothing was asked for before,
far from the last, so that the prompt is read anew. Renaming: a key changes a name, in a line
after the other, and the next edit is that of a line below.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

TEXT = '''
def parse_line(line, separator=","):
    """Split a line into fields."""
    fields = []
    for field in line.split(separator):
        fields.append(field.strip())
    return fields


def read_table(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                rows.append(parse_line(line))
    return rows
'''
# Between two keys at least; and how long an answer is waited for.
PERIOD_S = 0.12
PATIENCE_S = 0.7

# Nothing that is shown is accepted, and a server that learned it would show little. Next edits are
# to come soon; how often is another question.
SETTINGS = {"CODESPEC_COMPLETION_ADAPTIVE": "false", "CODESPEC_EDITS_EAGERNESS": "high"}
# How long a place is looked at before the first key.
LOOK_S = 0.3
KEY = "p"
_LINES = ("def show_{0}({0}):", "    for item in {0}:", "        ", "", "")
_NAMES = ("items", "values", "names", "rows", "paths", "words", "users", "tokens")


def places(n: int) -> str:
    """A file with `n` places to jump to."""
    lines = "\n".join(_LINES) + "\n"
    return "".join(lines.format(f"{_NAMES[i % len(_NAMES)]}_{i}") for i in range(n))


def calls(n: int) -> str:
    """A file with a call in each of `n` lines."""
    return "".join(f"{_NAMES[i % len(_NAMES)]}_{i} = load(folder, {i})\n" for i in range(n))


def line_of(i: int) -> int:
    """Line of the i-th place, from 1; the cursor goes to its end."""
    return len(_LINES) * i + 3


def order(n: int) -> list[int]:
    """All places, each far from the last."""
    return [i // 2 + (i % 2) * (n // 2) for i in range(n)]


def figures(name: str, times_ms: Sequence[float]) -> dict[str, float | int | None]:
    found = sorted(times_ms)
    return {
        f"n_{name}": len(found),
        f"{name}_ms_p50": round(statistics.median(found), 1) if found else None,
        f"{name}_ms_p95": round(found[int(0.95 * (len(found) - 1))], 1) if found else None,
        f"{name}_ms_min": round(found[0], 1) if found else None,
    }
