"""The HTTP front's server: uvicorn's, with a time limit for a request's head."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from codespec import limits
from codespec.config import Settings
from codespec.http.access import Access
from codespec.http.front import HttpFront

_MAX_CONNECTIONS = limits.CLIENTS
_HEAD_S = 10.0
_KEEP_ALIVE_S = 30


class HttpProtocol(H11Protocol):
    """uvicorn's protocol with a time limit for a request's head: uvicorn waits without one for the
    first head of a connection, and for the rest of one that has begun. Offers to upgrade (HTTP/2's
    are many clients' habit) are passed over, as servers may (RFC 9110, 7.8); uvicorn would warn of
    each."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._expect_head(_HEAD_S)

    def _should_upgrade(self) -> bool:
        return False

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._no_head.cancel()

    def on_response_complete(self) -> None:
        self._no_head.cancel()
        self._expect_head(_KEEP_ALIVE_S + _HEAD_S)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._no_head.cancel()
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


def serve(settings: Settings, listener: socket.socket, access: Access) -> None:
    """Answer HTTP requests until a signal ends the process."""

    async def run() -> None:
        front = HttpFront(settings, access)
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
