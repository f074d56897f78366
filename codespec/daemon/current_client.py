"""Client that follows the settings: it connects to the daemon that they lead to now.

A settings file that changed is read before the next request. One that cannot be used changes
nothing, and is reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from codespec.config import Settings, config_path, load_settings
from codespec.daemon import wire
from codespec.daemon.address import address_of
from codespec.daemon.async_client import AsyncClient
from codespec.errors import CodespecError
from codespec.system.files import state_of

log = logging.getLogger(__name__)

_LOOK_S = 1.0
"""Seconds between two looks at the file."""


class CurrentClient:
    """Lends clients of the daemon, on one event loop.

    settings: those in use.
    why_outdated: the error in the settings file if these are not its settings; "" if they are.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.why_outdated = ""
        self._stamp = state_of(config_path())
        self._look_at_s = 0.0
        self._state = wire.StateChanged(state="starting")
        self._client = self._new_client()
        self._n_lent = Counter[AsyncClient]()
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> wire.StateChanged:
        return self._state

    def connect(self) -> None:
        """Begin to start or join the daemon."""
        self._follow()
        self._client.connect()

    async def status(self) -> wire.StatusReport | None:
        """State and figures of the daemon, see `AsyncClient.status`."""
        return await self._client.status()

    @contextmanager
    def client(self) -> Generator[AsyncClient, None, None]:
        """Lend a client for one request: it stays open until the request ends, even if the settings
        change."""
        self._follow()
        lent = self._client
        self._n_lent[lent] += 1
        try:
            yield lent
        finally:
            self._n_lent[lent] -= 1
            self._end_if_done(lent)

    async def close(self) -> None:
        """Close the connections; the daemon goes on."""
        await asyncio.gather(self._client.close(), *self._ending)

    def _follow(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._look_at_s:
            return
        self._look_at_s = now + _LOOK_S
        stamp = state_of(config_path())
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            settings = load_settings()
            leads_elsewhere = address_of(settings) != address_of(self.settings)
        except CodespecError as e:
            self.why_outdated = f"the settings of before are used: {e}"
            log.warning("%s", self.why_outdated)
            return
        self.settings, self.why_outdated = settings, ""
        if leads_elsewhere:
            before, self._client = self._client, self._new_client()
            self._client.connect()
            self._end_if_done(before)

    def _new_client(self) -> AsyncClient:
        def hear(state: wire.StateChanged) -> None:
            if client is self._client:  # one that others took the place of is of no interest
                self._state = state

        client = AsyncClient(self.settings, hear)
        self._state = wire.StateChanged(state="starting")
        return client

    def _end_if_done(self, client: AsyncClient) -> None:
        """Close a replaced client once no request uses it, in the background: nobody waits for
        it."""
        if client is not self._client and not self._n_lent[client]:
            del self._n_lent[client]
            task = asyncio.ensure_future(client.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
