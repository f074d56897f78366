"""One commit made hunk by hunk, with a next edit asked for after each: once by somebody who accepts
nothing, to count, and once by somebody who accepts what is right."""

from __future__ import annotations

import hashlib
import random
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from codespec.documents.edit_history import EditHistory
from codespec.edits.base import CursorLine, LineEdit, Proposer

from .edit_truth import PlacedLines, Substitution, matched, placed, rest_of, substitutions
from .line_hunks import HunkCommit, LineHunk
from .parent_texts import ParentFiles, SessionTexts

Order: TypeAlias = Literal["diff", "shuffled"]


@dataclass(frozen=True, slots=True)
class Ask:
    """The answer after a hunk.

    documents:   content hash of each open text by path; all others are the parent's.
    proposal:    None for silence; with its chance and kind. Paths are those in the repository.
    outstanding: the hunks that are not made yet, where they are now.
    is_repeatable: one of these makes a substitution that was made before.
    """

    number: int
    documents: Mapping[str, str]
    proposal: PlacedLines | None
    chance: float
    kind: str
    outstanding: tuple[PlacedLines, ...]
    is_repeatable: bool
    ms: float

    @property
    def is_right(self) -> bool:
        return self.proposal is not None and matched(self.proposal, self.outstanding) is not None


@dataclass(frozen=True, slots=True)
class Accepting:
    """A session that accepts what is right. by_accept: hunks that needed no hand. n_shown, n_right:
    proposals."""

    n_hunks: int
    by_accept: int
    n_shown: int
    n_right: int


@dataclass(slots=True)
class _Left:
    """The lines left of a hunk. number: of the hunk, in the order of the diff."""

    number: int
    lines: PlacedLines


class CommitSession:
    """The documents of a commit while its hunks are made, and what is outstanding."""

    def __init__(self, hunks: Sequence[LineHunk], files: ParentFiles) -> None:
        self.texts = SessionTexts(files)
        self.history = EditHistory()
        self.cursor = CursorLine("", 0)
        self._lines = {h.path: files.text(h.path).split("\n") for h in hunks}
        self._left = [
            _Left(n, placed(h.path, h.line, h.old, h.new, self._lines[h.path]))
            for n, h in enumerate(hunks)
        ]

    def outstanding(self) -> list[PlacedLines]:
        """The hunks that are not made yet, from the top of each file."""
        return [self._at(left.lines) for left in self._left]

    def is_made(self, number: int) -> bool:
        return all(left.number != number for left in self._left)

    def make(self, number: int) -> None:
        """Make a hunk, or what is left of it, by hand."""
        while (left := self._first(number)) is not None:
            self._left.remove(left)
            self._replace(left.lines)

    def _first(self, number: int) -> _Left | None:
        return next((left for left in self._left if left.number == number), None)

    def accept(self, proposal: PlacedLines) -> int:
        """Make a right proposal. Returns: the number of its hunk."""
        outstanding = self.outstanding()
        hunk = matched(proposal, outstanding)
        assert hunk is not None
        i = outstanding.index(hunk)
        number = self._left[i].number
        rest = rest_of(hunk, proposal)
        assert rest is not None
        self._left.pop(i)
        self._replace(proposal if rest else hunk)
        self._left[i:i] = [_Left(number, part) for part in rest]
        return number

    def placed(self, edit: LineEdit) -> PlacedLines:
        """A proposal as it is judged. Raises: ValueError for one whose old lines do not stand
        there."""
        path = edit.path.removeprefix(SessionTexts.ROOT)
        lines = self._lines.get(path) or self.texts.now(path).split("\n")
        if tuple(lines[edit.line : edit.line + len(edit.old)]) != edit.old:
            raise ValueError(f"{path}, line {edit.line + 1}: a proposal's old lines are not there")
        return placed(path, edit.line, edit.old, edit.new, lines)

    def _at(self, lines: PlacedLines) -> PlacedLines:
        text = self._lines[lines.path]
        return placed(lines.path, lines.line, lines.old, lines.new, text)

    def _replace(self, edit: PlacedLines) -> None:
        lines, n_more = self._lines[edit.path], len(edit.new) - len(edit.old)
        before = self.texts.now(edit.path)
        lines[edit.line : edit.end] = edit.new
        after = "\n".join(lines)
        self.texts.set_text(edit.path, after)
        path = SessionTexts.ROOT + edit.path
        self.history.changed(path, before, after)
        self.cursor = CursorLine(path, edit.line + max(0, len(edit.new) - 1))
        for left in self._left:
            if left.lines.path == edit.path and left.lines.line >= edit.end:
                left.lines = replace(left.lines, line=left.lines.line + n_more)


