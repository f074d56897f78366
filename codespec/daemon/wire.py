"""Frames and messages of the daemon, on sockets and on the worker's pipes.

A frame is a 4-byte little-endian length and that many bytes of MessagePack. Requests, completions
and their progress travel as `msgspec.Raw`: whoever only routes them neither parses nor copies
source text, and so cannot log it.

Both ends run the same version of the project (`Hello` checks it), so messages may change freely.
Source: MessagePack specification, https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

import msgspec

from codespec import limits
from codespec.config import Settings
from codespec.daemon.edit_figures import EditFigures
from codespec.errors import CodespecError, ConfigError, DaemonError, InputError, ModelError
from codespec.models.figures import ModelFigures

MAX_FRAME_BYTES = limits.FRAME_BYTES
MAX_REQUEST_BYTES = MAX_FRAME_BYTES - 4096  # the rest of the frame grows a little on the way
STREAM_BYTES = 1 << 20
"""Buffer of asyncio's streams and of pipes: a request of usual size passes in one piece."""
MAX_HELLO_BYTES = limits.HELLO_BYTES
HELLO_S = 10.0
"""Seconds that either end waits for the other's greeting."""
SILENCE_S = 10.0
"""Seconds of silence, or of delay, after which a daemon is asked if it is there; it has as long to
answer."""
_LENGTH = struct.Struct("<I")

State: TypeAlias = Literal[
    "starting",  # the client waits for the daemon
    "loading",  # the worker loads its model
    "ready",
    "restarting",  # the worker died, the next one comes after a pause
    "failed",  # and stays so until somebody does something
    "stopping",
]
FailureKind: TypeAlias = Literal["model", "config", "input", "daemon", "internal"]


class WireError(DaemonError):
    """The other end sent something that is not a frame of this protocol."""


