"""A web server in this process whose answers a test writes, and which records what it was asked."""

from __future__ import annotations

import json
import select
import ssl
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE_S = 30.0
"""Most seconds that a scripted answer waits for something."""


@dataclass
class Exchange:
    """A request, and the means to answer it."""

    handler: BaseHTTPRequestHandler
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes = b""
    is_gone: threading.Event = field(default_factory=threading.Event)
    """Set once the client is seen to have closed its connection."""

    def answer(
        self, body: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with JSON, or with bytes as they are."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **(headers or {})}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(raw)

    def begin(self, kind: str = "text/event-stream") -> None:
        """Begin an answer in pieces."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()

    def piece(self, raw: bytes) -> None:
        self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        self.handler.wfile.flush()

    def event(self, data: object) -> None:
        """A piece that is an event; text is sent as it is."""
        said = data if isinstance(data, str) else json.dumps(data)
        self.piece(f"data: {said}\n\n".encode())

    def end(self) -> None:
        self.piece(b"")

    def cut(self) -> None:
        """Close the connection."""
        self.handler.close_connection = True

    def wait_until_gone(self) -> None:
        """Wait until the client has closed its connection."""
        connection = self.handler.connection
        readable, _, _ = select.select([connection], [], [], PATIENCE_S)
        try:
            if readable and not connection.recv(1):
                self.is_gone.set()
        except OSError:  # it closed with something unread: the connection is reset
            self.is_gone.set()
        self.handler.close_connection = True


Route = Callable[[Exchange], None]


@dataclass
class ScriptedServer:
    """A running server. routes: answer by path; others are 404."""

    port: int
    routes: dict[str, Route]
    tls: ssl.SSLContext | None = None
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    n_answering: int = 0
    """Requests that are being answered."""
    stop: Callable[[], None] = lambda: None
    """Goes away: nothing listens there any more."""

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}" if self.tls else f"http://127.0.0.1:{self.port}"

    def asked(self, path: str) -> list[Any]:
        """The bodies of the requests to a path."""
        return [e.body for e in self.exchanges if e.path == path]


def _unknown(exchange: Exchange) -> None:
    exchange.answer({"error": {"message": "no such route"}}, 404)


@contextmanager
def scripted_server(
    routes: Mapping[str, Route], tls: ssl.SSLContext | None = None, port: int = 0
) -> Generator[ScriptedServer]:
    """port: 0 for any."""
    lock = threading.Lock()

    class Counting:
        def __enter__(self) -> None:
            with lock:
                server.n_answering += 1

        def __exit__(self, *_: object) -> None:
            with lock:
                server.n_answering -= 1

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            said = json.loads(raw) if raw else None
            exchange = Exchange(self, self.path, dict(self.headers.items()), said, raw)
            server.exchanges.append(exchange)
            route = server.routes.get(self.path.partition("?")[0], _unknown)
            with Counting(), suppress(ConnectionError):  # the client left
                route(exchange)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    web = Quiet(("127.0.0.1", port), Handler)
    if tls is not None:
        # Not before the connection's own thread reads: one that says nothing must not stop all.
        web.socket = tls.wrap_socket(web.socket, server_side=True, do_handshake_on_connect=False)
    server = ScriptedServer(web.server_address[1], dict(routes), tls)
    thread = threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True)
    thread.start()

    def stop() -> None:
        web.shutdown()
        web.server_close()

    server.stop = stop
    try:
        yield server
    finally:
        stop()
        thread.join()


# --- OpenAI-compatible servers ----------------------------------------------------------------


def models(owner: str = "", name: str = "qwen2.5-coder", **more: object) -> Route:
    """/v1/models"""
    said = {"object": "list", "data": [{"id": name, "owned_by": owner, **more}]}
    return lambda exchange: exchange.answer(said)


def completion(pieces: Sequence[str | list[int]], finish: str = "stop") -> Route:
    """/v1/completions: the pieces of a streamed text, or of ids."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for i, said in enumerate(pieces):
            said_ids = isinstance(said, list)
            choice = {"index": 0, "text": "" if said_ids else said}
            choice |= {"token_ids": said} if said_ids else {}
            ends = finish if i + 1 == len(pieces) else None
            exchange.event({"choices": [{**choice, "finish_reason": ends}]})
        exchange.event("[DONE]")
        exchange.end()

    return answer


def endless(piece: object, started: threading.Event | None = None) -> Route:
    """A streamed answer of one event and then nothing, until the client leaves."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(piece)
        if started is not None:
            started.set()
        exchange.wait_until_gone()

    return answer
