"""Requests to a server over HTTP/1.1: whole answers, and streams that end as soon as nobody waits.

A server stops computing when its client's connection closes, so cancelling closes the socket. A
thread that waits for bytes looks every few milliseconds for whether it still should.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import h11
import msgspec

from codespec import limits
from codespec.backends.remote.failures import ServerError, ServerFailure, of_exception, of_status
from codespec.backends.remote.server_address import ServerAddress
from codespec.backends.remote.trust import Trust

CONNECT_S = 3.0
"""Most seconds for a connection, TLS included."""
SILENCE_S = 60.0
"""Most seconds between two pieces of an answer."""
_POLL_S = 0.005
"""Seconds between two looks at whether an answer is still wanted."""
_READ_BYTES = 1 << 16
_PLAIN = "identity"
_KEPT = 2
"""Most connections that are kept for the next request."""
_KEPT_S = 30.0
"""Seconds for which one is kept: many servers close theirs after 60."""


_F = ServerFailure
_NONE: Mapping[str, str] = {}


class AbandonedError(Exception):
    """Nobody waits for the answer any more. Never shown to users. has_heard: True if a byte of it
    had come."""

    def __init__(self, has_heard: bool) -> None:
        super().__init__()
        self.has_heard = has_heard


class ServerAnswer(NamedTuple):
    """A whole answer. headers: by name in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ServerClient:
    """Connections to one server. Thread-safe.

    trust: the key it is shown, and the verification of its certificate.
    """

    def __init__(self, address: ServerAddress, trust: Trust) -> None:
        self.address = address
        self._headers = trust.headers
        self._tls = trust.tls
        self._kept: list[_Connection] = []
        self._lock = threading.Lock()
        self._is_closed = False
        self.on_sent: Callable[[str], None] = lambda request: None
        """Told every request as it is sent, without the key."""

    def ask(
        self,
        path: str,
        body: object = None,
        *,
        timeout_s: float,
        most_bytes: int = limits.BODY_BYTES,
        cancelled: Callable[[], bool] = lambda: False,
        headers: Mapping[str, str] = _NONE,
    ) -> ServerAnswer:
        """A whole answer, of any status. body: bytes as they are, else it becomes JSON; None for
        a GET. headers: sent beside those of every request.

        Raises: ServerError, AbandonedError.
        """
        ends_at = time.monotonic() + timeout_s
        with self._asked(path, body, cancelled, headers, ends_at) as (connection, head):
            pieces, n = list[bytes](), 0
            for piece in connection.pieces(cancelled, ends_at):
                pieces.append(piece)
                n += len(piece)
                if n > most_bytes:
                    raise ServerError(_F.NOT_UNDERSTOOD, f"more than {most_bytes:,} bytes")
            return ServerAnswer(head.status_code, _by_name(head), b"".join(pieces))

    def lines(
        self,
        path: str,
        body: object,
        cancelled: Callable[[], bool],
        headers: Mapping[str, str] = _NONE,
    ) -> Generator[bytes]:
        """The lines of a streamed answer, each as soon as it has come. The connection is closed
        when the generator is, or once `cancelled` returns True.

        Raises: ServerError, AbandonedError.
        """
        with self._asked(path, body, cancelled, headers) as (connection, head):
            named = _by_name(head)
            if head.status_code != 200:
                raise of_status(head.status_code, named.get("retry-after", ""))
            if named.get("content-type", "").lower().startswith("text/html"):
                raise ServerError(_F.NOT_UNDERSTOOD, "a web page")
            rest, n = b"", 0
            for piece in connection.pieces(cancelled):
                *whole, rest = (rest + piece).split(b"\n")
                n += len(piece)
                if len(rest) > limits.SERVER_LINE_BYTES or n > limits.SERVER_STREAM_BYTES:
                    raise ServerError(_F.NOT_UNDERSTOOD, "an answer without an end")
                yield from (line.rstrip(b"\r") for line in whole if line.strip())
            rest = rest.strip()
            if rest.startswith((b"data:", b"{")) and not rest.endswith((b"}", b"]")):
                raise ServerError(_F.CUT_OFF)  # its length was not told
            if rest:
                yield rest

    @contextmanager
    def _asked(
        self,
        path: str,
        body: object,
        cancelled: Callable[[], bool],
        more: Mapping[str, str],
        ends_at: float | None = None,
    ) -> Generator[tuple[_Connection, h11.Response]]:
        is_raw = isinstance(body, bytes)
        raw = b"" if body is None else body if is_raw else msgspec.json.encode(body)
        headers = {
            "Host": self.address.authority,
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            **more,
            **self._headers,
        }
        if body is not None:
            kind = "application/octet-stream" if is_raw else "application/json"
            headers |= {"Content-Type": kind, "Content-Length": str(len(raw))}
        target = self.address.path + path
        request = h11.Request(
            method="GET" if body is None else "POST", target=target, headers=list(headers.items())
        )
        named = "".join(f"\n{name}: {value}" for name, value in more.items())
        said = f"({len(raw):,} bytes)" if is_raw else raw.decode()
        self.on_sent(f"{request.method.decode()} {self.address.url}{path}{named}\n{said}")
        connection, head = self._begun(request, raw, cancelled, ends_at)
        is_kept = False
        try:
            if head.status_code == 200 and _by_name(head).get("content-encoding", _PLAIN) != _PLAIN:
                raise ServerError(_F.NOT_UNDERSTOOD, "a compressed answer")
            yield connection, head
            is_kept = connection.may_go_on() and self._put(connection)
        finally:
            if not is_kept:
                connection.close()
                self._open_ahead()

    def _begun(
        self,
        request: h11.Request,
        raw: bytes,
        cancelled: Callable[[], bool],
        ends_at: float | None,
    ) -> tuple[_Connection, h11.Response]:
        """A connection on which the request was sent, and the head of its answer."""
        while True:
            if cancelled():
                raise AbandonedError(has_heard=True)  # it was not asked
            kept = self._pop()
            connection = kept or _Connection(self.address, self._tls)
            try:
                connection.send(request, raw)
                return connection, connection.head(cancelled, ends_at)
            except ServerError:
                connection.close()
                # A server may close a kept connection at any time; a new one tells more. A prompt
                # is sent again by who asked, once.
                if kept is None or connection.has_heard or raw:
                    raise
            except AbandonedError:
                connection.close()
                self._open_ahead()
                raise
            except BaseException:
                connection.close()
                raise

    def _open_ahead(self) -> None:
        """Open a connection for the next request, which then need not wait for it. Errors are left
        to that request."""
        with self._lock:
            if self._kept or self._is_closed:
                return
        try:
            connection = _Connection(self.address, self._tls)
        except ServerError:
            return
        if not self._put(connection):
            connection.close()

    def _pop(self) -> _Connection | None:
        while True:
            with self._lock:
                connection = self._kept.pop() if self._kept else None
            if connection is None or connection.is_fresh():
                return connection
            connection.close()

    def _put(self, connection: _Connection) -> bool:
        """Keep a connection for the next request. Returns: False where there are enough."""
        with self._lock:
            if self._is_closed or len(self._kept) == _KEPT:
                return False
            self._kept.append(connection)
            return True

    def close(self) -> None:
        with self._lock:
            self._is_closed, kept = True, self._kept
            self._kept = []
        for connection in kept:
            connection.close()


