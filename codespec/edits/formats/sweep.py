"""Sweep's next-edit models, 0.5B and 1.5B: the window is written anew after the texts of the file
before the changes, the changes, and the window before the last ones.

Source: sweep-autocomplete 0.1.1, autocomplete/next_edit_autocomplete.py (Apache-2.0); Zed,
crates/edit_prediction/src/sweep_prompt.rs, writes headers without lines and no cursor.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import ndiff

from codespec.context.special_tokens import Part, Special
from codespec.edits.base import LineChange
from codespec.edits.formats.base import (
    CHARS_A_TOKEN,
    EditedDocument,
    EditPrompt,
    ModelAnswer,
    NextEditFormat,
    earlier_windows,
    hunk_of,
    undone,
)

_FILE = Special("<|file_sep|>")
_CURSOR = Special("<|cursor|>")
_N_BEFORE, _N_AFTER = 2, 5
"""Lines of the window before and after the cursor's."""
_MOST_CHANGES = 6
_MOST_FURTHER_LINES = 20
_LARGE = 5
"""A change above the cursor that adds and deletes more lines is none that a user makes next."""
_WHOLE_LINES, _PART_LINES = 800, 300
"""A file of more lines is shown in part, from a multiple of half of that."""
_NO_LINE_END = " No newline at end of file"


class Sweep(NextEditFormat):
    """Sweep's format."""

    name = "sweep"
    title = "Sweep Next Edit"
    markers = re.compile(re.escape(_CURSOR))

    def speaks(self, names: str, vocabulary: Collection[str]) -> bool:
        is_named = re.search(r"sweep.?next.?edit", names, re.IGNORECASE) is not None
        return is_named and _FILE in vocabulary

    def is_prompt(self, text: str) -> bool:
        if not text.startswith(_FILE):
            return False
        heads = (f"{_FILE}{kind}/" for kind in ("original", "current", "updated"))
        places = [text.rfind(head) for head in heads]
        return places[0] >= 0 and places == sorted(places)

    def unchanged(self, prompt: str) -> str:
        _, _, current = prompt.rpartition(f"{_FILE}current/")
        current, _, updated = current.partition(_FILE)
        _, _, window = current.replace(_CURSOR, "", 1).partition("\n")
        _, _, prefill = updated.partition("\n")
        return window.removeprefix(prefill)

    def prompt(self, document: EditedDocument) -> EditPrompt | None:
        lines = document.text.removesuffix("\n").split("\n")
        cursor_line = min(document.cursor_line, len(lines) - 1)
        start, end = _window(lines, cursor_line)
        if start >= end:
            return None
        old = lines[start:end]
        # A cursor in a blank line above the window stands at its beginning.
        at = max(0, document.cursor - sum(len(line) + 1 for line in lines[:start]))
        earlier = earlier_windows(document, start, end - start)
        before = earlier[-1] if earlier else tuple(old)
        end_line = (
            "\n" if at > sum(map(len, old)) + len(old) - 1 else ""
        )  # else nobody is told of it
        current = "\n".join(old) + end_line
        prefill = _prefill(current[:at])
        n_shown = len(old) + current.endswith("\n")
        where = f"{document.path}:{cursor_line - start + 1}:{cursor_line - start + n_shown + 1}\n"
        parts: list[Part] = []
        for path, text in document.others[:1]:
            if len(text) <= _n_chars(document) // 4:
                parts += [_FILE, f"{path}\n{text}\n"]
        parts += [_FILE, f"{document.path}\n{_shown(document)}\n"]
        parts += [*_changes(document), "\n"]
        parts += [_FILE, f"original/{where}" + "\n".join(before) + f"{end_line}\n"]
        parts += [_FILE, f"current/{where}{current[:at]}", _CURSOR, f"{current[at:]}\n"]
        parts += [_FILE, f"updated/{where}{prefill}"]
        rest = "\n".join(old)[len(prefill) :]
        window_line = max(0, cursor_line - start)
        return EditPrompt(
            tuple(parts), start, tuple(old), window_line, (f"{rest}\n", _FILE), prefill
        )

    def rewritten(self, prompt: EditPrompt, answer: ModelAnswer) -> tuple[str, ...] | None:
        if answer.text.startswith("<|"):
            return None
        text = prompt.prefill + answer.text.replace(_CURSOR, "")
        text, _, _ = text.partition(_NO_LINE_END)
        rows = text.strip("\n").split("\n")
        while rows and not rows[0].strip() and prompt.old[0].strip():
            del rows[0]
        new = tuple(rows)
        at = prompt.cursor_line
        is_too_long = len(new) - len(prompt.old) > _MOST_FURTHER_LINES
        if is_too_long or _inserts_above(prompt.old, new, at) or _is_large(prompt.old, new, at):
            return None
        return new


