"""The daemon's sockets: accepts clients, checks them, hands their messages on.

One task for each client; a client that sends garbage gets a `Failed` and a closed connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from itertools import count

import msgspec

from codespec import __version__, limits
from codespec.config import Settings
from codespec.daemon import wire
from codespec.daemon.address import Address, PortFile, new_key, same_key, write_port_file
from codespec.daemon.keeper import RestartPolicy
from codespec.daemon.supervisor import Supervisor
from codespec.errors import DaemonError

log = logging.getLogger(__name__)

# Seconds that a daemon stays at least before its first client comes.
_MIN_FIRST_IDLE_S = 20.0
# Unread answers beyond which a client is dropped.
_MAX_UNREAD_BYTES = 2 * wire.MAX_FRAME_BYTES


class DaemonServer:
    """The daemon of one address, with its supervisor."""

    def __init__(
        self,
        settings: Settings,
        address: Address,
        *,
        command: Sequence[str] | None = None,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._settings = settings
        self._address = address
        self._key = ""
        self._watchers: set[_Client] = set()
        self._clients: set[_Client] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = count(1)
        self._idle: asyncio.TimerHandle | None = None
        self._stop = asyncio.Event()
        self.listening = asyncio.Event()
        self.supervisor = Supervisor(
            settings, command=command, policy=policy, on_state=self._tell_watchers
        )

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> None:
        """Serve until stopped, idle for too long, or ended by a signal."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Windows' loop has none, and no thread but the main one may set them.
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, self.stop)
        worker = asyncio.create_task(self.supervisor.run())
        listener = await self._listen()
        self._arm_idle(max(_MIN_FIRST_IDLE_S, self._idle_s))
        self.listening.set()
        log.info("listening on %s", self._address)
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({stop, worker}, return_when=asyncio.FIRST_COMPLETED)
            if worker.done():
                worker.result()  # a defect of ours: into the log, and out
        finally:
            log.info("stopping")
            listener.close()
            self._remove_files()
            self._tell_watchers(wire.StateChanged(state="stopping", reason="the daemon stops"))
            for task in (worker, stop, *self._tasks):
                task.cancel()
            await asyncio.gather(worker, stop, *self._tasks, return_exceptions=True)

    async def _listen(self) -> asyncio.AbstractServer:
        # The lock is ours, so files that stand here were left behind by a killed daemon.
        self._remove_files()
        try:
            if sys.platform == "win32" or self._address.transport == "tcp":
                listener = await asyncio.start_server(
                    self._accept, "127.0.0.1", 0, limit=wire.STREAM_BYTES
                )
                self._key = new_key()
                port = int(listener.sockets[0].getsockname()[1])
                write_port_file(self._address, PortFile(port, self._key))
                return listener
            listener = await asyncio.start_unix_server(
                self._accept, self._address.socket, limit=wire.STREAM_BYTES
            )
            self._address.socket.chmod(0o600)
            return listener
        except OSError as e:
            raise DaemonError(
                f"cannot listen on {self._address}: {e.strerror or e}",
                "Set CODESPEC_RUNTIME_DIR to another folder.",
            ) from None

    def _remove_files(self) -> None:
        self._address.socket.unlink(missing_ok=True)
        self._address.port_file.unlink(missing_ok=True)

    # --- idle shutdown ----------------------------------------------------------------------

    @property
    def _idle_s(self) -> float:
        return self._settings.daemon.idle_minutes * 60

    def _arm_idle(self, after_s: float) -> None:
        self._disarm_idle()
        self._idle = asyncio.get_running_loop().call_later(after_s, self._idle_over)

    def _disarm_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _idle_over(self) -> None:
        log.info("no client for %g s", self._idle_s)
        self.stop()

    # --- clients ----------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= 2 * limits.CLIENTS:  # most of whom have not even greeted
            writer.close()
            return
        self._tasks.add(task)
        client = _Client(next(self._numbers), writer)
        try:
            await self._converse(client, reader)
        except wire.WireError as e:
            log.warning("client %d: %s", client.number, e.message)
            client.send(wire.failure(0, e))
        except ConnectionError:
            pass
        except asyncio.CancelledError:  # the daemon stops; asyncio would report it as an error
            pass
        finally:
            self._tasks.discard(task)
            self._clients.discard(client)
            self._watchers.discard(client)
            self.supervisor.drop(client.number)
            with contextlib.suppress(ConnectionError):
                writer.close()
            if not self._clients and not self._stop.is_set():
                self._arm_idle(self._idle_s)

    async def _converse(self, client: _Client, reader: asyncio.StreamReader) -> None:
        try:
            hello = await asyncio.wait_for(
                wire.read(reader, wire.client_decoder, wire.MAX_HELLO_BYTES), wire.HELLO_S
            )
        except asyncio.TimeoutError:
            raise wire.WireError("no greeting") from None
        if hello is None:
            return
        hello = self._checked(hello)
        if len(self._clients) >= limits.CLIENTS:
            raise wire.WireError(
                f"too many clients are connected (at most {limits.CLIENTS})",
                "Close editors or programs that use codespec.",
            )
        self._clients.add(client)
        self._disarm_idle()
        client.send(wire.Welcome(version=__version__, pid=os.getpid()))
        if hello.watch:
            self.supervisor.try_again()  # as who comes anew, or restarts an editor, expects
            self._watchers.add(client)
            client.send(self.supervisor.state)
        may_try_again = not hello.watch
        while (message := await wire.read(reader, wire.client_decoder)) is not None:
            if may_try_again and isinstance(message, wire.Complete):
                may_try_again = False
                self.supervisor.try_again()  # as who runs a command once more expects
            self._handle(client, message)

    def _checked(self, hello: wire.FromClient) -> wire.Hello:
        if not isinstance(hello, wire.Hello):
            raise wire.WireError("the first message must be a greeting")
        if self._key and not same_key(hello.key, self._key):
            raise wire.WireError("wrong key")
        if hello.version != __version__:
            raise wire.WireError(
                f"the client is version {hello.version}, the daemon {__version__}",
                "Run: codespec daemon restart",
            )
        return hello

    def _handle(self, client: _Client, message: wire.FromClient) -> None:
        if isinstance(message, wire.Complete | wire.FindEdits):
            self.supervisor.submit(client.number, message, client.send)
        elif isinstance(message, wire.Cancel):
            self.supervisor.cancel(client.number, message.id, message.with_figures)
        elif isinstance(message, wire.Closed):
            self.supervisor.closed(client.number, message.document)
        elif isinstance(message, wire.Status):
            client.send(self._report(message.id))
        elif isinstance(message, wire.Configure):
            self.supervisor.configure(message.settings)
            client.send(self._report(message.id))
        elif isinstance(message, wire.Shutdown):
            client.send(self._report(message.id))
            self.stop()
        else:
            raise wire.WireError("a second greeting")

    def _report(self, request_id: int) -> wire.StatusReport:
        report = self.supervisor.report(request_id)
        return msgspec.structs.replace(
            report,
            address=str(self._address),
            log=str(self._address.log),
            n_clients=len(self._clients) - 1,
        )

    def _tell_watchers(self, state: wire.StateChanged) -> None:
        for client in self._watchers:
            client.send(state)


class _Client:
    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self._writer = writer

    def send(self, message: wire.Message) -> None:
        """Send a message. Never waits: messages that a slow client does not read pile up, to a
        limit."""
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() > _MAX_UNREAD_BYTES:
            log.warning("client %d does not read its answers", self.number)
            self._writer.transport.abort()
            return
        self._writer.write(wire.frame(message))
