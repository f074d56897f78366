"""Zed's Zeta 2: the lines around the cursor are written anew between the markers of a merge
conflict, after the text behind them, other files and the changes.

Source: Zed, crates/zeta_prompt (Apache-2.0): zeta_prompt.rs and seed_coder.rs, format
V0211SeedCoder; excerpt_ranges.rs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from codespec.context.special_tokens import Part, Special
from codespec.edits.formats.base import (
    EditedDocument,
    EditPrompt,
    ModelAnswer,
    NextEditFormat,
    hunk_of,
)

SUFFIX, PREFIX = Special("<[fim-suffix]>"), Special("<[fim-prefix]>")
MIDDLE = Special("<[fim-middle]>")
FILE = Special("<filename>")
CURSOR = Special("<|user_cursor|>")
_CURRENT, _SEPARATOR = Special("<<<<<<< CURRENT\n"), Special("=======\n")
_UPDATED = ">>>>>>> UPDATED"
_NO_EDITS = "NO_EDITS"

_BYTES_A_TOKEN = 3
_N_EDITABLE, _N_AROUND = 350, 150
"""Tokens of the region that may be edited, and of the lines around it."""
_MOST_CHANGES, _LINES_AROUND_CHANGES = 6, 3
_OMITTED = "...\n"


class Region(NamedTuple):
    """Lines of a prompt: those from `start` to before `end` may be edited, those from `first` to
    before `last` are shown around them."""

    first: int
    start: int
    end: int
    last: int


class Zeta2(NextEditFormat):
    """Zeta 2's format."""

    name = "zeta2"
    title = "Zeta 2"
    markers = re.compile(
        rf"^(?:<{{7}} CURRENT|={{7}}|>{{7}} UPDATED)$|{re.escape(CURSOR)}", re.MULTILINE
    )

    def speaks(self, names: str, vocabulary: Collection[str]) -> bool:
        is_named = re.search(r"(?<![a-z])zeta[-_ .]?2(?![._]?\d)", names, re.IGNORECASE) is not None
        return is_named and SUFFIX in vocabulary

    def is_prompt(self, text: str) -> bool:
        found = text.startswith(SUFFIX) and CURSOR in text
        return found and 0 < text.find(_CURRENT) < text.rfind(f"{_SEPARATOR}{MIDDLE}")

    def unchanged(self, prompt: str) -> str:
        _, _, region = prompt.rpartition(_CURRENT)
        region, _, _ = region.rpartition(f"{_SEPARATOR}{MIDDLE}")
        return region.replace(CURSOR, "", 1) + _UPDATED

    def prompt(self, document: EditedDocument) -> EditPrompt | None:
        region = region_of(document)
        before, behind = around_cursor(document, region)
        window = [_CURRENT, before, CURSOR, closed(behind), _SEPARATOR]
        return EditPrompt(
            framed(document, region, window),
            region.start,
            tuple(document.lines[region.start : region.end]),
            document.cursor_line - region.start,
            (f"{closed(before + behind)}{_UPDATED}",),
            ends=(_UPDATED,),
        )

    def rewritten(self, prompt: EditPrompt, answer: ModelAnswer) -> tuple[str, ...] | None:
        text, _, _ = answer.text.partition(_UPDATED)
        if text.startswith(_NO_EDITS):
            return prompt.old
        text = text.replace(CURSOR, "", 1)
        if text.startswith("<|") or self.markers.search(text):
            return None
        if not "\n".join(prompt.old).endswith("\n"):
            text = text.removesuffix("\n")
        return tuple(text.split("\n"))


def framed(document: EditedDocument, region: Region, window: Sequence[Part]) -> tuple[Part, ...]:
    """A prompt: the text behind the region; other files, changes, and the text before it, which
    `window` follows."""
    lines = document.lines
    suffix = closed("".join(f"\n{line}" for line in lines[region.end : region.last]))
    above = "".join(f"{line}\n" for line in lines[region.first : region.start])
    own: list[Part] = [FILE, f"{document.path}\n{above}", *window]
    room = document.n_tokens * 9 // 10 - _n_tokens(SUFFIX, suffix, PREFIX)
    room -= _n_tokens(*own, MIDDLE)
    changes = _changes(document, room)
    others = _others(document, room - _n_tokens(*changes))
    return (SUFFIX, suffix, PREFIX, *others, *changes, *own, MIDDLE)


def _changes(document: EditedDocument, n_tokens: int) -> list[Part]:
    """The last changes, as many as fit."""
    parts: list[str] = []
    n_left = n_tokens - _n_tokens(FILE, "edit_history\n")
    for change in reversed(document.changes[-_MOST_CHANGES:]):
        diff = hunk_of(document, change, _LINES_AROUND_CHANGES).unified
        text = f"--- a/{change.path}\n+++ b/{change.path}\n{diff}"
        n_left -= _n_tokens(text)
        if n_left < 0:
            break
        parts.append(text)
    return [FILE, "edit_history\n" + "".join(reversed(parts)) + "\n"] if parts else []


def _others(document: EditedDocument, n_tokens: int) -> list[Part]:
    """Other files, as many lines of them as fit."""
    parts: list[Part] = []
    for path, text in document.others:
        n_tokens -= _n_tokens(FILE, path, "\n", _OMITTED, "\n")
        shown = ""
        for line in text.removesuffix("\n").split("\n"):
            n_tokens -= _n_tokens(line, "\n") + 1
            if n_tokens < 0:
                shown += _OMITTED
                break
            shown += f"{line}\n"
        if shown and shown != _OMITTED:
            parts += [FILE, f"{path}\n{shown}"]
    return [*parts, "\n"] if parts else []


def closed(text: str) -> str:
    """`text` with a line end behind it, if it has none."""
    return text if text.endswith("\n") else f"{text}\n"


def around_cursor(document: EditedDocument, region: Region) -> tuple[str, str]:
    """The region's text before and behind the cursor."""
    lines = document.lines
    text = "\n".join(lines[region.start : region.end])
    at = document.cursor - sum(len(line) + 1 for line in lines[: region.start])
    return text[:at], text[at:]


def region_of(document: EditedDocument) -> Region:
    """The region around the cursor: three quarters of its tokens evenly on both sides, until a line
    does not fit; the others, and those around it, where lines fit."""
    lines, line = document.lines, document.cursor_line
    costs = [max(1, len(text.encode()) // _BYTES_A_TOKEN) for text in lines]
    start = end = line
    n_even = _N_EDITABLE * 3 // 4
    n_left = max(0, n_even - costs[line])
    while n_left and (start > 0 or end < len(lines) - 1):
        if end < len(lines) - 1:
            if costs[end + 1] > n_left:
                break
            end += 1
            n_left -= costs[end]
        if start > 0 and n_left:
            if costs[start - 1] > n_left:
                break
            start -= 1
            n_left -= costs[start]
    start, end = _grown(costs, start, end, n_left + _N_EDITABLE - n_even)
    first, last = _grown(costs, start, end, _N_AROUND)
    return Region(first, start, end + 1, last + 1)


def _grown(costs: Sequence[int], start: int, end: int, n_left: int) -> tuple[int, int]:
    """First and last line of a range that takes in further lines, above and below in turns, while
    they fit."""
    while n_left:
        before = start, end
        if start > 0 and costs[start - 1] <= n_left:
            start -= 1
            n_left -= costs[start]
        if end < len(costs) - 1 and n_left and costs[end + 1] <= n_left:
            end += 1
            n_left -= costs[end]
        if (start, end) == before:
            break
    return start, end


def _n_tokens(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts) // _BYTES_A_TOKEN
