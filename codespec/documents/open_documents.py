"""The documents that an engine was asked about lately: their tokens, and the text that they lend
one another."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np

from codespec.documents.edit_histories import MAX_WORKSPACES, EditHistories
from codespec.documents.live import LiveDocument
from codespec.documents.past_output import Answers
from codespec.documents.pieces import PieceCache
from codespec.documents.recent_edits import RecentEdits
from codespec.documents.sources import ANSWERS, BUFFERS, EDITS, Neighbour
from codespec.index.walk import read_file
from codespec.requests import CompletionRequest
from codespec.rules.open_files import FolderSnapshot, OpenFileRules
from codespec.syntax.text import common_prefix, common_suffix, normalise, split
from codespec.system.files import FileState, state_of
from codespec.types import NO_TOKENS, Context, Snippet, Tokenizer, Tokens

MAX_DOCUMENTS = 8
"""Documents whose tokens and automata are kept: switching between tabs should cost nothing."""
MAX_PRIVATE = 4
"""Private documents that are kept, apart from the others: a client that sends many of them evicts
none of an editor's."""


@dataclass(slots=True)
class _Open:
    """A document that is kept. file: state of the file when the buffer was last seen; a file that
    changed since has other text."""

    document: LiveDocument
    path: str
    workspace: str
    file: FileState = None
    answers: Answers = field(default_factory=Answers)


class OtherDocuments(NamedTuple):
    """Text of a workspace beside the document of a request, newest first.

    texts:      (path, text) of other open documents, under the rules of `neighbours`.
    lost:       (path, lines that its document lost lately).
    overridden: see `OpenDocuments.overridden`.
    """

    texts: list[tuple[str, str]]
    lost: list[tuple[str, Tokens]]
    overridden: tuple[str, ...]


