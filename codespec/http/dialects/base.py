"""The parts that all dialects have in common: one request in a dialect, and the routes, errors and
streams of an API.

All requests for text come down to `CompletionRequest` and `Completion`; `bodies` defines their
fields.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from codespec.config import CompletionSettings, Settings
from codespec.daemon import wire
from codespec.http.bodies import Body
from codespec.http.body_document import BodyDocument
from codespec.http.vocabularies import Vocabulary
from codespec.requests import Completion, CompletionRequest

Json: TypeAlias = dict[str, Any]
Event: TypeAlias = "Json | str"
_B = TypeVar("_B", bound=Body)
_T = TypeVar("_T")


class Dialect(Protocol):
    """One request in a dialect: its body, read, and the form of its answer."""

    @property
    def document(self) -> BodyDocument: ...

    @property
    def path_is_hint(self) -> bool:
        """True if a path that is not that of a file in a workspace is to be left out, not
        refused."""
        ...

    @property
    def streams(self) -> bool: ...

    @property
    def only_reads(self) -> bool:
        """True if no text is wanted: the prompt is to be read (prefill), for a request that will
        come."""
        ...

    @property
    def warnings(self) -> list[str]:
        """Sentences about a request that is answered otherwise than it may be meant, without text
        of it. Known once the requests are made."""
        ...

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        """The requests of this body: one, or several to be answered in turn, which are not
        streamed. Workspace and path are left to `Access.place`."""
        ...

    def answer(self, completions: Sequence[Completion]) -> Json | list[Json]:
        """The whole answer. completions: those of all requests, in their order."""
        ...

    def part(self, text: str) -> Event:
        """Event of a stream: more text."""
        ...

    def end(self, text: str, completion: Completion) -> list[Event]:
        """Last events of a stream. text: the rest that was not sent yet."""
        ...

    def instead_of_error(self, why: str) -> list[Event] | None:
        """Last events of a stream in place of an error, for a client that knows none; None: the
        error is sent."""
        ...


DialectReader: TypeAlias = Callable[[bytes, str], Dialect]
"""Reads a body. Arguments: the body, and the name of the model that will answer, "" while it is not
known. Raises: FieldError."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """An answer in text, as it is sent."""

    text: bytes
    media_type: str = "text/plain; charset=utf-8"


class ServerState(Protocol):
    """State of the HTTP front and of the daemon behind it."""

    @property
    def settings(self) -> Settings: ...

    @property
    def daemon(self) -> wire.StateChanged: ...

    @property
    def workspace_names(self) -> list[str]: ...

    def check_ready(self, *, is_known: bool = True) -> str:
        """A warning for whoever runs the server, "" for none. is_known: False for a client without
        a key, which is told nothing of files on this machine. Raises: Refused while no model is
        ready."""
        ...

    @property
    def is_busy(self) -> bool:
        """True while a text is being written, or waits to be."""
        ...

    async def of_vocabulary(self, question: Callable[[Vocabulary], _T]) -> _T:
        """The answer to a question about the vocabulary of the model that completes. Raises:
        Refused while no model is ready, and for one that tells nothing of its vocabulary."""
        ...

    @property
    def description(self) -> Json:
        """The description of all routes, as OpenAPI."""
        ...

    def models(self) -> list[str]:
        """Names of the model that completes, and of the next-edit model where there is one. Raises:
        Refused while no model is ready."""
        ...

    async def metrics(self, accept: str) -> PlainText:
        """The front's counts and the daemon's figures, in the format of Prometheus that the header
        asks for. Starts no daemon."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """A request that is answered without a completion. rest: of the path, after a route that ends
    in "/". is_known: False for a client that showed no key on a public route. accept: the request's
    header of that name. asked: names and values of its query."""

    server: ServerState
    body: bytes = b""
    rest: str = ""
    is_known: bool = True
    accept: str = ""
    asked: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Writes:
    """A route to text, by POST."""

    read: DialectReader


@dataclass(frozen=True, slots=True)
class Tells:
    """A route to anything else, in JSON or plain text. method: "GET", or "POST" for questions with
    a body. is_public: also for clients without a key, by GET."""

    answer: Callable[[Question], Awaitable[Json | list[Json] | str | PlainText]]
    method: str = "GET"
    is_public: bool = False


Route: TypeAlias = "Writes | Tells"


def server_sent(event: bytes) -> bytes:
    """A server-sent event: https://html.spec.whatwg.org/multipage/server-sent-events.html"""
    return b"data: " + event + b"\n\n"


@dataclass(frozen=True, slots=True)
class Api:
    """The routes of an API, and the form of its errors and streams.

    routes: by path, "" for the root's; one that ends in "/" is that of all paths which begin so.
    error: (status, message, field of the request that it is about or "") -> an error's body.
    prefixes: of paths whose errors have this form where no route is meant, 404 among them.
    stream_type: media type of a stream. framed: an event of a stream, as it is sent.
    """

    routes: Mapping[str, Route]
    error: Callable[[int, str, str], Json]
    prefixes: tuple[str, ...] = ()
    stream_type: str = "text/event-stream"
    framed: Callable[[bytes], bytes] = server_sent


class OfBody(Generic[_B]):
    """The parts of a `Dialect` that follow from the fields which all bodies have."""

    def __init__(self, body: _B, model: str) -> None:
        self._body, self._model = body, model
        self._warnings = list[str]()

    @property
    def warnings(self) -> list[str]:
        return self._warnings

    @property
    def document(self) -> BodyDocument:
        return self._body

    @property
    def path_is_hint(self) -> bool:
        return False

    @property
    def streams(self) -> bool:
        return self._body.stream

    @property
    def only_reads(self) -> bool:
        return self._body.n_tokens == 0

    def instead_of_error(self, why: str) -> list[Event] | None:
        return None


def was_cut(completion: Completion) -> bool:
    """True if a limit ended the text: of tokens, of time or of the client's own."""
    return completion.finish in ("length", "deadline") or completion.trace.is_limited


def about(completion: Completion) -> Json:
    """Figures of a completion by llama.cpp's names and some of our own: tokens read, times, and the
    reason if there is no text."""
    trace = completion.trace
    read_ms = trace.first_token_ms
    write_ms = max(0.0, trace.ms - trace.context_ms - read_ms)
    n_read, n_written = trace.n_prompt_tokens - trace.n_prompt_cached, trace.n_tokens
    timings: Json = {
        "cache_n": trace.n_prompt_cached,
        "prompt_n": n_read,
        "prompt_ms": read_ms,
        "prompt_per_token_ms": read_ms / max(1, n_read),
        "prompt_per_second": 1e3 * n_read / max(1e-3, read_ms),
        "predicted_n": n_written,
        "predicted_ms": write_ms,
        "predicted_per_token_ms": write_ms / max(1, n_written),
        "predicted_per_second": 1e3 * n_written / max(1e-3, write_ms),
        "draft_n": trace.n_drafted,
        "draft_n_accepted": trace.n_accepted,
        "passes_n": trace.n_target_passes,
        "paused_ms": trace.paused_ms,
        "drafts": {
            source: {"draft_n": stats.n_drafted, "draft_n_accepted": stats.n_accepted}
            for source, stats in trace.by_source.items()
        },
    }
    about: Json = {"truncated": trace.n_left_out > 0, "timings": timings}
    if completion.why is not None:
        about |= {"reason": completion.reason, "reason_key": completion.why.value}
    return about
