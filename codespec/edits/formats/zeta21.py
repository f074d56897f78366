"""Zed's Zeta 2.1: the region is cut into blocks by numbered markers, and the answer is one span of
blocks, so that little is written anew.

Source: Zed, crates/zeta_prompt (Apache-2.0): multi_region.rs and zeta_prompt.rs, format
V0318SeedMultiRegions ("Zeta2.1").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from codespec.context.special_tokens import Part, Special
from codespec.edits.formats.base import (
    EditedDocument,
    EditPrompt,
    ModelAnswer,
    NextEditFormat,
)
from codespec.edits.formats.zeta2 import (
    CURSOR,
    MIDDLE,
    SUFFIX,
    around_cursor,
    framed,
    region_of,
)

_MARKER = re.compile(r"<\|marker_(\d+)\|>")
_END = Special("<[end▁of▁sentence]>")
_LEAST_LINES, _MOST_LINES = 6, 16
"""Lines of a block."""
_MOST_SKIPPED = 5
"""Lines that a block is longer, at most, for the next one to begin well."""
_ENDS = {"break", "continue", "return", "throw", "end"}
"""Statements that belong to the block before them, with or without semicolons."""


class Zeta21(NextEditFormat):
    """Zeta 2.1's format."""

    name = "zeta2.1"
    title = "Zeta 2.1"
    markers = re.compile(rf"{_MARKER.pattern}|{re.escape(CURSOR)}")

    def speaks(self, names: str, vocabulary: Collection[str]) -> bool:
        is_named = re.search(r"(?<![a-z])zeta[-_ .]?2[._]1", names, re.IGNORECASE) is not None
        return is_named and SUFFIX in vocabulary

    def is_prompt(self, text: str) -> bool:
        asked, middle, _ = text.rpartition(MIDDLE)
        found = bool(middle) and text.startswith(SUFFIX) and CURSOR in asked
        return found and 0 < asked.find(_marker(1)) < asked.rfind("<|marker_")

    def unchanged(self, prompt: str) -> str:
        asked, _, begun = prompt.rpartition(MIDDLE)
        start = asked.rfind(_marker(1))
        end = asked.rfind("|>\n", start) + 2
        return asked[start:end].replace(CURSOR, "", 1).removeprefix(begun)

    def prompt(self, document: EditedDocument) -> EditPrompt | None:
        region = region_of(document)
        before, behind = around_cursor(document, region)
        text, at = before + behind, len(before)
        window: list[Part] = []
        unchanged: list[Part] = []
        is_placed = False
        offsets = block_offsets(text)
        for number, (start, end) in enumerate(pairwise(offsets), 1):
            window.append(_marker(number))
            unchanged += [_marker(number), text[start:end]]
            if is_placed or not start <= at <= end:
                window.append(text[start:end])
                continue
            is_placed = True
            window += [text[start:at], CURSOR, text[at:end]]
        window += [_marker(len(offsets)), "\n"]
        unchanged += [_marker(len(offsets)), _END]
        return EditPrompt(
            framed(document, region, window),
            region.start,
            tuple(text.split("\n")),
            document.cursor_line - region.start,
            tuple(unchanged),
        )

    def rewritten(self, prompt: EditPrompt, answer: ModelAnswer) -> tuple[str, ...] | None:
        text, _, _ = answer.text.replace(CURSOR, "", 1).partition(_END)
        head, *rows = _MARKER.split(text)
        numbers = [int(number) for number in rows[::2]]
        if head.strip() or len(numbers) < 2 or rows[-1].strip():
            return None
        if numbers[0] == numbers[-1]:
            return prompt.old
        old = "\n".join(prompt.old)
        offsets = block_offsets(old)
        if numbers != list(range(numbers[0], numbers[-1] + 1)) or not numbers[0]:
            return None
        if numbers[-1] > len(offsets):
            return None
        start, end = offsets[numbers[0] - 1], offsets[numbers[-1] - 1]
        span = "".join(rows[1:-1:2])
        if end == len(old) and not old.endswith("\n"):
            span = span.removesuffix("\n")  # in training, regions ended with a line's end
        new = old[:start] + span + old[end:]
        return None if self.markers.search(new) else tuple(new.split("\n"))


def _marker(number: int) -> Special:
    return Special(f"<|marker_{number}|>")


def block_offsets(text: str) -> list[int]:
    """Characters at which blocks of a region begin, and its end: each at the beginning of a line,
    behind a blank one where there is one in time."""
    if not text:
        return [0, 0]
    lines = text.removesuffix("\n").split("\n") if text != "\n" else [""]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    offsets, last, i = [0], 0, 0
    while i < len(lines):
        n_lines = i - last
        is_cut = n_lines >= _LEAST_LINES and lines[i].strip() != "" and not lines[i - 1].strip()
        target = _good_start(lines, i)
        if is_cut and len(lines) - target < _LEAST_LINES:
            is_cut = False
        if is_cut or n_lines >= _MOST_LINES:
            offsets.append(starts[target])
            last = i = target
        i += 1
    return offsets if offsets[-1] == len(text) else [*offsets, len(text)]


def _good_start(lines: Sequence[str], start: int) -> int:
    """The first of the next few lines that a block begins well with; else `start`."""
    places = range(start, min(len(lines), start + _MOST_SKIPPED))
    return next((i for i in places if _begins_well(lines[i].strip())), start)


def _begins_well(line: str) -> bool:
    return bool(line) and line[0] not in "}])" and line.rstrip(";") not in _ENDS
