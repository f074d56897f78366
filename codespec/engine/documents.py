"""The documents an engine was asked about lately: their tokens, and what they lend one another."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from codespec.drafters.lookup import ANSWERS, BUFFERS, EDITS, Neighbour
from codespec.files import FileState, state_of
from codespec.index.answers import Answers
from codespec.index.edits import RecentEdits
from codespec.index.live import LiveDocument
from codespec.index.openfiles import Looks, OpenFileRules
from codespec.index.scan import read_file
from codespec.index.text import common_prefix, common_suffix, normalise
from codespec.requests import CompletionRequest
from codespec.types import Context, Snippet, Tokenizer, Tokens

MAX_DOCUMENTS = 8
"""Whose tokens and automata are kept: switching between tabs should cost nothing."""
MAX_PRIVATE = 4
"""Of those that lend nothing, apart: whoever sends many of them takes no editor's place."""
MAX_WORKSPACES = 8


@dataclass(slots=True)
class _Open:
    """file: its state when the buffer was last seen; a file changed since then has other text."""

    document: LiveDocument
    path: str
    workspace: str
    file: FileState = None
    answers: Answers = field(default_factory=Answers)


class OpenDocuments:
    """Those that lend their text, by path; private ones, apart and by made-up names: what has no
    path, and what a request says may not be lent (`CompletionRequest.lends`). An editor may have
    the path of a private one open, and neither document knows of the other.

    One thread only.
    """

    def __init__(
        self, tokenizer: Tokenizer, cuts: re.Pattern[str], exclude: Sequence[str] = ()
    ) -> None:
        """exclude: patterns of files that the user's settings exclude."""
        self._tokenizer = tokenizer
        self._cuts = cuts
        self._rules = OpenFileRules(exclude)
        self._looks = Looks()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._private: OrderedDict[str, _Open] = OrderedDict()
        self._at_work: tuple[str, LiveDocument] | None = None  # of the last `update` or `go_on`
        self._numbers = count(1)
        self._edits: OrderedDict[str, RecentEdits] = OrderedDict()

    def why_excluded(self, request: CompletionRequest) -> str:
        """Why this document must not be completed or learned from; "" when it may be. What is
        found in folders serves the request's `neighbours`, too."""
        self._looks = Looks()
        why = self._rules.why_excluded(
            request.path, request.workspace, request.language_id, self._looks
        )
        if why:
            self._looks = Looks()
            if request.lends:
                self._forget(request.path)
        return why

    def name_of(self, request: CompletionRequest) -> str:
        """What the request's document is known by: its path, or, for a private one, a name that no
        path has. Several clients may send such, and no client says which is which: it is the one
        of the last few of this workspace and path that begins and ends as this one for half its
        text at least, or a new one."""
        if request.path and request.lends:
            return request.path
        text = request.prefix + request.suffix
        most, name = 0.5, ""
        for other, known in self._private.items():
            if (known.path, known.workspace) == (request.path, request.workspace):
                likeness = _likeness(known.document.text, text)
                if likeness >= most:
                    most, name = likeness, other
        # It ends as the path does, which says the language.
        return name or f"\0{next(self._numbers)}{request.path}"

    def update(self, request: CompletionRequest, name: str = "") -> LiveDocument:
        """The document as the request has it; the least recently used one goes. name: see
        `name_of`, where the caller has it already."""
        path, name = request.path, name or self.name_of(request)
        lends = name == path
        shelf, n_most = (self._open, MAX_DOCUMENTS) if lends else (self._private, MAX_PRIVATE)
        edits = self._edits_of(request.workspace) if lends else None
        known = shelf.pop(name, None)
        if known is None:
            document = LiveDocument(self._tokenizer, self._cuts, edits, path)
            known = _Open(document, path, request.workspace)
        elif edits is not None:
            known.workspace = request.workspace
            known.document.report_to(edits)
        known.file = state_of(path)
        shelf[name] = known
        if len(shelf) > n_most:
            _, gone = shelf.popitem(last=False)
            if lends and gone.workspace in self._edits:
                self._edits[gone.workspace].close(gone.path)
        known.document.update(request.prefix, request.suffix)
        self._at_work = name, known.document
        return known.document

    def go_on(self, request: CompletionRequest, name: str, document: LiveDocument) -> None:
        """A request that was left off goes on with its document, which others may have closed, had
        make room, or taken for theirs."""
        if name == request.path:
            self._at_work = name, document
        else:
            self.update(request, name)

    def close(self, path: str) -> bool:
        """The document is no longer open. Of text that was never saved, or that holds a key,
        nothing is kept, the lines that it lost included. Returns: whether there was any."""
        known, self._at_work = self._open.pop(path, None), None
        # Of one that had to make room for others it is not known any more whether it was saved.
        is_kept = known is not None and _is_saved(known) and not known.document.holds_key
        kept_in = known.workspace if known is not None and is_kept else None
        forgot = kept_in is None
        for workspace, edits in self._edits.items():
            if workspace == kept_in:
                edits.close(path)
            else:
                forgot = edits.forget(path) or forgot
        return forgot

    def get(self, name: str) -> LiveDocument:
        """The document at work, or of the last `update` under this name. Raises: KeyError."""
        if self._at_work is not None and self._at_work[0] == name:
            return self._at_work[1]
        return (self._open.get(name) or self._private[name]).document

    def answered(self, context: Context, said: Sequence[int]) -> None:
        """The target said this at a place of a document. Of a private one it is forgotten: what the
        next asks about may be another's that is like it."""
        known = self._open.get(context.document or context.path)
        if known is not None:
            known.answers.add(context.left, said)

    def neighbours(self, context: Context) -> list[Neighbour]:
        """What else the workspace's user has in hand: what was said in this document, recent edits,
        and other documents as they were when last asked about, without secrets. Nothing of a file
        that is excluded or gone by now, or that somebody else changed meanwhile."""
        found: list[Neighbour] = []
        looks, self._looks = self._looks, Looks()
        known = self._open.get(context.document or context.path)
        if known is not None and len(known.answers.automaton):
            found.append((ANSWERS, known.answers.automaton))
        edits = self._edits.get(context.workspace)
        if edits is not None:
            for path in edits.paths:
                if self._holds_key(path) or not self.may_show(path, context.workspace, looks):
                    edits.forget(path)
            found.append((EDITS, edits.automaton))
        for path in self._shared(context.path, context.workspace, looks):
            found += [(BUFFERS, automaton) for automaton in self._open[path].document.lent]
        return found

    def overridden(self, path: str, workspace: str) -> tuple[str, ...]:
        """Files whose stored text is older than what is known here: the request's own document,
        and every other that its editor was the last to change."""
        return tuple(sorted({path, *self._current(workspace)} - {""}))

    def texts(self, path: str, workspace: str) -> list[tuple[str, str]]:
        """(path, text) of the other documents of a workspace, under the rules of `neighbours`;
        the one asked about last comes first."""
        shared = self._shared(path, workspace, Looks())
        return [(other, self._open[other].document.lent_text) for other in reversed(shared)]

    def lost(self, workspace: str) -> list[tuple[str, Tokens]]:
        """(path, lines that its document lost lately), newest first."""
        edits = self._edits.get(workspace)
        return edits.lost if edits is not None else []

    def may_show(self, path: str, workspace: str, looks: Looks) -> bool:
        """Whether text of this file, open or not, may be used. looks: an empty one for several
        questions at the same moment."""
        is_there = path in self._open or state_of(path) is not None
        return is_there and not self._rules.why_excluded(path, workspace, looks=looks)

    def _holds_key(self, path: str) -> bool:
        known = self._open.get(path)
        return known is not None and known.document.holds_key

    def may_still_show(self, snippet: Snippet) -> bool:
        """False for text of an open document that turned out to hold a part of a secret since: of
        one that has any, what it lends now is shown."""
        known = self._open.get(snippet.path)
        if snippet.source != "buffers" or known is None or not known.document.secrets:
            return True
        return snippet.text in known.document.lent_text

    def _shared(self, path: str, workspace: str, looks: Looks) -> list[str]:
        return [
            other
            for other in self._current(workspace)
            if other != path and not self._rules.why_excluded(other, workspace, looks=looks)
        ]

    def _current(self, workspace: str) -> list[str]:
        """Documents of the workspace whose files nobody changed since they were last seen."""
        return [
            path
            for path, known in self._open.items()
            if known.workspace == workspace and known.file == state_of(path)
        ]

    def _edits_of(self, workspace: str) -> RecentEdits:
        edits = self._edits.pop(workspace, None) or RecentEdits()
        self._edits[workspace] = edits
        if len(self._edits) > MAX_WORKSPACES:
            self._edits.popitem(last=False)
        return edits

    def _forget(self, path: str) -> None:
        self._at_work = None
        self._open.pop(path, None)
        for edits in self._edits.values():
            edits.forget(path)


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
    """Whether a file's text is this one."""
    read = read_file(path, 4 * len(text) + 64)
    return read is not None and normalise(read[0].decode("utf-8", "replace")) == text
