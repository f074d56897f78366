"""Recent edits: lines that a user changed or deleted, remembered for a while.

Who refactors deletes lines here and types them there, or makes the same change in many places. The
old lines are in no document any more, and a saved file takes them out of the repository's index:
this is the only source that still has them. In memory only.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque

import numpy as np

from codespec.index.ignore import secret_in
from codespec.index.pieces import PieceCache
from codespec.index.text import split
from codespec.native import SuffixAutomaton
from codespec.types import NO_TOKENS, Tokens

MAX_TOKENS = 4096
MAX_CHARS = 1 << 13
"""A larger replacement is another text in the window rather than an edit."""
_REACH = 256
"""No pattern of a secret needs more characters than that."""


class RecentEdits:
    """The lines that were lost in all documents of a workspace, in one suffix automaton: newest
    last, with breaks between edits. Not thread-safe."""

    def __init__(self) -> None:
        self.automaton = SuffixAutomaton()
        self._lost: deque[tuple[str, Tokens]] = deque()
        self._open: dict[str, Tokens] = {}

    @property
    def paths(self) -> set[str]:
        """Files that lines are remembered of."""
        return {path for path, _ in self._lost} | self._open.keys()

    @property
    def lost(self) -> list[tuple[str, Tokens]]:
        """(file, the lines it lost), newest first."""
        return [(p, t) for p, t in (*self._lost, *self._open.items()) if len(t)][::-1]

    def set_open(self, path: str, tokens: Tokens) -> None:
        """What the edit that is under way in a file has cost so far."""
        known = self._open.get(path, NO_TOKENS)
        if (len(tokens) or len(known)) and not np.array_equal(tokens, known):
            self._open[path] = tokens
            self._rebuild()

    def close(self, path: str) -> None:
        """That edit is over."""
        tokens = self._open.pop(path, NO_TOKENS)
        if len(tokens):
            self._lost.append((path, tokens))
            while sum(len(t) for _, t in self._lost) > MAX_TOKENS:
                self._lost.popleft()
            self._rebuild()

    def forget(self, path: str) -> bool:
        """Nothing of this file may be used any more. Returns: whether there was anything."""
        if path not in self.paths:
            return False
        self._open.pop(path, None)
        self._lost = deque((p, t) for p, t in self._lost if p != path)
        self._rebuild()
        return True

    def _rebuild(self) -> None:
        # Some thousand tokens: a millisecond, once in an edit.
        self.automaton.truncate(0)
        for tokens in (*(t for _, t in self._lost), *self._open.values()):
            self.automaton.extend(tokens)
            self.automaton.extend_break()


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
        self._was_secret: bool | None = None  # whether that held a secret; None: nobody asked
        self._original = ""  # the lines under edit as they were before it
        self._start = self._end = 0  # where they stand now
        self._removed = False

    def report_to(self, edits: RecentEdits) -> None:
        """Others that are not told yet: what those told up to now know of the file is forgotten, as
        nobody will tell them whether it was saved."""
        if edits is not self._edits:
            self._edits.forget(self._path)
            self._finish()
            self._edits = edits

    def changed(self, old: str, new: str, n_same: int, n_tail: int) -> None:
        """The document went from `old` to `new`, with so many equal characters at both ends."""
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
            self._before, self._was_secret = old, None
        self._removed = self._removed or n_same + n_tail < len(old)
        self._end += len(new) - len(old)
        lost = self._lost(new[self._start : self._end])
        if lost and self._touches_secret(new):
            lost = ""
        self._edits.set_open(self._path, self._encode(lost))
        if len(self._original) > MAX_CHARS:
            self._finish()

    def _finish(self) -> None:
        self._edits.close(self._path)
        self._before, self._original, self._removed = "", "", False

    def _lost(self, now: str) -> str:
        """now: what the lines under edit have become."""
        if not self._removed:
            return ""
        left = sorted(line.rstrip() for line in now.split("\n"))

        def is_lost(line: str) -> bool:
            line = line.rstrip()
            at = bisect_left(left, line)  # the first of those that may begin with it
            return bool(line) and not (at < len(left) and left[at].startswith(line))

        return "".join(filter(is_lost, self._original.splitlines(keepends=True)))

    def _encode(self, lost: str) -> Tokens:
        pieces = self._cache.encode(list(split(lost, self._cuts, 1))) if lost else []
        return np.concatenate(pieces) if pieces else NO_TOKENS

    def _touches_secret(self, new: str) -> bool:
        """Whether the document holds a secret, or held one before the edit. All of it is asked, not
        the lines alone: those in the middle of a key look harmless."""
        if self._was_secret is None:
            self._was_secret = bool(secret_in(self._before.encode()))
        # What came since is where the edit is, and this is asked with each key.
        around = new[max(0, self._start - _REACH) : self._end + _REACH]
        return self._was_secret or bool(secret_in(around.encode()))
