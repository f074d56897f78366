"""A model hub on loopback."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

CONTENT = b"GGUF" + bytes(range(256)) * 20_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Hub(ThreadingHTTPServer):
    """Serves one file as a hub does: /resolve/ redirects to /data/ and states the SHA-256.

    cut: bytes after which a transfer breaks off. ranges: what was asked for, in order. starts_at:
    where a part begins, whatever was asked for. length, extent: what it says of it, if not the
    truth; no length: None, and the connection ends with the file. sends_parts: answers as with a
    part, whatever was asked for. stalls: after `cut` bytes it stays connected and sends no more.
    files: by name, what is not `content`. refuses: a status and its reason, to every request
    of a file. leads_to: where it redirects to, in place of the file here. n_sent: how often one
    was sent, or a part of it.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = CONTENT
        self.etag = '"one"'
        self.cut: int | None = None
        self.stated: str | None = SHA256
        self.resumes = True
        self.starts_at: int | None = None
        self.length: str | None = "true"
        self.extent: str | None = None
        self.sends_parts = False
        self.stalls = False
        self.ends = threading.Event()
        self.files: dict[str, bytes] = {}
        self.refuses: tuple[int, str] | None = None
        self.leads_to: str | None = None
        self.has_head = True
        self.ranges: list[str | None] = []
        self.methods: list[str] = []
        self.n_sent = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a connection that was cut


class _Handler(BaseHTTPRequestHandler):
    @property
    def hub(self) -> Hub:
        assert isinstance(self.server, Hub)
        return self.server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.hub.methods.append("HEAD")
        if self.hub.has_head:
            self._redirect()
        else:
            self.send_error(405)

    def do_GET(self) -> None:
        self.hub.methods.append("GET")
        if self.hub.refuses is not None:
            self.send_response(*self.hub.refuses)
            self.end_headers()
        elif "/resolve/" in self.path:
            self._redirect()
        elif self.path.endswith("missing.gguf"):
            self.send_error(404)
        else:
            self._send_file()

    def _redirect(self) -> None:
        self.send_response(302)
        here = self.path.replace("/resolve/", "/data/")
        self.send_header("Location", self.hub.leads_to or here)
        if self.hub.stated:
            self.send_header("X-Linked-Etag", f'"{self.hub.stated}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send_file(self) -> None:
        hub = self.hub
        wanted = self.headers.get("Range")
        hub.ranges.append(wanted)
        content = hub.files.get(self.path.rpartition("/")[2].partition("?")[0], hub.content)
        body, status, extent = content, 200, ""
        if wanted and hub.resumes and self.headers.get("If-Range") == hub.etag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            start = start if hub.starts_at is None else hub.starts_at
            body, status = body[start:], 206 if start < len(body) else 416
            span = f"{start}-{len(content) - 1}" if body else "*"
            extent = f"bytes {span}/{len(content)}"
        elif hub.sends_parts:
            status = 206
        elif hub.etag and self.headers.get("If-None-Match") == hub.etag:
            body, status = b"", 304
        extent = extent if hub.extent is None else hub.extent
        hub.n_sent += status != 304
        self.send_response(status)
        if status != 200 and extent:
            self.send_header("Content-Range", extent)
        if hub.length is not None:
            length = str(len(body)) if hub.length == "true" else hub.length
            self.send_header("Content-Length", length)
        if hub.etag:
            self.send_header("ETag", hub.etag)
        self.end_headers()
        self.wfile.write(body[: hub.cut])
        if hub.stalls:
            hub.ends.wait()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    running = Hub()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", running.address)
    yield running
    running.ends.set()
    running.shutdown()
    running.server_close()
    thread.join()