class _Connection:
    """One connection: a request at a time. Raises: ServerError where it cannot be made."""

    def __init__(self, address: ServerAddress, tls: ssl.SSLContext | None) -> None:
        self.has_heard = False
        """True if a byte of the present request's answer has come."""
        self._used_at = time.monotonic()
        self._http = h11.Connection(h11.CLIENT, limits.SERVER_LINE_BYTES)
        try:
            self._socket = _connected(address, tls)
        except OSError as e:
            raise of_exception(e) from None

    def is_fresh(self) -> bool:
        """True if the server may still listen: it has neither closed nor said anything."""
        if time.monotonic() - self._used_at > _KEPT_S:
            return False
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def send(self, request: h11.Request, raw: bytes) -> None:
        self.has_heard = False
        self._socket.settimeout(SILENCE_S)
        said = self._http.send(request) or b""
        if raw:
            said += self._http.send(h11.Data(data=raw)) or b""
        said += self._http.send(h11.EndOfMessage()) or b""
        try:
            self._socket.sendall(said)
        except OSError as e:
            raise of_exception(e) from None

    def head(self, cancelled: Callable[[], bool], ends_at: float | None) -> h11.Response:
        while True:
            event = self._next(cancelled, ends_at)
            if isinstance(event, h11.Response):
                return event

    def pieces(
        self, cancelled: Callable[[], bool], ends_at: float | None = None
    ) -> Iterator[bytes]:
        """The pieces of the answer's body, as they come."""
        while True:
            event = self._next(cancelled, ends_at)
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return

    def _next(self, cancelled: Callable[[], bool], ends_at: float | None) -> h11.Event | object:
        silent_at = time.monotonic() + SILENCE_S
        ends_at = silent_at if ends_at is None else min(ends_at, silent_at)
        has_ended = False
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                read = self._read(cancelled, ends_at)
                has_ended = not read
                self._http.receive_data(read)
                self.has_heard |= not has_ended
            return event
        except h11.RemoteProtocolError:
            what = _F.CUT_OFF if has_ended else _F.NOT_UNDERSTOOD
            raise ServerError(what, "" if has_ended else "it does not speak HTTP") from None

    def _read(self, cancelled: Callable[[], bool], ends_at: float) -> bytes:
        self._socket.settimeout(_POLL_S)
        while True:
            if cancelled():
                raise AbandonedError(self.has_heard)
            if time.monotonic() > ends_at:  # whether or not some bytes come each time
                raise ServerError(_F.SILENT)
            try:
                return self._socket.recv(_READ_BYTES)
            except TimeoutError:
                continue
            except OSError as e:
                raise of_exception(e) from None

    def may_go_on(self) -> bool:
        """True if the answer was read to its end and another request may follow."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        self._used_at = time.monotonic()
        return True

    def close(self) -> None:
        self._socket.close()


def _connected(address: ServerAddress, tls: ssl.SSLContext | None) -> socket.socket:
    """A socket to the server. Raises: OSError."""
    plain = socket.create_connection((address.host, address.port), CONNECT_S)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return tls.wrap_socket(plain, server_hostname=address.host) if tls else plain
    except BaseException:
        plain.close()
        raise


def _by_name(head: h11.Response) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