class OpenDocuments:
    """Documents that lend their text, by path; and private ones, apart, by made-up names: those
    without a path, and those that a request declares private (`CompletionRequest.lends`). An editor
    may have the path of a private one open, and neither document knows of the other.

    One thread only.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        cuts: re.Pattern[str],
        exclude: Sequence[str] = (),
        histories: EditHistories | None = None,
    ) -> None:
        """exclude: patterns of files that the user's settings exclude. histories: told of the
        documents; None for some of their own."""
        self._tokenizer = tokenizer
        self._cuts = cuts
        self._rules = OpenFileRules(exclude)
        self._snapshot = FolderSnapshot()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._private: OrderedDict[str, _Open] = OrderedDict()
        self._at_work: tuple[str, LiveDocument] | None = None  # set by `update` and `go_on`
        self._numbers = count(1)
        self._histories = histories or EditHistories()
        self._edits: OrderedDict[str, RecentEdits] = OrderedDict()
        self._pieces = PieceCache(tokenizer, cuts)

    def why_excluded(self, request: CompletionRequest) -> str:
        """The reason why this document must not be completed or learned from; "" when it may be.
        The states of folders that are read here serve the request's `neighbours`, too."""
        self._snapshot = FolderSnapshot()
        why = self._rules.why_excluded(
            request.path, request.workspace, request.language_id, self._snapshot
        )
        if why:
            self._snapshot = FolderSnapshot()
            if request.lends:
                self._forget(request.path)
        return why

    def name_of(self, request: CompletionRequest) -> str:
        """Key of the request's document: its path, or, for a private one, a name that no path has.
        Several clients may send private documents, and no client says which is which: the key is
        that of the last few of this workspace and path that begins and ends as this one for half
        its text at least, or a new one."""
        if request.path and request.lends:
            return request.path
        text = request.prefix + request.suffix
        most, name = 0.5, ""
        for other, known in self._private.items():
            if (known.path, known.workspace) == (request.path, request.workspace):
                likeness = _likeness(known.document.text, text)
                if likeness >= most:
                    most, name = likeness, other
        # The key ends as the path does, which tells the language.
        return name or f"\0{next(self._numbers)}{request.path}"

    def update(self, request: CompletionRequest, name: str = "") -> LiveDocument:
        """Set the text of the request's document; the least recently used document is evicted.
        name: see `name_of`, where the caller has it already."""
        request = request.spelled(self._tokenizer)
        name = name or self.name_of(request)
        if name == request.path:
            self._tell(request)
        return self._put(request, name)

    def _put(self, request: CompletionRequest, name: str) -> LiveDocument:
        lends = name == request.path
        shelf, n_most = (self._open, MAX_DOCUMENTS) if lends else (self._private, MAX_PRIVATE)
        known = shelf.pop(name, None)
        if known is None:
            document = LiveDocument(self._tokenizer, self._cuts, name)
            known = _Open(document, request.path, request.workspace)
        elif lends:
            known.workspace = request.workspace
        known.file = state_of(request.path)
        shelf[name] = known
        if len(shelf) > n_most:
            shelf.popitem(last=False)
        known.document.update(request.prefix, request.suffix)
        self._at_work = name, known.document
        return known.document

    def _tell(self, request: CompletionRequest) -> None:
        """Tell the history of a document that lends its text. One that moved to another workspace
        is forgotten in the one before: nobody would tell it whether the file was saved."""
        path, text = request.path, request.prefix + request.suffix
        known, history = self._open.get(path), self._histories.of(request.workspace)
        if known is not None and known.workspace != request.workspace:
            before = self._histories.get(known.workspace)
            if before is not None:
                before.forget(path)
            known = None
        seen = history.text(path) if known is not None else None
        is_from_disk = known is not None and seen != text and known.file != state_of(path)
        on_disk = is_from_disk and _holds(path, text)
        history.told(path, text, seen, on_disk=on_disk)

    def go_on(self, request: CompletionRequest, document: LiveDocument) -> None:
        """Put the document of a resumed request to work again: meanwhile other requests may have
        closed it, evicted it, or taken it for theirs."""
        if document.name == request.path:
            self._at_work = document.name, document
        else:
            self._put(request.spelled(self._tokenizer), document.name)

    def close(self, path: str) -> bool:
        """Close a document. Of text that was never saved, or that holds a key, nothing is kept, the
        lines that it lost included. Returns: True if there was any."""
        known, self._at_work = self._open.pop(path, None), None
        # An evicted document may have been saved or not; nothing tells any more.
        is_kept = known is not None and _is_saved(known) and not known.document.holds_key
        kept_in = known.workspace if known is not None and is_kept else None
        forgot = kept_in is None
        for workspace, history in self._histories.items():
            if workspace == kept_in:
                history.closed(path)
            else:
                forgot = history.forget(path) or forgot
        return forgot

    def get(self, name: str) -> LiveDocument:
        """The document in use, or of the last `update` under this name. Raises: KeyError."""
        if self._at_work is not None and self._at_work[0] == name:
            return self._at_work[1]
        return (self._open.get(name) or self._private[name]).document

    def answered(self, context: Context, said: Sequence[int]) -> None:
        """Keep an answer of the target at a place of a document. An answer in a private one is
        dropped: the next request may be for another document that is like it."""
        known = self._open.get(context.document or context.path)
        if known is not None:
            known.answers.add(context.left, said)

    def neighbours(self, context: Context) -> list[Neighbour]:
        """Automata beside the document's own: past answers in this document, recent edits, and
        other documents as they were when last asked about, without secrets. Nothing of a file that
        is excluded or gone by now, or that another program changed meanwhile."""
        found: list[Neighbour] = []
        snapshot, self._snapshot = self._snapshot, FolderSnapshot()
        known = self._open.get(context.document or context.path)
        if known is not None and len(known.answers.automaton):
            found.append((ANSWERS, known.answers.automaton))
        edits = self._edits_of(context.workspace)
        if edits is not None:
            for path in edits.history.paths:
                if self._holds_key(path) or not self._may_show(path, context.workspace, snapshot):
                    edits.history.forget(path)
            found.append((EDITS, edits.automaton))
        for path in self._shared(context.path, context.workspace, snapshot):
            found += [(BUFFERS, automaton) for automaton in self._open[path].document.lent]
        return found

    def overridden(self, path: str, workspace: str) -> tuple[str, ...]:
        """Files whose indexed text is older than the text known here: the request's own document,
        and every other that its editor was the last to change."""
        return tuple(sorted({path, *self._current(workspace)} - {""}))

    def texts(self, path: str, workspace: str) -> list[tuple[str, str]]:
        """(path, text) of the other documents of a workspace, under the rules of `neighbours`;
        the one asked about last comes first."""
        shared = self._shared(path, workspace, FolderSnapshot())
        return [(other, self._open[other].document.lent_text) for other in reversed(shared)]

    def lost(self, workspace: str) -> list[tuple[str, Tokens]]:
        """(path, lines that its document lost lately), newest first."""
        edits = self._edits_of(workspace)
        return edits.lost if edits is not None else []

    def others(self, path: str, workspace: str) -> OtherDocuments:
        """Text of the workspace beside the document at `path`."""
        texts, lost = self.texts(path, workspace), self.lost(workspace)
        return OtherDocuments(texts, lost, self.overridden(path, workspace))

    def withdrawn(self, snippets: Collection[Snippet], workspace: str) -> set[str]:
        """Paths of those snippets whose text must not be shown, or not any more: the file is
        excluded or gone, or the text turned out to hold a part of a secret."""
        snapshot = FolderSnapshot()
        paths = {snippet.path for snippet in snippets}
        unfit = {path for path in paths if not self._may_show(path, workspace, snapshot)}
        return unfit | {s.path for s in snippets if not self._may_still_show(s)}

    def _may_show(self, path: str, workspace: str, snapshot: FolderSnapshot) -> bool:
        """True if text of this file, open or not, may be used. snapshot: an empty one for several
        questions at the same moment."""
        is_there = path in self._open or state_of(path) is not None
        return is_there and not self._rules.why_excluded(path, workspace, snapshot=snapshot)

    def _holds_key(self, path: str) -> bool:
        known = self._open.get(path)
        return known is not None and known.document.holds_key

    def _may_still_show(self, snippet: Snippet) -> bool:
        """False for text of an open document that turned out to hold a part of a secret since."""
        known = self._open.get(snippet.path)
        if snippet.source != "buffers" or known is None or not known.document.secrets:
            return True
        return snippet.text in known.document.lent_text

    def _shared(self, path: str, workspace: str, snapshot: FolderSnapshot) -> list[str]:
        return [
            other
            for other in self._current(workspace)
            if other != path and not self._rules.why_excluded(other, workspace, snapshot=snapshot)
        ]

    def _current(self, workspace: str) -> list[str]:
        """Documents of the workspace whose files nobody changed since they were last seen."""
        return [
            path
            for path, known in self._open.items()
            if known.workspace == workspace and known.file == state_of(path)
        ]

    def _edits_of(self, workspace: str) -> RecentEdits | None:
        """The recent edits of a workspace, None where no document of it was seen."""
        history = self._histories.get(workspace)
        if history is None:
            return None
        edits = self._edits.pop(workspace, None)
        if edits is None or edits.history is not history:
            edits = RecentEdits(history, self._encode)
        self._edits[workspace] = edits
        if len(self._edits) > MAX_WORKSPACES:
            self._edits.popitem(last=False)
        return edits

    def _encode(self, text: str) -> Tokens:
        pieces = self._pieces.encode(list(split(text, self._cuts, 1)))
        return np.concatenate(pieces) if pieces else NO_TOKENS

    def _forget(self, path: str) -> None:
        self._at_work = None
        self._open.pop(path, None)
        self._histories.forget(path)


def _likeness(a: str, b: str) -> float:
    """The share of the longer text that is the same at the beginning or at the end."""
    n_longer, n_shorter = max(len(a), len(b)), min(len(a), len(b))
    n_same = common_prefix(a, b)
    n_same += common_suffix(a, b, n_shorter - n_same)
    return n_same / n_longer if n_longer else 1.0


def _is_saved(known: _Open) -> bool:
    now = state_of(known.path)
    # A file that changed since was saved, most likely by this editor; not one that is gone.
    return now is not None and (now != known.file or _holds(known.path, known.document.text))


def _holds(path: str, text: str) -> bool:
    """True if the text of a file is this one."""
    read = read_file(path, 4 * len(text) + 64)
    return read is not None and normalise(read[0].decode("utf-8", "replace")) == text