def _window(lines: list[str], cursor_line: int) -> tuple[int, int]:
    """First line of the window, and the one after its last: no blank one at either end."""
    start, end = max(0, cursor_line - _N_BEFORE), min(len(lines), cursor_line + _N_AFTER + 1)
    while start < end and not lines[start].strip():
        start += 1
        end += end < len(lines)
    while end > start and not lines[end - 1].strip():
        end -= 1
    return start, end


def _prefill(before: str) -> str:
    """The part of the window before the cursor that the model need not write: its first line, with
    the blank ones that follow."""
    first, end, rest = before.partition("\n")
    blank = len(rest) - len(rest.lstrip("\n"))
    return first + end + rest[:blank]


def _shown(document: EditedDocument) -> str:
    """The file as it was before its changes, or the part of it around the cursor."""
    lines = undone(document.lines, document.own_changes)
    n_room = _n_chars(document) // 2
    text = "\n".join(lines)
    if len(lines) <= _WHOLE_LINES and len(text) <= n_room:
        return text
    n = _PART_LINES
    while n > _N_AFTER and sum(map(len, _part(lines, document.cursor_line, n))) > n_room:
        n //= 2
    return "\n".join(_part(lines, document.cursor_line, n))


def _part(lines: list[str], cursor_line: int, n: int) -> list[str]:
    """`n` lines around the cursor, from a multiple of half of that, so that a cursor that moves
    changes no prompt's beginning."""
    stride = max(1, n // 2)
    start = max(0, round((cursor_line - n // 2) / stride)) * stride
    return lines[start : start + n]


def _changes(document: EditedDocument) -> list[Part]:
    """The last changes but those of white space alone, each with a line around it."""
    changes = [change for change in document.changes if _is_visible(change)][-_MOST_CHANGES:]
    parts: list[Part] = []
    for n, change in enumerate(changes):
        if sum(map(_size_of, changes[n:])) > _n_chars(document) // 4:
            continue
        found = hunk_of(document, change, 1)
        # The end as Sweep's server counts it: without the hunk's first line where that is new.
        n_lines = len(found.new) - (bool(found.above) or not change.old)
        end = found.start + n_lines - 1
        old, new = ("\n".join(side).strip("\n") for side in (found.old, found.new))
        if parts:
            parts.append("\n")
        where = f"{change.path}:{found.start}:{end}"
        parts += [_FILE, f"{where}\noriginal:\n{old}\nupdated:\n{new}"]
    return parts


def _n_chars(document: EditedDocument) -> int:
    """Characters of a prompt, about."""
    return document.n_tokens * CHARS_A_TOKEN


def _size_of(change: LineChange) -> int:
    return sum(len(line) + 1 for line in (*change.old, *change.new))


def _is_visible(change: LineChange) -> bool:
    return "\n".join(change.old).strip() != "\n".join(change.new).strip()


def _inserts_above(old: tuple[str, ...], new: tuple[str, ...], at: int) -> bool:
    """True if all that is new are lines between those above the cursor's and that one."""
    n_tail = len(old) - at
    is_longer = len(new) > len(old) and bool(old[at].strip()) if at < len(old) else False
    return is_longer and new[:at] == old[:at] and new[len(new) - n_tail :] == old[at:]


def _is_large(old: tuple[str, ...], new: tuple[str, ...], at: int) -> bool:
    """True if lines above the cursor change, and many lines are added and deleted in all."""
    if new[:at] == old[:at]:
        return False
    rows = [row[:1] for row in ndiff(old, new)]
    return rows.count("+") > _LARGE and rows.count("-") > _LARGE
