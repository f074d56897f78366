"""What an engine is asked, what it answers, and the Protocols that engines meet."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Annotated, Protocol, TypeAlias, runtime_checkable

from codespec import limits
from codespec.edit import Edit
from codespec.limits import Count, Integer, Milliseconds, Name, PathText, Text, at_most
from codespec.types import Finish, SamplingParams, Snippet, Trace

MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS = 1 << 17, 1 << 16
"""What to send around a suggestion: more than any prompt takes, as parsers want whole definitions
and lookups all there is; but all of it is parsed, uninterrupted."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One place in one document. `prefix` and `suffix` are the text around the cursor, \\n line
    ends, as much of it as the client cares to send; the engine cuts them to its windows."""

    prefix: Text
    suffix: Text = ""
    path: PathText = ""  # absolute, "" for an untitled document
    workspace: PathText = ""  # absolute folder, "" for none
    language_id: Name = ""
    max_tokens: Count = 64
    deadline_ms: Milliseconds = 0.0  # counted from the engine's receipt; 0: none
    sampling: SamplingParams = field(default_factory=SamplingParams)
    # None: as configured; (): plain decoding
    drafters: Annotated[tuple[Name, ...], at_most(limits.NAMES)] | None = None
    multiline: bool = True
    # The text ends before the first of these.
    stop: Annotated[tuple[limits.Stop, ...], at_most(limits.STOPS)] = ()
    min_indent: Count = 0  # and before a further line that is indented by fewer columns
    max_line_ms: Milliseconds = 0.0  # so long after the first token it ends with its line; 0: never
    verbatim: bool = False  # the model's own text: no shape ends it, nothing else is taken away
    whole: bool = False  # the model reads all of the text that its context holds, however long
    # What to show the model of other files, the best one last.
    extra: Annotated[tuple[Snippet, ...], at_most(limits.FILES)] = ()
    n_candidates: Count = 1  # different texts to choose from, the best one included
    lends: bool = True  # its text may serve the workspace's other documents
    parses: bool = True  # False: processes ended that had it in work, perhaps of its parse
    # What edits are to call it, and one at a time is asked about; "": the path.
    document: limits.Uri = ""
    version: Integer = 0  # of the document
    start: Integer = 0  # where the prefix begins in that; before 0 where other text comes first

    def insertion(self, text: str) -> Edit | None:
        """The edit that inserts `text` at the cursor; None for no text."""
        if not text:
            return None
        at = self.start + len(self.prefix)
        return Edit(self.document or self.path, self.version, at, at, text)


@dataclass(frozen=True, slots=True)
class Completion:
    """A suggestion: `edit`, None for none. `reason` says in words why there is none or a short
    one; `alternatives` are further edits, where more than one was asked for."""

    edit: Edit | None = None
    finish: Finish = "empty"
    reason: str = ""
    trace: Trace = field(default_factory=Trace)
    alternatives: tuple[Edit, ...] = ()

    @property
    def text(self) -> str:
        """Text of the edit, "" for none: all there is to know of an insertion at the cursor."""
        return "" if self.edit is None else self.edit.text


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a completion is. `text`: all so far, as the model said it; `lines`: its finished
    lines as an edit, None for none."""

    text: str
    lines: Edit | None


OnProgress: TypeAlias = Callable[[Progress], None]

Paused: TypeAlias = Callable[[bool], bool]
"""Whether to leave off, asked with whether this turn has got anywhere yet."""


class Engine(Protocol):
    """Answers requests: in this process (`LocalEngine`) or through the daemon."""

    def complete(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = ...,
        on_progress: OnProgress | None = ...,
    ) -> Completion:
        """`on_progress` is called from time to time while the text grows."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Interruptible(Protocol):
    """An engine whose completions can be left off and gone on with."""

    def completing(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = ...,
        on_progress: OnProgress | None = ...,
        paused: Paused = ...,
    ) -> Generator[None, None, Completion]:
        """As `complete`; yields soon after `paused` turns true. The engine may be asked for
        anything else before it is resumed, and says then what it would have said."""
        ...


@runtime_checkable
class Librarian(Protocol):
    """An engine that remembers the documents it was asked about."""

    def closed(self, path: str) -> None:
        """The document is no longer open: what its file holds counts again."""
        ...


@runtime_checkable
class Prefetcher(Protocol):
    """An engine that can get ready for a request."""

    def prefetching(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = ...,
        paused: Paused = ...,
    ) -> Generator[None, None, None]:
        """Do what a request at this place, or later in its line, would wait for before the first
        token: read its prompt, its document, its index. May be cut short at any time, and yields
        soon after `paused` turns true."""
        ...


@runtime_checkable
class Idler(Protocol):
    """An engine with work to do while no request waits."""

    def idle(self, interrupted: Callable[[], bool] = ...) -> bool:
        """Do a little of it, a few milliseconds or one pass; True while there is more."""
        ...
