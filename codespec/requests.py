"""Requests, completions, and the Protocols of engines."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, Protocol, TypeAlias, runtime_checkable

from codespec import limits
from codespec.edit import Edit
from codespec.limits import (
    Count,
    Integer,
    Milliseconds,
    Name,
    PathText,
    Text,
    TokenId,
    at_most,
)
from codespec.next_edit import NextEditRequest, NextEdits
from codespec.reasons import NoSuggestion
from codespec.types import Finish, SamplingParams, Snippet, Tokenizer, Trace

MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS = 1 << 17, 1 << 16
"""Characters to send before and after the cursor: more than any prompt takes, as parsers want whole
definitions and lookups all text there is; but all of it is parsed, uninterrupted."""


@dataclass(frozen=True, slots=True)
class Eagerness:
    """Certainty that a suggestion has to have which nobody asked for.

    bar:     least probability that it is kept, 0 to 1; lines from the first one below it on are
             not suggested.
    shift:   log-odds to add to the probability, by what this user kept at such places.
    shift_below: the same for a suggestion that begins below the cursor's line.
    n_shown: lines that the editor shows already, which stay.
    """

    bar: limits.Share = 0.0
    shift: limits.LogOdds = 0.0
    shift_below: limits.LogOdds = 0.0
    n_shown: Count = 0


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a chat."""

    role: Literal["system", "user", "assistant"]
    text: Text


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
    # The prefix is a whole prompt, in which special tokens are spelled out: it is read as it is.
    raw: bool = False
    # A raw prompt in texts and tokens, in place of the prefix.
    parts: Annotated[tuple[TokenId | Text, ...], at_most(limits.TOKENS)] = ()
    form: Name = ""  # name of the form of next-edit prompts that a raw prompt has; "": none
    # A chat whose next message is asked for; the prefix is its text, which lookups draft from.
    messages: Annotated[tuple[ChatMessage, ...], at_most(limits.MESSAGES)] = ()
    needs_template: bool = True  # False: without a chat template the prefix is read in their place
    shortens_chat: bool = False  # True: the oldest messages are left out of one that is too long
    model: Name = ""  # name of the model that is to answer, if one of those in use has it
    whole: bool = False  # the model reads all of the text that its context holds, however long
    # What to show the model of other files, the best one last.
    extra: Annotated[tuple[Snippet, ...], at_most(limits.FILES)] = ()
    n_candidates: Count = 1  # different texts to choose from, the best one included
    eagerness: Eagerness | None = None  # None: all is suggested, and no probability computed
    rewrites: limits.OldText = ""  # a text that the output is expected to repeat much of
    lends: bool = True  # its text may serve the workspace's other documents
    parses: bool = True  # False: processes ended that had it in work, perhaps of its parse
    # What edits are to call it, and one at a time is asked about; "": the path.
    document: limits.Uri = ""
    version: Integer = 0  # of the document
    start: Integer = 0  # where the prefix begins in that; before 0 where other text comes first

    def spelled(self, tokenizer: Tokenizer) -> CompletionRequest:
        """This request with the text of its parts as the prefix, if it has parts."""
        if not self.parts:
            return self
        pieces = (tokenizer.piece(p) if isinstance(p, int) else p.encode() for p in self.parts)
        return replace(self, prefix=b"".join(pieces).decode("utf-8", "replace"))

    def insertion(self, text: str) -> Edit | None:
        """The edit that inserts `text` at the cursor; None for no text."""
        if not text:
            return None
        at = self.start + len(self.prefix)
        return Edit(self.document or self.path, self.version, at, at, text)


@dataclass(frozen=True, slots=True)
class Completion:
    """A suggestion.

    edit:   None for none.
    why:    reason of an empty answer.
    detail: longer text of that reason, for people; "" for none.
    alternatives: further edits, where more than one was asked for.
    """

    edit: Edit | None = None
    finish: Finish = "empty"
    why: NoSuggestion | None = None
    detail: str = ""
    trace: Trace = field(default_factory=Trace)
    alternatives: tuple[Edit, ...] = ()

    @property
    def reason(self) -> str:
        """Cause of an empty answer, for people; "" where there is a suggestion."""
        return self.detail or (self.why.text if self.why else "")

    @property
    def chance(self) -> float:
        """Probability that the edit is kept; 0 where none was computed."""
        return self.trace.chances[self.trace.n_likely - 1] if self.trace.n_likely else 0.0

    @property
    def text(self) -> str:
        """Text of the edit, "" for none; it determines an insertion at the cursor."""
        return "" if self.edit is None else self.edit.text


@dataclass(frozen=True, slots=True)
class Progress:
    """A completion under way. text: all output so far. lines: its finished lines as an edit, None
    for none. chance: see `Trace.chances`, of these lines; 0 where none was computed."""

    text: str
    lines: Edit | None
    chance: float = 0.0


OnProgress: TypeAlias = Callable[[Progress], None]

Paused: TypeAlias = Callable[[bool], bool]
"""True to pause the work; called with True if this turn has made progress."""


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
    """An engine whose completions can be paused and resumed."""

    def completing(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = ...,
        on_progress: OnProgress | None = ...,
        paused: Paused = ...,
    ) -> Generator[None, None, Completion]:
        """`complete` in turns: yields soon after `paused` turns true. The engine may serve any
        other call before it is resumed; the completion is the same."""
        ...


@runtime_checkable
class Librarian(Protocol):
    """An engine that remembers the documents it was asked about."""

    def closed(self, path: str) -> None:
        """Close a document: the text of its file counts again."""
        ...


@runtime_checkable
class Prefetcher(Protocol):
    """An engine that can prefetch."""

    def prefetching(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = ...,
        paused: Paused = ...,
    ) -> Generator[None, None, None]:
        """Do the work that a request at this place, or later in its line, would wait for before the
        first token: read its document and index, prefill its prompt. May be cut short at any time,
        and yields soon after `paused` turns true."""
        ...


@runtime_checkable
class EditFinder(Protocol):
    """An engine that finds next edits."""

    def find_edits(
        self, request: NextEditRequest, cancelled: Callable[[], bool] = ...
    ) -> NextEdits:
        """The next edits at this moment, in milliseconds."""
        ...

    def edit_outcomes(self) -> tuple[int, int]:
        """(made, dismissed): how many proposals became known as the one or the other since this
        was called last."""
        ...


@runtime_checkable
class ModelEditFinder(Protocol):
    """An engine that asks a next-edit model."""

    def finding(
        self,
        request: NextEditRequest,
        cancelled: Callable[[], bool] = ...,
        paused: Paused = ...,
    ) -> Generator[None, None, NextEdits]:
        """The next edits that the model proposes at this moment, in turns: yields soon after
        `paused` turns true."""
        ...


@runtime_checkable
class Idler(Protocol):
    """An engine with work to do while no request waits."""

    def idle(self, interrupted: Callable[[], bool] = ...) -> bool:
        """Do a few milliseconds of it, or one pass. Returns True while there is more."""
        ...
