"""The texts in which next edits may be proposed: open documents, and files of the workspace.

Not among them: what rules exclude, files of secrets, generated and vendored files, files that
cannot be written.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from codespec.index.file_words import FileWords, read_text
from codespec.index.reader import WorkspaceIndex
from codespec.index.selection import LeftOut, is_generated, why_not_by_name
from codespec.limits import OPEN_CHARS
from codespec.next_edit import NextEditRequest
from codespec.rules.open_files import FolderSnapshot, OpenFileRules
from codespec.system.files import FileState, relative, state_of

MAX_DOCUMENTS = 64
"""Documents whose text is kept; those asked about least recently are dropped."""
MAX_WORKSPACES = 8
_MAX_FILES = 512
"""Files whose text is kept; those looked at least recently are dropped."""
_HEAD_CHARS = 4096
_NOT_BY_HAND = (LeftOut.GENERATED, LeftOut.LOCK_FILE, LeftOut.MINIFIED)
"""Reasons to propose nothing even in a document that is being edited."""


@dataclass(frozen=True, slots=True)
class KnownText:
    """Text of an open document, or of a file. file: state of the file when the text was seen; where
    the file changed since, the text may be an older one."""

    workspace: str
    text: str
    file: FileState


class EditableTexts:
    """One thread only."""

    def __init__(
        self, index: Callable[[str], WorkspaceIndex | None], exclude: Sequence[str] = ()
    ) -> None:
        """index: gives that of a workspace folder. exclude: patterns of files that the user's
        settings exclude."""
        self._index = index
        self._rules = OpenFileRules(exclude)
        self._open: OrderedDict[str, KnownText] = OrderedDict()
        self._words: OrderedDict[str, FileWords] = OrderedDict()
        self._files: OrderedDict[str, KnownText] = OrderedDict()

    def why_not(self, request: NextEditRequest) -> str:
        """Why nothing may be proposed in the request's document; "" where something may."""
        path, workspace = request.path, request.workspace
        why = self._rules.why_excluded(path, workspace, request.language_id)
        left_out = None if why else _left_out(path, request.text, workspace)
        return f"the file is {left_out.text}" if left_out in _NOT_BY_HAND else why

    def update(self, request: NextEditRequest) -> KnownText | None:
        """Take over the document's text. Returns: what was known of it before."""
        self._words_of(request.workspace)  # which are read while nobody waits, from now on
        before = self._open.pop(request.path, None)
        self._open[request.path] = KnownText(
            request.workspace, request.text, state_of(request.path)
        )
        n_chars = sum(len(known.text) for known in self._open.values())
        while len(self._open) > 1 and (n_chars > OPEN_CHARS or len(self._open) > MAX_DOCUMENTS):
            _, gone = self._open.popitem(last=False)
            n_chars -= len(gone.text)
        return before

    def forget(self, path: str) -> None:
        """Forget an open document: its file counts again."""
        self._open.pop(path, None)

    def may_show(self, paths: Collection[str], workspace: str) -> set[str]:
        """Those of these files that rules exclude no text of."""
        snapshot = FolderSnapshot()
        rules = self._rules
        return {p for p in paths if not rules.why_excluded(p, workspace, snapshot=snapshot)}

    def of(self, request: NextEditRequest) -> WorkspaceTexts:
        """The texts for a request whose document was taken over."""
        snapshot = FolderSnapshot()
        path, workspace = request.path, request.workspace
        texts = {path: request.text}
        for other, known in self._open.items():
            is_neighbour = bool(workspace) and known.workspace == workspace and other != path
            is_current = is_neighbour and known.file == state_of(other)
            if is_current and self._is_place(other, known.text, workspace, snapshot):
                texts[other] = known.text
        words = self._words_of(workspace)

        def read_file(path: str) -> str:
            return self._text_of_file(path, workspace, snapshot)

        return WorkspaceTexts(texts, path, words, read_file)

    def read_some(self) -> bool:
        """Do some of the reading that no request waits for. Returns: True while there is more."""
        return any(words.read_some() for words in reversed(self._words.values()))

    def _is_place(self, path: str, text: str, workspace: str, snapshot: FolderSnapshot) -> bool:
        is_written = self._may_write(path, workspace, snapshot)
        return is_written and _left_out(path, text, workspace) is None

    def _may_write(self, path: str, workspace: str, snapshot: FolderSnapshot) -> bool:
        is_excluded = self._rules.why_excluded(path, workspace, snapshot=snapshot)
        return not is_excluded and os.access(path, os.W_OK)

    def _text_of_file(self, path: str, workspace: str, snapshot: FolderSnapshot) -> str:
        """The text of a file, which is read again once it changed; "" for one that is no place."""
        known = self._files.pop(path, None)
        if not self._may_write(path, workspace, snapshot):
            return ""
        file = state_of(path)
        if known is None or known.file != file or known.workspace != workspace:
            text = read_text(path) or ""
            is_place = _left_out(path, text, workspace) is None
            known = KnownText(workspace, text if is_place else "", file)
        self._files[path] = known
        if len(self._files) > _MAX_FILES:
            self._files.popitem(last=False)
        return known.text

    def _words_of(self, workspace: str) -> FileWords | None:
        index = self._index(workspace) if workspace else None
        if index is None:
            return None
        words = self._words.pop(workspace, None) or FileWords(index)
        self._words[workspace] = words
        if len(self._words) > MAX_WORKSPACES:
            self._words.popitem(last=False)
        return words


class WorkspaceTexts:
    """`edits.base.Texts` at one moment."""

    def __init__(
        self,
        texts: Mapping[str, str],
        near: str,
        words: FileWords | None,
        read_file: Callable[[str], str],
    ) -> None:
        """near: path of the document that was asked about. words: None for a workspace without an
        index. read_file: text of a file by its path, "" for one that is no place."""
        self._texts = texts
        self._near = near
        self._words = words
        self._read_file = read_file
        self._read: dict[str, str] = {}

    @property
    def open(self) -> Mapping[str, str]:
        return self._texts

    def holding(self, words: Collection[str], n_most: int) -> Iterator[tuple[str, str]]:
        if self._words is None:
            return
        n_left = n_most
        for path in self._words.holding(words, self._near):
            if n_left <= 0:
                return
            text = None if path in self._texts else self._text(path)
            if text and all(word in text for word in words):
                n_left -= 1
                yield path, text

    def _text(self, path: str) -> str:
        """The text of a file, the same for all of the moment; "" for one that is no place."""
        known = self._read.get(path)
        if known is None:
            known = self._read[path] = self._read_file(path)
        return known

    def text_of(self, path: str) -> str | None:
        """The text of this path that was given out; None for none."""
        return self._texts.get(path, self._read.get(path))


def _left_out(path: str, text: str, workspace: str) -> LeftOut | None:
    """Why nobody writes this file by hand, by its name and its first lines."""
    name = relative(path, workspace) if workspace else path
    head = text[:_HEAD_CHARS].encode("utf-8", "replace")
    return why_not_by_name(name.replace(os.sep, "/")) or (
        LeftOut.GENERATED if is_generated(head) else None
    )
