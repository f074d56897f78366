"""Blocking clients of the daemon: one connection, and an `Engine` for the CLI."""

from __future__ import annotations

import contextlib
import selectors
import socket
import sys
import time
from collections.abc import Callable
from itertools import count

from codespec import __version__
from codespec.config import Settings
from codespec.daemon import payload, wire
from codespec.daemon.address import Address, Transport, address_of, read_port_file
from codespec.daemon.lock import is_free, is_stopped, unresponsive
from codespec.daemon.spawn import Starter
from codespec.errors import DaemonError
from codespec.reasons import NoSuggestion
from codespec.requests import Completion, CompletionRequest, OnProgress

_FRAME_S = 10.0
_GRACE_S = 2.0
_POLL_S = 0.01
# Seconds of silence after which a client checks if the daemon's process is stopped.
_LOOK_S = 1.0


class Connection:
    """A greeted connection. Use it on one thread."""

    def __init__(self, address: Address, hello_s: float | None = None) -> None:
        """hello_s: seconds to wait for a daemon that listens but does not greet.

        Raises: OSError if nobody listens, DaemonError for a daemon that refuses or hangs.
        """
        self._address = address
        self._ids = count(1)
        self._look_at = time.monotonic() + _LOOK_S
        self._selector = selectors.DefaultSelector()
        if sys.platform != "win32" and address.transport == "unix":
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            target, key = str(address.socket), ""
        else:
            port_file = read_port_file(address)
            if port_file is None:
                self._selector.close()
                raise FileNotFoundError(address.port_file)
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            target, key = ("127.0.0.1", port_file.port), port_file.key
        try:
            self._socket.settimeout(_FRAME_S)
            self._socket.connect(target)
            self._selector.register(self._socket, selectors.EVENT_READ)
            self.send(wire.Hello(version=__version__, key=key))
            welcome = self.receive(wire.HELLO_S if hello_s is None else hello_s)
            if welcome is None and not is_free(address.lock):
                raise unresponsive(address.lock)
            if not isinstance(welcome, wire.Welcome):
                raise ConnectionResetError("no welcome")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._selector.close()
        self._socket.close()

    def new_id(self) -> int:
        return next(self._ids)

    def send(self, message: wire.Message) -> None:
        """Send a message. Raises: ConnectionError if the daemon is gone, or does not read;
        DaemonError for one that is stopped."""
        left = memoryview(wire.frame(message))
        give_up_at = time.monotonic() + _FRAME_S
        self._socket.settimeout(_LOOK_S)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except TimeoutError:
                self._require_going()
                if time.monotonic() > give_up_at:
                    raise ConnectionAbortedError("the daemon does not read") from None
        self._socket.settimeout(_FRAME_S)
        self._look_at = time.monotonic() + _LOOK_S

    def receive(self, timeout_s: float) -> wire.FromDaemon | None:
        """The next message; None if none begins within the time.

        Raises: ConnectionError if the daemon is gone, WireError, DaemonError for a daemon that is
        stopped, and the daemon's own exception if it refuses this connection.
        """
        now = time.monotonic()
        give_up_at = now + timeout_s
        while not self._selector.select(max(0.0, min(give_up_at, self._look_at) - now)):
            now = time.monotonic()
            if now >= self._look_at:
                self._require_going()
            if now >= give_up_at:
                return None
        self._look_at = time.monotonic() + _LOOK_S
        try:
            message = wire.read_blocking(self._socket.recv, wire.daemon_decoder)
        except TimeoutError:
            raise ConnectionAbortedError("the daemon stopped within a frame") from None
        if message is None:
            raise ConnectionResetError("the daemon closed the connection")
        if isinstance(message, wire.Failed) and message.id == 0:
            raise wire.error_of(message)
        return message

    def _require_going(self) -> None:
        self._look_at = time.monotonic() + _LOOK_S
        if is_stopped(self._address.lock):
            raise unresponsive(self._address.lock)

    def ask(self, message: wire.Status | wire.Configure | wire.Shutdown) -> wire.StatusReport:
        """Send a message and wait for the report. Raises: DaemonError if no answer comes."""
        self.send(message)
        give_up_at = time.monotonic() + _FRAME_S
        while (left_s := give_up_at - time.monotonic()) > 0:
            reply = self.receive(left_s)
            if isinstance(reply, wire.StatusReport) and reply.id == message.id:
                return reply
        raise unresponsive(self._address.lock)


