"""Recent edits: lines that a user changed or deleted, remembered for a while.

In a refactoring, lines are deleted here and typed there, or the same change is made in many places.
The old lines are in no document any more, and a saved file takes them out of the repository's
index: this is the only source that still has them. In memory only.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from codespec.documents.pieces import PieceCache
from codespec.native import SuffixAutomaton
from codespec.rules.secrets import find
from codespec.syntax.text import split
from codespec.types import NO_TOKENS, Tokens

MAX_TOKENS = 4096
MAX_CHARS = 1 << 13
"""A larger replacement is another text in the window rather than an edit."""
_REACH = 256
"""Characters before lost lines that are searched for `N_CONTEXT` tokens."""
N_CONTEXT = 4
"""Tokens kept before lost lines, which tell their place: new text there often begins alike."""


class Lost(NamedTuple):
    """Lines that a file lost, and the end of the text before them."""

    before: Tokens
    tokens: Tokens


NOTHING = Lost(NO_TOKENS, NO_TOKENS)


class RecentEdits:
    """The lines that were lost in all documents of a workspace, in one suffix automaton: newest
    last, with breaks between edits. Not thread-safe."""

    def __init__(self) -> None:
        self.automaton = SuffixAutomaton()
        self._lost: deque[tuple[str, Lost]] = deque()
        self._open: dict[str, Lost] = {}

    @property
    def paths(self) -> set[str]:
        """Files with remembered lines."""
        return {path for path, _ in self._lost} | self._open.keys()

    @property
    def lost(self) -> list[tuple[str, Tokens]]:
        """(file, the lines it lost), newest first."""
        known = (*self._lost, *self._open.items())
        return [(path, lost.tokens) for path, lost in known if len(lost.tokens)][::-1]

    def set_open(self, path: str, lost: Lost) -> None:
        """Set the lines that the file's open edit has cost so far."""
        if not np.array_equal(lost.tokens, self._open.get(path, NOTHING).tokens):
            self._open[path] = lost
            self._rebuild()

    def close(self, path: str) -> None:
        """Move the file's open edit to its history."""
        lost = self._open.pop(path, NOTHING)
        if len(lost.tokens):
            self._lost.append((path, lost))
            while sum(len(known.tokens) for _, known in self._lost) > MAX_TOKENS:
                self._lost.popleft()
            self._rebuild()

    def forget(self, path: str) -> bool:
        """Forget all lines of a file. Returns: True if there were any."""
        if path not in self.paths:
            return False
        self._open.pop(path, None)
        self._lost = deque((p, lost) for p, lost in self._lost if p != path)
        self._rebuild()
        return True

    def _rebuild(self) -> None:
        # Rebuilding takes a millisecond for some thousand tokens, once in an edit.
        self.automaton.truncate(0)
        for lost in (*(lost for _, lost in self._lost), *self._open.values()):
            remember(self.automaton, lost)


def remember(automaton: SuffixAutomaton, lost: Lost) -> None:
    """Append lost lines after the tokens before them, and a break."""
    automaton.extend(lost.before[-N_CONTEXT:])
    automaton.extend(lost.tokens)
    automaton.extend_break()


class EditTracker:
    """Finds the lines that one document loses. An edit is a run of changes that touch each other:
    lines are lost once nothing like them is left where they stood, so typing on loses nothing."""

    def __init__(
        self, edits: RecentEdits, cache: PieceCache, cuts: re.Pattern[str], path: str
    ) -> None:
        self._edits = edits
        self._cache = cache
        self._cuts = cuts
        self._path = path
        self._before = ""  # the document before the edit
        self._secret: frozenset[str] | None = None  # its lines with secrets; None: not searched
        self._original = ""  # the lines under edit as they were before it
        self._start = self._end = 0  # their range in the document now
        self._removed = False

    def report_to(self, edits: RecentEdits) -> None:
        """Use another history from now on. The one before forgets the file: nobody would tell it
        whether the file was saved."""
        if edits is not self._edits:
            self._edits.forget(self._path)
            self._finish()
            self._edits = edits

    def changed(self, old: str, new: str, n_same: int, n_tail: int) -> None:
        """Register a change of the document from `old` to `new`, with so many equal characters at
        both ends."""
        start, end = n_same, len(old) - n_tail
        if end - start > MAX_CHARS or not old:
            self._finish()
            return
        start = old.rfind("\n", 0, start) + 1
        newline = old.find("\n", end)
        end = len(old) if newline < 0 else newline + 1
        if self._original and start <= self._end and end >= self._start:
            before = old[start : self._start] if start < self._start else ""
            after = old[self._end : end] if end > self._end else ""
            self._original = before + self._original + after
            self._start, self._end = min(start, self._start), max(end, self._end)
        else:
            self._finish()
            self._original, self._start, self._end = old[start:end], start, end
            self._before, self._secret = old, None
        self._removed = self._removed or n_same + n_tail < len(old)
        self._end += len(new) - len(old)
        self._edits.set_open(self._path, self._lost(new))
        if len(self._original) > MAX_CHARS:
            self._finish()

    def _finish(self) -> None:
        self._edits.close(self._path)
        self._before, self._original, self._removed = "", "", False

    def _lost(self, new: str) -> Lost:
        """The lines lost by the open edit. new: text of the document now."""
        if not self._removed:
            return NOTHING
        left = sorted(line.rstrip() for line in new[self._start : self._end].split("\n"))

        def is_lost(line: str) -> bool:
            line = line.rstrip()
            at = bisect_left(left, line)  # the first of those that may begin with it
            return bool(line) and not (at < len(left) and left[at].startswith(line))

        lines = self._original.split("\n")
        lost = [line for line in lines if is_lost(line)]
        if not lost or self._is_now_secret(new):
            return NOTHING
        secret = self._secret_lines()
        lost = [line for line in lost if line not in secret]
        if not lost:
            return NOTHING
        reach = max(0, self._start - _REACH)
        above = new[reach : self._start].split("\n")[1 if reach else 0 : -1]
        before = [*above, *itertools.takewhile(lambda line: not is_lost(line), lines)]
        for i, line in enumerate(before):
            if line in secret:
                before = before[i + 1 :]
        return Lost(self._encode(_joined(before)), self._encode(_joined(lost)))

    def _encode(self, text: str) -> Tokens:
        pieces = self._cache.encode(list(split(text, self._cuts, 1)))
        return np.concatenate(pieces) if pieces else NO_TOKENS

    def _secret_lines(self) -> frozenset[str]:
        """Lines of the text before the edit that hold a secret or a part of one. All of that text
        is searched, not the lost lines alone: those in the middle of a key look harmless."""
        if self._secret is None:
            text = self._before
            lines: set[str] = set()
            for start, end, _ in find(text):
                first = text.rfind("\n", 0, start) + 1
                last = text.find("\n", end)
                lines.update(text[first : last if last >= 0 else len(text)].split("\n"))
            self._secret = frozenset(lines)
        return self._secret

    def _is_now_secret(self, new: str) -> bool:
        """True if a secret stands where the edit is: the lines that stood there may have been part
        of it. Asked with each key, so only the lines around are searched."""
        start = max(0, self._start - _REACH)
        found = find(new[start : self._end + _REACH])
        return any(f.start + start < self._end and f.end + start > self._start for f in found)


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
