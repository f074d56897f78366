"""Control of daemons: start, stop and status, for `codespec daemon ...`, without the printing."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from codespec.backends.registry import check, target_of
from codespec.config import Settings
from codespec.daemon import wire
from codespec.daemon.address import (
    Address,
    Transport,
    address_of,
    known_addresses,
    resolved,
)
from codespec.daemon.client import Connection, connect_or_start, try_connect
from codespec.daemon.lock import holder, is_free, is_stopped, unresponsive
from codespec.daemon.logs import last_lines
from codespec.errors import CodespecError, DaemonError
from codespec.models.resolve import draft_path

_STOP_S = 5.0
_READY_S = 300.0
_POLL_S = 0.02


def start(settings: Settings, *, wait_ready: bool = True) -> wire.StatusReport:
    """Start the daemon of these settings, or find it running.

    wait_ready: wait until the model is loaded, or loading has failed (state "failed").
    Raises: DaemonError, ConfigError.
    """
    with connect_or_start(address_of(settings), settings) as connection:
        return _settled(connection) if wait_ready else _status(connection)


def status(settings: Settings) -> wire.StatusReport | None:
    """Report of the daemon of these settings; None if it does not run.

    Raises: DaemonError, also for one that does not answer; ConfigError.
    """
    address = address_of(settings)
    connection = try_connect(address, _STOP_S)
    if connection is None:
        if is_free(address.lock):
            return None
        raise unresponsive(address.lock)
    with connection:
        return _status(connection)


def running_addresses() -> list[Address]:
    """Addresses of all running daemons of this user, of other settings and versions, too. Asks none
    of them.

    Raises: DaemonError.
    """
    return [a for a in known_addresses() if not is_free(a.lock)]


def running_daemons() -> list[tuple[Address, wire.StatusReport | None]]:
    """Addresses of all running daemons of this user with their reports; None for one that does not
    answer this version.

    Raises: as `alive`.
    """
    return [(address, _asked(address)) for address in running_addresses()]


def stop(settings: Settings, *, transport: Transport | None = None) -> bool:
    """End the daemon and wait until it is gone. One that hangs is killed. Returns: False if none
    ran.

    Raises: DaemonError if even that fails.
    """
    return _stop(address_of(settings, transport))


def stop_all() -> int:
    """End all daemons of this user, of other settings and versions, too. Returns: how many ran.

    Raises: as `stop`.
    """
    return sum([_stop(address) for address in running_addresses()])


def _stop(address: Address) -> bool:
    if is_free(address.lock):
        return False
    try:
        connection = try_connect(address, _STOP_S)
        if connection is not None:
            with connection:
                connection.ask(wire.Shutdown(id=connection.new_id()))
    except OSError:
        pass
    except CodespecError:  # of another version, perhaps, which tells its clients that it ends, too
        _signal(address, signal.SIGTERM)
        if sys.platform != "win32" and is_stopped(address.lock):
            _signal(address, signal.SIGCONT)  # a stopped process cannot end
    if _wait_gone(address):
        return True
    pid = _signal(address, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    if not _wait_gone(address):
        raise DaemonError(f"the daemon (process {pid}) does not end", "End the process by hand.")
    return True


def _signal(address: Address, number: signal.Signals) -> int | None:
    """Send a signal to the daemon's process. Returns: its id, None if there is none."""
    pid = holder(address.lock)
    if pid is not None:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
    return pid


def _asked(address: Address) -> wire.StatusReport | None:
    with contextlib.suppress(OSError, CodespecError):
        connection = try_connect(address, _STOP_S)
        if connection is not None:
            with connection:
                return _status(connection)
    return None


def restart(settings: Settings, *, wait_ready: bool = True) -> wire.StatusReport:
    """Stop the daemon and start it again, as `start`. Raises: DaemonError, ConfigError."""
    stop(settings)
    return start(settings, wait_ready=wait_ready)


def switch_model(
    settings: Settings,
    target: str,
    draft: str = "auto",
    *,
    wait_ready: bool = True,
) -> wire.StatusReport:
    """Load another model in the running daemon, for all its clients, until it ends or is switched
    again; settings files stay as they are. Starts the daemon if there is none.

    Returns: the report once the model is loaded, or loading has failed (state "failed").
    Raises: DaemonError, ConfigError; ModelError for a file that cannot be a model, before the
        current model is given up.
    """
    model = msgspec.structs.replace(settings.model, target=target, draft=draft)
    other = resolved(msgspec.structs.replace(settings, model=model))
    for where in (target_of(model), draft_path(model)):
        if where is not None:
            check(where)
    with connect_or_start(address_of(settings), settings) as connection:
        connection.ask(wire.Configure(id=connection.new_id(), settings=other))
        return _settled(connection) if wait_ready else _status(connection)


def logs(settings: Settings, n_lines: int = 50) -> tuple[Path, list[str]]:
    """The log file of the daemon of these settings, and its last lines."""
    path = address_of(settings).log
    return path, last_lines(path, n_lines)


def _status(connection: Connection) -> wire.StatusReport:
    return connection.ask(wire.Status(id=connection.new_id()))


def _settled(connection: Connection) -> wire.StatusReport:
    give_up_at = time.monotonic() + _READY_S
    while True:
        try:
            report = _status(connection)
        except ConnectionError:
            raise DaemonError(
                "the daemon ended while its model was loading", "See: codespec daemon logs"
            ) from None
        if report.state in ("ready", "failed") or time.monotonic() > give_up_at:
            return report
        time.sleep(_POLL_S)


def _wait_gone(address: Address) -> bool:
    give_up_at = time.monotonic() + _STOP_S
    while not is_free(address.lock):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_POLL_S)
    return True