def in_order(n_hunks: int, order: Order, sha: str) -> list[int]:
    """Numbers of a commit's hunks in the order in which they are made; shuffled the same way each
    time."""
    numbers = list(range(n_hunks))
    if order == "shuffled":
        random.Random(zlib.crc32(sha.encode())).shuffle(numbers)
    return numbers


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks a proposer, and shows its likeliest edit from a chance of `bar` on."""

    proposer: Proposer
    bar: float

    def asks(self, commit: HunkCommit, order: Order, files: ParentFiles) -> list[Ask]:
        """An ask after each hunk, by somebody who accepts nothing: the next hunk is made by hand,
        whatever was shown, and what was shown and wrong is dismissed."""
        hunks = [hunk for hunk in commit.hunks if hunk.path in files]
        session, dismissed = CommitSession(hunks, files), _Dismissed()
        made: set[Substitution] = set()
        subs = [set(substitutions(hunk.old, hunk.new)) for hunk in hunks]
        found: list[Ask] = []
        for i, number in enumerate(numbers := in_order(len(hunks), order, commit.sha)):
            session.make(number)
            made |= subs[number]
            edit, ms = self._ask(session, dismissed)
            ask = Ask(
                number=i,
                documents={path[1:]: _hash(text) for path, text in session.texts.open.items()},
                proposal=session.placed(edit) if edit is not None else None,
                chance=edit.chance if edit is not None else 0.0,
                kind=edit.kind if edit is not None else "",
                outstanding=tuple(session.outstanding()),
                is_repeatable=any(subs[n] & made for n in numbers[i + 1 :]),
                ms=ms,
            )
            found.append(ask)
            if edit is not None and not ask.is_right:
                dismissed.add(edit)
        return found

    def accepting(self, commit: HunkCommit, order: Order, files: ParentFiles) -> Accepting:
        """The same by somebody who accepts at once what is right, and is asked on."""
        hunks = [hunk for hunk in commit.hunks if hunk.path in files]
        session, dismissed = CommitSession(hunks, files), _Dismissed()
        by_accept, n_shown, n_right = set(range(len(hunks))), 0, 0
        for number in in_order(len(hunks), order, commit.sha):
            if session.is_made(number):
                continue
            session.make(number)
            by_accept.discard(number)
            while True:
                edit, _ = self._ask(session, dismissed)
                if edit is None:
                    break
                n_shown += 1
                proposal = session.placed(edit)
                if matched(proposal, session.outstanding()) is None:
                    dismissed.add(edit)
                    break
                n_right += 1
                session.accept(proposal)
        return Accepting(len(hunks), len(by_accept), n_shown, n_right)

    def _ask(self, session: CommitSession, dismissed: _Dismissed) -> tuple[LineEdit | None, float]:
        """The edit to show, and the milliseconds that the proposer took."""
        changes = session.history.changes()
        start = time.perf_counter()
        found = self.proposer.propose(changes, session.texts, session.cursor, dismissed.edits)
        ms = 1000 * (time.perf_counter() - start)
        likely = (edit for edit in found if edit.chance >= self.bar and edit not in dismissed)
        return next(likely, None), ms


class _Dismissed:
    """The edits that were shown and wrong."""

    def __init__(self) -> None:
        self.edits: set[tuple[str, tuple[str, ...], tuple[str, ...]]] = set()

    def add(self, edit: LineEdit) -> None:
        self.edits.add((edit.path, edit.old, edit.new))

    def __contains__(self, edit: LineEdit) -> bool:
        return (edit.path, edit.old, edit.new) in self.edits


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