class Message(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Base of all messages; the class name is the tag."""


# --- client to daemon -----------------------------------------------------------------------


class Hello(Message, frozen=True):
    """First frame of a connection. key: proves, on TCP, that the client can read the user's files.
    watch: send `StateChanged` from now on."""

    version: limits.Name
    key: limits.Name = ""
    watch: bool = False


class Complete(Message, frozen=True):
    """Complete a request.

    id: chosen by the sender, unique on its connection.
    request: a `CompletionRequest`.
    document: a later request for the same one takes this one's place; "" never does.
    deadline_ms: milliseconds from receipt; 0: none.
    linger_ms: milliseconds to go on after the deadline, or to go on waiting for the model, if
        nobody else needs it.
    stream: send `Partial` on the way.
    prefetch: only get ready for such a request, while none that is due soon needs the model; a
        later one of this client takes its place.
    parses: see `CompletionRequest`.
    """

    id: limits.Id
    request: msgspec.Raw
    document: limits.Uri = ""
    deadline_ms: limits.Milliseconds = 0.0
    linger_ms: limits.Milliseconds = 0.0
    stream: bool = False
    prefetch: bool = False
    parses: bool = True


class FindEdits(Message, frozen=True):
    """Find next edits. request: a `NextEditRequest`. with_model: True to ask the next-edit model,
    which takes passes. All else as in `Complete`, but it takes no completion's place."""

    id: limits.Id
    request: msgspec.Raw
    document: limits.Uri = ""
    deadline_ms: limits.Milliseconds = 0.0
    with_model: bool = False


class Cancel(Message, frozen=True):
    """The answer to `id` is not wanted any more. A reply still comes: at once, or, where
    with_figures, the worker's own once it has ended a request that is at work."""

    id: limits.Id
    with_figures: bool = False


class Closed(Message, frozen=True):
    """The document is no longer open: the content of its file counts again. No reply comes."""

    document: limits.Uri


class Status(Message, frozen=True):
    """Ask for a `StatusReport`."""

    id: limits.Id


class Configure(Message, frozen=True):
    """Replace the worker by one with these settings."""

    id: limits.Id
    settings: Settings


class Shutdown(Message, frozen=True):
    """End the daemon."""

    id: limits.Id


# --- daemon to client -----------------------------------------------------------------------


class Welcome(Message, frozen=True):
    """Answer to `Hello`."""

    version: str
    pid: int


class Completed(Message, frozen=True):
    """Answer to `Complete`. completion: a `Completion`."""

    id: int
    completion: msgspec.Raw


class EditsFound(Message, frozen=True):
    """Answer to `FindEdits`. edits: a `NextEdits`. figures: its own, and the outcomes that became
    known since the answer before."""

    id: int
    edits: msgspec.Raw
    figures: EditFigures = EditFigures()


class Partial(Message, frozen=True):
    """The text so far. progress: a `Progress`."""

    id: int
    progress: msgspec.Raw


class Failed(Message, frozen=True):
    """An error. id: 0 if it concerns the whole connection, which closes, or the worker's load."""

    id: int
    message: str
    hint: str = ""
    kind: FailureKind = "daemon"


class StateChanged(Message, frozen=True):
    """A change of the daemon's state. reason: why it is so; in "ready", `Ready.notice`. hint: the
    next step, if something is wrong. progress: share of the model that is loaded, 0 to 1, while it
    loads. has_log_probs: False if the model gives no probabilities of its tokens. figures: of the
    model, once it is loaded."""

    state: State
    reason: str = ""
    hint: str = ""
    model: str = ""
    progress: float = 0.0
    has_log_probs: bool = True
    figures: ModelFigures = ModelFigures()


class StatusReport(Message, frozen=True):
    """State and figures of the daemon. reason: why the state is as it is; last_end: why the last
    worker that was replaced ended; memory_bytes: the worker's resident memory, 0 if the system does
    not tell; n_running, n_waiting: requests at work and those that wait, prefetches included;
    figures: of the model, once it is loaded."""

    id: int
    state: State
    reason: str = ""
    hint: str = ""
    version: str = ""
    model: str = ""
    model_path: str = ""
    backend: str = ""
    address: str = ""
    log: str = ""
    pid: int = 0
    worker_pid: int = 0
    uptime_s: float = 0.0
    n_clients: int = 0  # besides the one that asks
    n_requests: int = 0
    n_respawns: int = 0
    last_end: str = ""
    memory_bytes: int = 0
    n_running: int = 0
    n_waiting: int = 0
    next_edits: EditFigures = EditFigures()
    figures: ModelFigures = ModelFigures()


# --- supervisor to worker and back (also Complete, FindEdits, Cancel, Closed; and all
# answers to these)


class Pause(Message, frozen=True):
    """Pause the request, or answer it; no effect on one that is not at work. at_once: even if the
    work of this turn is lost."""

    id: int
    at_once: bool = False


class Paused(Message, frozen=True):
    """The request is paused, and the worker free for others. progressed: its turn made progress."""

    id: int
    progressed: bool


class Resume(Message, frozen=True):
    """Go on with a paused request."""

    id: int


class Load(Message, frozen=True):
    """Load the model. pulse: where the worker counts its steps, see `codespec.system.pulse`; "":
    nobody looks."""

    settings: Settings
    pulse: str = ""


class Loading(Message, frozen=True):
    """Progress of the load. share: 0 to 1."""

    share: float


class Ready(Message, frozen=True):
    """The model is loaded, or its server was asked; sent again where any of this changes, such as
    for a server that was away. file_bytes: of the target. saved_bytes: most memory for states that
    are put aside, and for models that are loaded when they are needed. notice: the way in which the
    engine answers, and why, for people: "the server does not answer: local model until it does"; ""
    for the usual one."""

    model: str
    model_path: str
    backend: str
    file_bytes: int = 0
    saved_bytes: int = 0
    has_log_probs: bool = True  # see `StateChanged`
    notice: str = ""
    figures: ModelFigures = ModelFigures()


Answer: TypeAlias = Completed | EditsFound | Failed
"""Last message about a request."""
FromClient: TypeAlias = (
    Hello | Complete | FindEdits | Cancel | Closed | Status | Configure | Shutdown
)
FromDaemon: TypeAlias = (
    Welcome | Completed | EditsFound | Partial | Failed | StateChanged | StatusReport
)
ToWorker: TypeAlias = Load | Complete | FindEdits | Pause | Resume | Cancel | Closed
FromWorker: TypeAlias = Loading | Ready | Completed | EditsFound | Partial | Paused | Failed

T = TypeVar("T")

client_decoder: msgspec.msgpack.Decoder[FromClient] = msgspec.msgpack.Decoder(FromClient)
daemon_decoder: msgspec.msgpack.Decoder[FromDaemon] = msgspec.msgpack.Decoder(FromDaemon)
to_worker_decoder: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
from_worker_decoder: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)
_encoder = msgspec.msgpack.Encoder()


