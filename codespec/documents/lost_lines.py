"""Lines that a change took out of a document: what of them is lost, and may be remembered.

Lines are lost once nothing like them is left where they stood, so typing on loses nothing. Nothing
of a secret is kept.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codespec.rules.secrets import find
from codespec.syntax.text import common_prefix, common_suffix

_N_LINES, _CHARS = 400, 1 << 14
"""Lines and characters above and below a change that are searched for secrets."""
REACH = 256
"""Characters above and below lost lines that are looked at."""


class LostLines(NamedTuple):
    """Lines that a document lost, and the lines before them, which tell their place."""

    path: str
    before: tuple[str, ...]
    lines: tuple[str, ...]


class Origin:
    """The text around a change before it began, for the lines in it that hold a secret or a part of
    one: among lost lines alone those in the middle of a key look harmless."""

    def __init__(self, lines: Sequence[str], first: int, last: int) -> None:
        """lines: all of the text. first, last: of those that change, the second one is left out."""
        above = "\n".join(lines[max(0, first - _N_LINES) : first])[-_CHARS:]
        within = "\n".join(lines[first:last])
        below = "\n".join(lines[last : last + _N_LINES])[:_CHARS]
        self._text = f"{above}\n{within}\n{below}"
        self._lines: frozenset[str] | None = None

    @property
    def secret_lines(self) -> frozenset[str]:
        """Searched for when they are first asked for; then the text is let go."""
        if self._lines is None:
            text, lines = self._text, set[str]()
            for start, end, _ in find(text):
                first = text.rfind("\n", 0, start) + 1
                last = text.find("\n", end)
                lines.update(text[first : last if last >= 0 else len(text)].split("\n"))
            self._lines, self._text = frozenset(lines), ""
        return self._lines


def removes(old: Sequence[str], new: Sequence[str]) -> bool:
    """True if a change takes characters away, False if it puts some in at one place."""
    a, b = "\n".join(old), "\n".join(new)
    n_same = common_prefix(a, b)
    return n_same + common_suffix(a, b, min(len(a), len(b)) - n_same) < len(a)


def lost_lines(
    path: str,
    old: Sequence[str],
    new: Sequence[str],
    above: Sequence[str],
    below: Iterable[str],
    origins: Sequence[Origin],
) -> LostLines | None:
    """The lines that a change has cost, if any. above, below: lines around it now. origins: texts
    before it and before the changes that became one with it."""
    left = sorted(line.rstrip() for line in new)

    def is_lost(line: str) -> bool:
        line = line.rstrip()
        at = bisect_left(left, line)  # the first of those that may begin with it
        return bool(line) and not (at < len(left) and left[at].startswith(line))

    lost = tuple(line for line in old if is_lost(line))
    above = _near(above)
    if not lost or _is_secret(above, new, below):
        return None
    secret = frozenset[str]().union(*(origin.secret_lines for origin in origins))
    lost = tuple(line for line in lost if line not in secret)
    if not lost:
        return None
    before = [*above, *itertools.takewhile(lambda line: not is_lost(line), old)]
    for i in reversed(range(len(before))):
        if before[i] in secret:
            before = before[i + 1 :]
            break
    return LostLines(path, tuple(before), lost)


def _near(above: Sequence[str]) -> list[str]:
    """The last whole lines within reach."""
    n_chars, first = 0, len(above)
    while first and n_chars + len(above[first - 1]) < REACH:
        first -= 1
        n_chars += len(above[first]) + 1
    return list(above[first:])


def _is_secret(above: Sequence[str], new: Sequence[str], below: Iterable[str]) -> bool:
    """True if a secret stands where the change is: the lines that stood there may have been part
    of it. Asked with each key, so only the lines around are searched."""
    start = sum(len(line) + 1 for line in above)
    middle = "\n".join(new)
    end = start + len(middle) + 1
    parts, n_chars = list[str](), 0
    for line in below:
        parts.append(line)
        n_chars += len(line) + 1
        if n_chars > REACH:
            break
    text = "\n".join((*above, middle, "\n".join(parts)[:REACH]))
    return any(found.start < end and found.end > start for found in find(text))