def try_connect(address: Address, hello_s: float | None = None) -> Connection | None:
    """A connection; None if no daemon listens. Raises: DaemonError for one that refuses or
    hangs."""
    try:
        return Connection(address, hello_s)
    except OSError:
        return None


def connect_or_start(address: Address, settings: Settings) -> Connection:
    """A connection to the daemon, which is started if need be. Raises: DaemonError if it cannot be
    started; the message quotes the end of its log."""
    connection = try_connect(address)
    if connection is not None:
        return connection
    with Starter(address, settings) as starter:
        while (connection := try_connect(address)) is None:
            time.sleep(starter.step())
    return connection


class DaemonEngine:
    """An `Engine` that asks the daemon, and starts it if there is none. Use it on one thread."""

    def __init__(self, settings: Settings, transport: Transport | None = None) -> None:
        """Connect. Raises: DaemonError, ConfigError."""
        self._settings = settings
        self._address = address_of(settings, transport)
        self._connection: Connection | None = connect_or_start(self._address, settings)

    def __enter__(self) -> DaemonEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def complete(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: OnProgress | None = None,
    ) -> Completion:
        """Complete a request. An empty completion with a reason if the worker or the daemon dies
        meanwhile; the next call starts them again.

        Raises: ModelError for a model that cannot be loaded, DaemonError (also for a daemon that
        hangs), ConfigError.
        """
        body = payload.pack(request)
        for _ in range(2):  # a daemon that ended since the last call is only noticed by sending
            connection = self._connected()
            message = wire.Complete(
                id=connection.new_id(),
                request=body,
                document=request.document or request.path,
                deadline_ms=request.deadline_ms,
                stream=on_progress is not None,
            )
            try:
                connection.send(message)
            except ConnectionError:
                self.close()
                continue
            except DaemonError:  # half of it may be on its way
                self.close()
                raise
            try:
                return self._await(connection, message.id, request, cancelled, on_progress)
            except ConnectionError:
                self.close()
                return Completion(why=NoSuggestion.DAEMON_ENDED)
        raise DaemonError("the daemon ends as soon as it starts", "See: codespec daemon logs")

    def _await(
        self,
        connection: Connection,
        request_id: int,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        on_progress: OnProgress | None,
    ) -> Completion:
        cancel_sent = asked = False
        # The daemon keeps deadlines, and answers at once whether it is there. What follows is for
        # one that hangs itself.
        heard_s = time.monotonic()
        give_up_s = heard_s + request.deadline_ms / 1e3 + _GRACE_S
        while True:
            reply = connection.receive(_POLL_S)
            now = time.monotonic()
            if reply is not None:
                heard_s, asked = now, False
            elif (
                request.deadline_ms > 0 and now > give_up_s
            ) or now > heard_s + 2 * wire.SILENCE_S:
                self.close()
                raise unresponsive(self._address.lock)
            elif now > heard_s + wire.SILENCE_S and not asked:
                connection.send(wire.Status(id=connection.new_id()))
                asked = True
            if isinstance(reply, wire.Completed) and reply.id == request_id:
                return payload.unpack_completion(reply.completion)
            if isinstance(reply, wire.Failed) and reply.id == request_id:
                raise wire.error_of(reply)
            if isinstance(reply, wire.Partial) and reply.id == request_id and on_progress:
                on_progress(payload.unpack_progress(reply.progress))
            if reply is None and not cancel_sent and cancelled():
                connection.send(wire.Cancel(id=request_id))
                cancel_sent = True

    def closed(self, path: str) -> None:
        """Report that the document is no longer open."""
        if self._connection is not None:
            # A daemon that is gone has forgotten it.
            with contextlib.suppress(ConnectionError):
                self._connection.send(wire.Closed(document=path))

    def status(self) -> wire.StatusReport:
        """Report of the daemon. Raises: DaemonError."""
        connection = self._connected()
        return connection.ask(wire.Status(id=connection.new_id()))

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = connect_or_start(self._address, self._settings)
        return self._connection

    def close(self) -> None:
        """Close the connection; the daemon goes on."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
