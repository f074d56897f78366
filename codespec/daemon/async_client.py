"""Client of the daemon for event loops: the language server's way in.

Never blocks the loop, never raises at the caller: whatever goes wrong, an empty completion with
a reason comes back inside the deadline, and the connection is mended in the background.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from codespec import __version__
from codespec.config import Settings
from codespec.daemon import payload, wire
from codespec.daemon.address import Address, Transport, address_of, read_port_file
from codespec.daemon.lock import is_free, unresponsive
from codespec.daemon.logs import outline
from codespec.daemon.spawn import Starter
from codespec.errors import CodespecError, DaemonError
from codespec.requests import Completion, CompletionRequest, OnProgress

log = logging.getLogger(__name__)

# Of the client's deadline, for the way back.
_MARGIN_MS = 5.0
# A daemon that could not be started is not tried at every keystroke.
_RETRY_S = 5.0
# Nobody waits for it; by then it is of no use.
_PREFETCH_MS = 10_000.0

_T = TypeVar("_T")


class AsyncClient:
    """All methods on one event loop. `on_state` hears every change, from "starting" on. What a
    callback raises is logged, and ends nothing."""

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
        self._pending: dict[int, asyncio.Future[wire.Completed | wire.Failed]] = {}
        self._listeners: dict[int, OnProgress] = {}
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
        """`request.deadline_ms` must be set. A newer request for the same `request.document`, where
        it has a name, takes this one's place. Cancelling the task cancels the request. `linger_ms`:
        the completion may take so much longer while nobody else needs the model; what there is so
        far is told on the way.
        """
        try:
            return await self.ask(request, on_progress, linger_ms)
        except CodespecError as e:
            return Completion(reason=e.message)

    async def ask(
        self,
        request: CompletionRequest,
        on_progress: OnProgress | None = None,
        linger_ms: float = 0.0,
    ) -> Completion:
        """As `complete`, for callers that tell failures from empty answers.

        Raises: DaemonError where no daemon can be reached, and what the daemon answers with.
        """
        loop = asyncio.get_running_loop()
        due_s = loop.time() + (request.deadline_ms + linger_ms) / 1e3
        self.connect()
        if self._writer is None and self._connected is not None:
            await asyncio.wait({self._connected}, timeout=due_s - loop.time())
        if self._writer is None:
            why = self._why_not or DaemonError("the daemon is starting")
            raise DaemonError(why.message, why.hint)
        request_id = next(self._ids)
        reply: asyncio.Future[wire.Completed | wire.Failed] = loop.create_future()
        self._pending[request_id] = reply
        if on_progress is not None:
            self._listeners[request_id] = on_progress
        answered = False
        try:
            self._send(
                wire.Complete(
                    id=request_id,
                    request=payload.pack(request),
                    document=request.document,
                    deadline_ms=max(1.0, (due_s - loop.time()) * 1e3 - linger_ms - _MARGIN_MS),
                    linger_ms=linger_ms,
                    stream=on_progress is not None,
                )
            )
            await self._wait(reply, due_s)
            answered = reply.done()
            if not answered:
                return Completion(finish="deadline", reason="no answer by the deadline")
            return _completion(reply.result())
        finally:
            del self._pending[request_id]
            self._listeners.pop(request_id, None)
            if not answered:
                self._send(wire.Cancel(id=request_id))

    def closed(self, document: str) -> None:
        """The document is no longer open in the editor."""
        with contextlib.suppress(CodespecError):
            self._send(wire.Closed(document=document))

    def prefetch(self, request: CompletionRequest) -> None:
        """Have the engine get ready for such a request, while nothing is asked for that is due
        soon. Takes the place of the one before. No effect where no daemon is connected."""
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

    async def close(self) -> None:
        """Leaves the daemon running."""
        self._closed = True
        tasks = [t for t in (self._connected, self._reader, self._doubting) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lost()

    def _send(self, message: wire.Message) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(wire.frame(message))

    async def _wait(
        self, reply: asyncio.Future[wire.Completed | wire.Failed], due_s: float
    ) -> None:
        """Until it is there, or its time is over."""
        loop = asyncio.get_running_loop()
        while not reply.done() and (left_s := due_s - loop.time()) > 0:
            await asyncio.wait({reply}, timeout=min(left_s, wire.SILENCE_S))
            if not reply.done() and (self._doubting is None or self._doubting.done()):
                self._doubting = loop.create_task(self._doubt())

    async def _doubt(self) -> None:
        """Leave a daemon that hangs: it answers each request by its deadline, and this at once."""
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
        elif isinstance(message, wire.Completed | wire.Failed):
            reply = self._pending.get(message.id)
            if reply is not None and not reply.done():
                reply.set_result(message)
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
        for reply in self._pending.values():
            if not reply.done():
                why = self._why_not or DaemonError("the daemon ended")
                reply.set_result(wire.failure(0, why))


def _tell(listener: Callable[[_T], None], news: _T) -> None:
    """A listener's failure is not the connection's, on which others wait."""
    try:
        listener(news)
    except Exception as e:
        log.error("a listener failed: %s", outline(e))  # its message may quote source text


def _completion(reply: wire.Completed | wire.Failed) -> Completion:
    if isinstance(reply, wire.Failed):
        raise wire.error_of(reply)
    return payload.unpack_completion(reply.completion)


async def _open(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """A greeted connection; None where nobody listens. Raises: DaemonError for a daemon that
    refuses or hangs."""
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
