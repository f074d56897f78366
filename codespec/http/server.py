"""The HTTP front's server: uvicorn's, with a time limit for a request's head."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from codespec import limits
from codespec.config import Settings
from codespec.http.access import Access
from codespec.http.access_log import AccessLog
from codespec.http.front import HttpFront

_MAX_CONNECTIONS = limits.CLIENTS
_HEAD_S = 10.0
_KEEP_ALIVE_S = 30
_PROBE_S = 0.5
_NEXT_PROBE_S = 10.0


class HttpProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for a request's head: uvicorn waits without one for the
    first head of a connection, and for the rest of one that has begun. Offers to upgrade (HTTP/2's
    are many clients' habit) are passed over, as servers may (RFC 9110, 7.8); uvicorn would warn of
    each.

    A client may end its side of a connection and wait for the answer. One that is gone looks the
    same until something is sent to it: an interim response tells, if the answer takes so long."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._probing: asyncio.TimerHandle | None = None
        self._expect_head(_HEAD_S)

    def _should_upgrade(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        # Line ends before a request, which simple clients leave behind the last one's body, mean
        # nothing (RFC 9112, 2.2).
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            data = data.lstrip(b"\r\n")
        if data:
            super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._no_head.cancel()

    def on_response_complete(self) -> None:
        if self._probing is not None:
            self.transport.close()
        self._no_head.cancel()
        self._expect_head(_KEEP_ALIVE_S + _HEAD_S)
        super().on_response_complete()

    def eof_received(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """True, which keeps the connection open, if all of a request came before the
        end, and nothing of the answer went out: who ends a stream is gone."""
        if not self.cycle or self.cycle.more_body or self.cycle.response_started:
            return False
        self._probing = self.loop.call_later(_PROBE_S, self._probe, 0.0)
        return True

    def _probe(self, silent_s: float) -> None:
        """Look if the client is gone. silent_s: seconds since it was sent an interim response."""
        if self.transport.is_closing():
            return
        if self.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
            return
        is_new = self.scope["http_version"] != "1.0"
        if is_new and not self.cycle.response_started and not silent_s % _NEXT_PROBE_S:
            interim = h11.InformationalResponse(status_code=102, headers=[], reason="Processing")
            self.transport.write(self.conn.send(interim) or b"")
        self._probing = self.loop.call_later(_PROBE_S, self._probe, silent_s + _PROBE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._no_head.cancel()
        if self._probing is not None:
            self._probing.cancel()
        super().connection_lost(exc)

    def _expect_head(self, limit_s: float) -> None:
        self._no_head = self.loop.call_later(limit_s, self.transport.close)


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests that it cancels send their answer: after it, the signal is raised once
        more."""
        await super().shutdown(sockets)
        if not self.force_exit:
            await asyncio.gather(*self.server_state.tasks, return_exceptions=True)


def serve(
    settings: Settings,
    listener: socket.socket,
    access: Access,
    access_log: AccessLog | None = None,
) -> None:
    """Answer HTTP requests until a signal ends the process."""

    async def run() -> None:
        front = HttpFront(settings, access, access_log)
        front.start()
        config = uvicorn.Config(
            front,
            http=HttpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
        )
        try:
            await _Server(config).serve([listener])
        finally:
            await front.close()

    with closing(listener):
        asyncio.run(run())
