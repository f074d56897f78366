"""Addresses of daemons: names, folders, keys.

The version and everything the engine is built from are part of the name, so a client never talks to
a daemon of another version or model, and two of them never fight over one socket.

Unix: a socket in a folder that only the user can enter. Windows, where asyncio has no Unix sockets:
a loopback port and a key, both in a file that only the user can read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from codespec import __version__
from codespec.backends.registry import in_full
from codespec.config import Settings
from codespec.errors import CodespecError, ConfigError, DaemonError
from codespec.system.folders import expanded, log_dir, runtime_dir

Transport: TypeAlias = Literal["unix", "tcp"]

# sockaddr_un.sun_path holds 104 bytes on macOS, 108 on Linux, with the closing zero.
_MAX_SOCKET_PATH_BYTES = 103


@dataclass(frozen=True, slots=True)
class Address:
    """Files of one daemon. socket: it listens there (unix); port_file: holds port and key (tcp);
    lock: held while it lives; start_lock: held by the client that starts it."""

    name: str
    transport: Transport
    socket: Path
    port_file: Path
    lock: Path
    start_lock: Path
    log: Path

    def __str__(self) -> str:
        return str(self.socket if self.transport == "unix" else self.port_file)


class PortFile(msgspec.Struct, frozen=True):
    """Content of a port file. key: a client must show it."""

    port: int
    key: str


def default_transport() -> Transport:
    return "tcp" if os.name == "nt" else "unix"


def resolved(settings: Settings) -> Settings:
    """The same settings for a process in another folder: model files made absolute.

    Raises: ConfigError as `backends.registry.in_full`, and for names that are not UTF-8, in which
    settings travel.
    """

    def absolute(path: str) -> str:
        return path if path in ("", "auto") else in_full(path)

    model = msgspec.structs.replace(
        settings.model,
        target=absolute(settings.model.target),
        fallback=absolute(settings.model.fallback),
        draft=absolute(settings.model.draft),
    )
    edits = msgspec.structs.replace(settings.edits, model=absolute(settings.edits.model))
    server = msgspec.structs.replace(
        settings.server,
        key_file=_absolute_file(settings.server.key_file),
        ca_file=_absolute_file(settings.server.ca_file),
        tokenizer=absolute(settings.server.tokenizer),
    )
    found = msgspec.structs.replace(settings, model=model, edits=edits, server=server)
    try:
        msgspec.json.encode(found)
    except UnicodeEncodeError as e:
        raise ConfigError(
            f"the settings name {e.object!r}, which is not UTF-8", "Rename the file or folder."
        ) from None
    return found


def _absolute_file(path: str) -> str:
    return path and str(expanded(path).absolute())


def address_of(settings: Settings, transport: Transport | None = None) -> Address:
    """The address that these settings lead to. Creates the folders. transport: None: the system's.

    Raises: ConfigError as `resolved`, and for folders that cannot be created; DaemonError for one
    that is not private.
    """
    return _address(_folder(), f"{__version__}-{_identity(resolved(settings))}", transport)


def leads_elsewhere(settings: Settings, before: Settings) -> bool:
    """True if these settings belong to another daemon than those before, which may be unusable.

    Raises: as `address_of`, for `settings`.
    """
    address = address_of(settings)
    try:
        return address != address_of(before)
    except CodespecError:
        return True


def known_addresses() -> list[Address]:
    """Addresses of all daemons that this user ever had, of any version and settings, running or
    not.

    Raises: as `address_of`.
    """
    folder = _folder()
    names = (lock.stem.removeprefix("daemon-") for lock in sorted(folder.glob("daemon-*.lock")))
    return [_address(folder, name) for name in names]


def _folder() -> Path:
    folder = runtime_dir()
    check_private(folder)
    return folder


def _address(folder: Path, name: str, transport: Transport | None = None) -> Address:
    socket = folder / f"daemon-{name}.sock"
    if len(os.fsencode(socket)) > _MAX_SOCKET_PATH_BYTES:
        socket = _short_folder() / f"{_digest(str(socket), 16)}.sock"
    return Address(
        name=name,
        transport=transport or default_transport(),
        socket=socket,
        port_file=folder / f"daemon-{name}.json",
        lock=folder / f"daemon-{name}.lock",
        start_lock=folder / f"daemon-{name}.start",
        log=_log_folder(folder) / f"daemon-{name}.log",
    )


def _log_folder(folder: Path) -> Path:
    """The folder of log files: beside the socket if the usual one cannot be made, as in a home that
    is read-only."""
    try:
        return log_dir()
    except ConfigError:
        return folder


def _identity(settings: Settings) -> str:
    """Hash of everything an engine is built from; the rest may differ between clients of one
    daemon."""
    parts = (
        settings.model,
        settings.server,
        settings.drafting,
        settings.edits.model,
        settings.context,
        settings.index.exclude,
        settings.completion.n_prefix_tokens,
        settings.completion.n_suffix_tokens,
        settings.completion.max_read_ms,
    )
    return _digest(msgspec.json.encode(parts), 12)


def _digest(data: str | bytes, n_hex: int) -> str:
    data = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    return hashlib.sha256(data).hexdigest()[:n_hex]


def _short_folder() -> Path:
    uid = os.getuid() if sys.platform != "win32" else 0
    folder = Path(tempfile.gettempdir()) / f"codespec-{uid}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as e:
        raise DaemonError(
            f"cannot create the folder {folder}: {e.strerror}",
            "Set CODESPEC_RUNTIME_DIR to a short path of your own, under 60 characters.",
        ) from None
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Raises: DaemonError for a folder that another user could put things into, or rename."""
    if os.name != "posix":
        return  # pragma: no cover
    hint = "Set CODESPEC_RUNTIME_DIR to a folder of your own."
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise DaemonError(f"the runtime folder {folder} is not a folder but a link or file", hint)
    if info.st_uid != os.geteuid():
        raise DaemonError(f"the runtime folder {folder} belongs to another user", hint)
    if info.st_mode & 0o077:
        raise DaemonError(
            f"the runtime folder {folder} is open to other users", f"Run: chmod 700 {folder}"
        )
    # 65534: what root looks like from inside a user namespace that does not map it.
    parent = folder.parent.stat()
    if parent.st_uid not in (os.geteuid(), 0, 65534):
        raise DaemonError(f"the folder {folder.parent} belongs to another user", hint)
    if parent.st_mode & stat.S_IWOTH and not parent.st_mode & stat.S_ISVTX:
        raise DaemonError(f"anyone can rename folders in {folder.parent}", hint)


def new_key() -> str:
    return secrets.token_hex(32)


def same_key(given: str, expected: str) -> bool:
    """True if the keys are equal; takes constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def write_port_file(address: Address, content: PortFile) -> None:
    """Write the port file: readable by the user only, never seen half-written."""
    temporary = address.port_file.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.encode(content))
    temporary.replace(address.port_file)


def read_port_file(address: Address) -> PortFile | None:
    """Content of the port file; None if there is none, or none that makes sense."""
    try:
        return msgspec.json.decode(address.port_file.read_bytes(), type=PortFile)
    except (OSError, msgspec.DecodeError):
        return None
