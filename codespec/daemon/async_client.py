"""Client of the daemon for event loops, used by the language server and the HTTP front.

Never blocks the loop, never raises at the caller: whatever goes wrong, an empty completion with a
reason comes back inside the deadline, and the connection is mended in the background.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from itertools import count
from typing import TypeAlias, TypeVar, overload

from codespec import __version__
from codespec.config import Settings
from codespec.daemon import payload, wire
from codespec.daemon.address import Address, Transport, address_of, read_port_file
from codespec.daemon.lock import is_free, unresponsive
from codespec.daemon.spawn import Starter
from codespec.errors import CodespecError, DaemonError
from codespec.next_edit import NextEditRequest, NextEdits, NoNextEdit
from codespec.reasons import NoSuggestion
from codespec.requests import Completion, CompletionRequest, OnProgress
from codespec.system.log_privacy import outline

log = logging.getLogger(__name__)

# Reserve before the client's deadline: the answer needs it to reach the client.
_MARGIN_MS = 5.0
# Pause after a failed start: it is not repeated at every keystroke.
_RETRY_S = 5.0
# Deadline of a prefetch, which is of no use by then.
_PREFETCH_MS = 10_000.0
# Time for the daemon to tell its state, which it does at once.
_STATUS_S = 2.0

_T = TypeVar("_T")
OnLeft: TypeAlias = Callable[[Completion], None]


class AsyncClient:
    """A client on one event loop, which all methods must be called on. on_state: called with every
    change of state, from "starting" on. Exceptions of a callback are logged, and end nothing."""

    def __init__(
        self,
        settings: Settings,
        on_state: Callable[[wire.StateChanged], None] = lambda _: None,
        transport: Transport | None = None,
    ) -> None:
        self._settings = settings
        self._transport: Transport | None = transport
        self._on_state = on_state
        self._ids = count(1)
        self._pending: dict[int, asyncio.Future[wire.Answer]] = {}
        self._listeners: dict[int, OnProgress] = {}
        self._left: dict[int, OnLeft] = {}
        self._reports: dict[int, asyncio.Future[wire.StatusReport | None]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._connected: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._address: Address | None = None
        self._doubting: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()
        self._retry_at_s = 0.0
        self._why_not: CodespecError | None = None
        self._stopped = False
        self._closed = False

    def connect(self) -> None:
        """Begin to start or join the daemon, in the background; no effect if under way."""
        if self._closed or self._writer is not None:
            return
        if self._connected is None or self._connected.done():
            loop = asyncio.get_running_loop()
            if loop.time() >= self._retry_at_s:
                self._connected = loop.create_task(self._connect())

    async def complete(
        self,
        request: CompletionRequest,
        on_progress: OnProgress | None = None,
        linger_ms: float = 0.0,
    ) -> Completion:
        """Complete a request, whose `deadline_ms` must be set. A newer request for the same
        `request.document`, if it has a name, takes this one's place. Cancelling the task cancels
        the request.

        linger_ms: the completion may take so much longer while nobody else needs the model; the
            text so far is passed to `on_progress` on the way.
        """
        try:
            return await self.ask(request, on_progress, linger_ms)
        except CodespecError as e:
            return Completion(why=NoSuggestion.FAILED, detail=e.message)

    async def ask(
        self,
        request: CompletionRequest,
        on_progress: OnProgress | None = None,
        linger_ms: float = 0.0,
        on_left: OnLeft | None = None,
    ) -> Completion:
        """`complete` for callers that tell failures from empty answers. on_left: called once the
        task was cancelled, with what was made by then; not where the connection ends before.

        Raises: DaemonError if no daemon can be reached, and the errors that the daemon answers
        with.
        """

        def message(request_id: int, left_ms: float) -> wire.Complete:
            if on_progress is not None:
                self._listeners[request_id] = on_progress
            return wire.Complete(
                id=request_id,
                request=payload.pack(request),
                document=request.document,
                deadline_ms=max(1.0, left_ms - linger_ms),
                linger_ms=linger_ms,
                stream=on_progress is not None,
            )

        answer = await self._exchange(message, request.deadline_ms + linger_ms, on_left)
        if answer is None:
            return Completion(finish="deadline", why=NoSuggestion.NO_ANSWER_IN_TIME)
        return payload.unpack_completion(answer.completion)

    async def find_edits(self, request: NextEditRequest, *, with_model: bool = False) -> NextEdits:
        """Find next edits within `request.deadline_ms`, which must be set. A newer request for the
        same `request.document` takes this one's place. Cancelling the task cancels the request.

        with_model: ask the next-edit model (`edits.model`), which takes as long as a completion.
        """

        def message(request_id: int, left_ms: float) -> wire.FindEdits:
            return wire.FindEdits(
                id=request_id,
                request=payload.pack(request),
                document=request.document,
                deadline_ms=max(1.0, left_ms),
                with_model=with_model,
            )

        try:
            answer = await self._exchange(message, request.deadline_ms)
        except CodespecError as e:
            return NextEdits(why=NoNextEdit.FAILED, detail=e.message)
        if answer is None:
            return NextEdits(why=NoNextEdit.NO_TIME)
        return payload.unpack_edits(answer.edits)

    @overload
    async def _exchange(
        self,
        message: Callable[[int, float], wire.Complete],
        within_ms: float,
        on_left: OnLeft | None,
    ) -> wire.Completed | None: ...

    @overload
    async def _exchange(
        self, message: Callable[[int, float], wire.FindEdits], within_ms: float
    ) -> wire.EditsFound | None: ...

    async def _exchange(
        self,
        message: Callable[[int, float], wire.Complete] | Callable[[int, float], wire.FindEdits],
        within_ms: float,
        on_left: OnLeft | None = None,
    ) -> wire.Completed | wire.EditsFound | None:
        """Send a message and wait for its answer; None if none comes in time.

        message: makes it from its id and the milliseconds that are left for the daemon.
        Raises: as `ask`.
        """
        loop = asyncio.get_running_loop()
        due_s = loop.time() + within_ms / 1e3
        self.connect()
        if self._writer is None and self._connected is not None:
            await asyncio.wait({self._connected}, timeout=due_s - loop.time())
        if self._writer is None:
            why = self._why_not or DaemonError("the daemon is starting")
            raise DaemonError(why.message, why.hint)
        request_id = next(self._ids)
        reply: asyncio.Future[wire.Answer] = loop.create_future()
        self._pending[request_id] = reply
        answered = False
        try:
            self._send(message(request_id, (due_s - loop.time()) * 1e3 - _MARGIN_MS))
            await self._wait(reply, due_s)
            answered = reply.done()
            answer = reply.result() if answered else None
        finally:
            del self._pending[request_id]
            self._listeners.pop(request_id, None)
            if not answered:
                if on_left is not None:
                    self._left[request_id] = on_left
                self._send(wire.Cancel(id=request_id, with_figures=on_left is not None))
        if isinstance(answer, wire.Failed):
            raise wire.error_of(answer)
        return answer

    def closed(self, document: str) -> None:
        """Report that a document is no longer open in the editor."""
        with contextlib.suppress(CodespecError):
            self._send(wire.Closed(document=document))

    def prefetch(self, request: CompletionRequest) -> None:
        """Have the engine prefill for such a request, while no request is due soon. Takes the place
        of the previous one. No effect if no daemon is connected."""
        with contextlib.suppress(CodespecError):
            self._send(
                wire.Complete(
                    id=next(self._ids),
                    request=payload.pack(request),
                    document=request.document,
                    deadline_ms=_PREFETCH_MS,
                    prefetch=True,
                )
            )

    async def status(self) -> wire.StatusReport | None:
        """The daemon's state and figures; None if none is connected, or it does not answer in time.
        Starts no daemon."""
        if self._writer is None:
            return None
        request_id = next(self._ids)
        reply = self._reports[request_id] = asyncio.get_running_loop().create_future()
        try:
            self._send(wire.Status(id=request_id))
            return await asyncio.wait_for(reply, _STATUS_S)
        except asyncio.TimeoutError:
            return None
        finally:
            del self._reports[request_id]

    async def close(self) -> None:
        """Close the connection; the daemon goes on."""
        self._closed = True
        tasks = [t for t in (self._connected, self._reader, self._doubting) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lost()

    def _send(self, message: wire.Message) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(wire.frame(message))

    async def _wait(self, reply: asyncio.Future[wire.Answer], due_s: float) -> None:
        """Wait for the reply until its time is over."""
        loop = asyncio.get_running_loop()
        while not reply.done() and (left_s := due_s - loop.time()) > 0:
            await asyncio.wait({reply}, timeout=min(left_s, wire.SILENCE_S))
            if not reply.done() and (self._doubting is None or self._doubting.done()):
                self._doubting = loop.create_task(self._doubt())

    async def _doubt(self) -> None:
        """Leave a daemon that hangs: a sound one answers each request by its deadline, and this
        question at once."""
        writer, address = self._writer, self._address
        if writer is None or address is None:
            return
        self._heard.clear()
        self._send(wire.Status(id=next(self._ids)))
        try:
            await asyncio.wait_for(self._heard.wait(), wire.SILENCE_S)
        except asyncio.TimeoutError:
            if writer is self._writer:
                self._failed(unresponsive(address.lock))
                writer.transport.abort()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        if self._why_not is None:  # else that is said until it is over
            self._tell_state(wire.StateChanged(state="starting"))
        try:
            address = self._address = address_of(self._settings, self._transport)
            streams = await _open(address)
            if streams is None:
                with Starter(address, self._settings) as starter:
                    while (streams := await _open(address)) is None:
                        # In a thread: it may spawn a process.
                        await asyncio.sleep(await asyncio.to_thread(starter.step))
        except CodespecError as e:
            self._failed(e)
            return
        self._why_not, self._stopped = None, False
        reader, self._writer = streams
        self._reader = loop.create_task(self._read(reader))

    def _failed(self, why: CodespecError) -> None:
        log.warning("no daemon: %s", why)
        self._why_not = why
        self._retry_at_s = asyncio.get_running_loop().time() + _RETRY_S
        self._tell_state(wire.StateChanged(state="failed", reason=why.message, hint=why.hint))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while (message := await wire.read(reader, wire.daemon_decoder)) is not None:
                self._heard.set()
                self._take(message)
        except wire.WireError as e:
            log.warning("%s", e.message)
        except OSError:
            pass
        self._lost()
        if self._stopped:
            # On purpose, by somebody: it comes back when it is needed.
            self._tell_state(wire.StateChanged(state="stopping", reason="the daemon was stopped"))
        else:
            self.connect()

    def _take(self, message: wire.FromDaemon) -> None:
        if isinstance(message, wire.StateChanged):
            self._stopped = message.state == "stopping"
            self._tell_state(message)
        elif isinstance(message, wire.Answer):
            reply = self._pending.get(message.id)
            left = self._left.pop(message.id, None)
            if reply is not None and not reply.done():
                reply.set_result(message)
            elif left is not None and isinstance(message, wire.Completed):
                _tell(left, payload.unpack_completion(message.completion))
        elif isinstance(message, wire.StatusReport):
            report = self._reports.get(message.id)
            if report is not None and not report.done():
                report.set_result(message)
        elif isinstance(message, wire.Partial):
            listener = self._listeners.get(message.id)
            if listener is not None:
                _tell(listener, payload.unpack_progress(message.progress))

    def _tell_state(self, state: wire.StateChanged) -> None:
        _tell(self._on_state, state)

    def _lost(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(ConnectionError):
                self._writer.close()
            self._writer = None
        self._left.clear()
        for reply in self._pending.values():
            if not reply.done():
                why = self._why_not or DaemonError("the daemon ended")
                reply.set_result(wire.failure(0, why))
        for report in self._reports.values():
            if not report.done():
                report.set_result(None)


def _tell(listener: Callable[[_T], None], news: _T) -> None:
    """Call a listener. Its failure must not end the connection, on which others wait."""
    try:
        listener(news)
    except Exception as e:
        log.error("a listener failed: %s", outline(e))  # its message may quote source text


async def _open(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """A greeted connection; None if nobody listens. Raises: DaemonError for a daemon that refuses
    or hangs."""
    key = ""
    try:
        if sys.platform != "win32" and address.transport == "unix":
            reader, writer = await asyncio.open_unix_connection(
                address.socket, limit=wire.STREAM_BYTES
            )
        else:
            port_file = read_port_file(address)
            if port_file is None:
                return None
            key = port_file.key
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port_file.port, limit=wire.STREAM_BYTES
            )
    except OSError:
        return None
    try:
        writer.write(wire.frame(wire.Hello(version=__version__, key=key, watch=True)))
        welcome = await asyncio.wait_for(wire.read(reader, wire.daemon_decoder), wire.HELLO_S)
        if isinstance(welcome, wire.Failed):
            raise wire.error_of(welcome)
        if isinstance(welcome, wire.Welcome):
            return reader, writer
    except ConnectionError:
        pass
    except asyncio.TimeoutError:
        if not is_free(address.lock):
            writer.close()
            raise unresponsive(address.lock) from None
    except BaseException:
        writer.close()
        raise
    writer.close()
    return None