def frame(message: Message) -> bytearray:
    """Encode a message as a frame. Raises: WireError if it is larger than a frame may be, or not
    Unicode (lone surrogates)."""
    buffer = bytearray(_LENGTH.size)
    try:
        _encoder.encode_into(message, buffer, _LENGTH.size)
    except UnicodeEncodeError:
        raise WireError("a message contains lone surrogates") from None
    n_bytes = len(buffer) - _LENGTH.size
    if n_bytes > MAX_FRAME_BYTES:
        raise too_large(n_bytes)
    _LENGTH.pack_into(buffer, 0, n_bytes)
    return buffer


def too_large(n_bytes: int) -> WireError:
    return WireError(
        f"a message of {n_bytes} bytes is too large (at most {MAX_FRAME_BYTES})",
        "Send less text around the cursor.",
    )


def _body_length(header: bytes, max_bytes: int) -> int:
    n_bytes: int = _LENGTH.unpack(header)[0]
    if n_bytes > max_bytes:
        raise WireError(f"a frame of {n_bytes} bytes (at most {max_bytes})")
    return n_bytes


def decode(
    body: bytes | msgspec.Raw,
    decoder: msgspec.msgpack.Decoder[T],
    what: str = "a message of this protocol",
) -> T:
    """Decode a body. what: the expected content, for the error. Raises: WireError."""
    try:
        return decoder.decode(body)
    # UnicodeDecodeError: a string that is not UTF-8; RecursionError: nesting without end.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        # The message of `e` names fields, types and at most an unknown tag, never text.
        detail = str(e) if isinstance(e, msgspec.DecodeError) else type(e).__name__
        hint = limits.next_step(e) if isinstance(e, msgspec.ValidationError) else ""
        raise WireError(f"not {what}: {detail}", hint) from None


async def read(
    stream: asyncio.StreamReader,
    decoder: msgspec.msgpack.Decoder[T],
    max_bytes: int = MAX_FRAME_BYTES,
) -> T | None:
    """The next message; None if the other end closed between two frames.

    Raises: WireError for anything else than a whole, valid frame.
    """
    try:
        header = await stream.readexactly(_LENGTH.size)
    except asyncio.IncompleteReadError as e:
        if not e.partial:
            return None
        raise WireError("the connection ended within a frame") from None
    n_bytes = _body_length(header, max_bytes)
    try:
        body = await stream.readexactly(n_bytes)
    except asyncio.IncompleteReadError:
        raise WireError("the connection ended within a frame") from None
    return decode(body, decoder)


def read_blocking(receive: Callable[[int], bytes], decoder: msgspec.msgpack.Decoder[T]) -> T | None:
    """`read` for blocking streams. receive: returns 1 to n bytes for n, b"" at the end."""
    header = _receive_exactly(receive, _LENGTH.size)
    if not header:
        return None
    if len(header) == _LENGTH.size:
        n_bytes = _body_length(header, MAX_FRAME_BYTES)
        body = _receive_exactly(receive, n_bytes)
        if len(body) == n_bytes:
            return decode(body, decoder)
    raise WireError("the connection ended within a frame")


def _receive_exactly(receive: Callable[[int], bytes], n_bytes: int) -> bytes:
    data = bytearray()
    while len(data) < n_bytes and (part := receive(n_bytes - len(data))):
        data += part
    return bytes(data)


# --- errors across processes ----------------------------------------------------------------

_KINDS: dict[FailureKind, type[CodespecError]] = {
    "model": ModelError,
    "config": ConfigError,
    "input": InputError,
    "daemon": DaemonError,
    "internal": CodespecError,
}


def failure(request_id: int, error: CodespecError) -> Failed:
    kinds: list[FailureKind] = [kind for kind, cls in _KINDS.items() if isinstance(error, cls)]
    return Failed(id=request_id, message=error.message, hint=error.hint, kind=kinds[0])


def error_of(failed: Failed) -> CodespecError:
    """The exception to raise in the client's process."""
    return _KINDS[failed.kind](failed.message, failed.hint)
