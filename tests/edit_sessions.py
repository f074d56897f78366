"""Somebody who edits documents and asks for next edits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from codespec.documents.edit_history import EditHistory
from codespec.edits.base import CursorLine, LineEdit
from codespec.edits.dismissals import AnyDismissed
from codespec.edits.line_tokens import words as words_of
from codespec.edits.repeats import Repeats

HERE, THERE = "/w/a.py", "/w/b.py"


class SessionTexts:
    """Open documents and files of a workspace."""

    def __init__(self, opened: dict[str, str], files: dict[str, str] | None = None) -> None:
        self.opened, self.files = opened, files or {}
        self.asked: list[Collection[str]] = []

    @property
    def open(self) -> Mapping[str, str]:
        return self.opened

    def holding(self, words: Collection[str], n_most: int) -> Iterable[tuple[str, str]]:
        self.asked.append(words)
        found = [each for each in self.files.items() if {*words} <= {*words_of(each[1])}]
        return found[:n_most]


class EditingSession:
    """Documents by their names without folder and ending, `a` the first one."""

    def __init__(self, files: dict[str, str] | None = None, **opened: str) -> None:
        self.texts = SessionTexts({f"/w/{name}.py": text for name, text in opened.items()}, files)
        self.history = EditHistory()
        self.cursor = CursorLine(HERE, 0)
        self.repeats = Repeats()
        self.dismissed: set[AnyDismissed] = set()

    def edit(self, old: str, new: str, path: str = HERE) -> None:
        before = self.texts.opened[path]
        assert old in before
        self.change(path, before.replace(old, new, 1), before.count("\n", 0, before.index(old)))

    def change(self, path: str, after: str, line: int) -> None:
        before = self.texts.opened[path]
        self.texts.opened[path] = after
        self.history.changed(path, before, after)
        self.cursor = CursorLine(path, line)

    def proposed(self) -> list[LineEdit]:
        changes = self.history.changes()
        return self.repeats.propose(changes, self.texts, self.cursor, self.dismissed)

    def said(self) -> list[tuple[str, int, tuple[str, ...]]]:
        return [(edit.path, edit.line, edit.new) for edit in self.proposed()]

    def features(self) -> dict[tuple[str, int], dict[str, float]]:
        """The ranking's view of the candidates, by path and line."""
        changes = self.history.changes()
        found = self.repeats.candidates(changes, self.texts, self.cursor, self.dismissed)
        return {(c.found.text.path, c.found.place.line): row for c, row in found}

    def apply(self, edit: LineEdit) -> None:
        lines = self.texts.opened[edit.path].split("\n")
        end = edit.line + len(edit.old)
        assert tuple(lines[edit.line : end]) == edit.old
        lines[edit.line : end] = edit.new
        self.change(edit.path, "\n".join(lines), edit.line)
