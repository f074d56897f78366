"""Keys of tenants, from a file that is read again when it changes."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from codespec.errors import ConfigError
from codespec.limits import NAME_CHARS

log = logging.getLogger(__name__)

_LEAST_KEY_CHARS = 16
_MOST_FILE_BYTES = 1 << 20
_HINT = "A line is a tenant's name, a blank and a key: openssl rand -hex 32 makes one."
_NAME = re.compile(r"[\w.@+-]+", re.ASCII)


class TenantKeys:
    """Tenants by their keys. For any threads.

    file: a line has a tenant's name, a blank and a key; # begins a comment. A tenant may have
        several keys. Nobody but its owner may read or write it. After a change it is read again;
        while it cannot be used, nobody is let in.

    Raises: ConfigError for a file that cannot be used at the start.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._state = self._state_now()
        self._tenants = _read(file)

    @property
    def names(self) -> set[str]:
        """Names of all tenants."""
        return {name for _, name in self._tenants}

    def tenant(self, authorization: Sequence[bytes]) -> str | None:
        """Name of the tenant whose key a request shows; None for no valid key.

        authorization: every header of that name. Of several, none counts: who else reads the
            request might take the other one.
        """
        self._refresh()
        if len(authorization) != 1:
            return None
        scheme, _, key = authorization[0].strip().partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        # Digests of all keys are compared: how long it takes tells nothing of any.
        shown = _digest(key.strip())
        found: str | None = None
        for digest, name in self._tenants:
            if hmac.compare_digest(digest, shown):
                found = name
        return found

    def _refresh(self) -> None:
        state = self._state_now()
        if state == self._state:
            return
        self._state = state
        try:
            self._tenants = _read(self._file)
        except ConfigError as e:
            self._tenants = []
            log.error("codespec: nobody is let in until it is mended: %s", e.message)
        else:
            log.info("codespec: keys of %d tenants were read again", len(self.names))

    def _state_now(self) -> tuple[int, ...]:
        try:
            info = os.stat(self._file)
        except OSError:
            return ()
        return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_mode


def tenant_id(name: str) -> str:
    """Opaque name of a tenant, for folders and for the engine."""
    return hashlib.blake2b(name.encode(), digest_size=16, person=b"codespec-tenant").hexdigest()


def _read(file: Path) -> list[tuple[bytes, str]]:
    """(digest of a key, name of its tenant), all of them. Raises: ConfigError, which quotes no
    key."""
    if file.exists() and not file.is_file():  # opening a pipe would wait for who writes to it
        raise ConfigError(f"{file}: this is no file", _HINT)
    try:
        with file.open("rb") as opened:
            info = os.fstat(opened.fileno())
            if sys.platform != "win32" and stat.S_IMODE(info.st_mode) & 0o077:
                raise ConfigError(f"{file}: others may read the keys", f"chmod 600 {file}")
            text = opened.read(_MOST_FILE_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "no text in UTF-8"
        raise ConfigError(f"cannot read the keys in {file}: {why}", _HINT) from None
    if len(text) > _MOST_FILE_BYTES:
        raise ConfigError(f"{file}: too large for a file of keys", _HINT)
    found: dict[bytes, str] = {}
    for n, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(^|\s)#.*", "", line).split()
        if not words:
            continue
        is_sound = len(words) == 2 and _NAME.fullmatch(words[0]) and len(words[0]) <= NAME_CHARS
        if not is_sound or len(words[1]) < _LEAST_KEY_CHARS or not words[1].isascii():
            why = f"not a name and a key of {_LEAST_KEY_CHARS} characters or more"
            raise ConfigError(f"{file}, line {n}: {why}", _HINT)
        name, digest = words[0], _digest(words[1].encode())
        if found.setdefault(digest, name) != name:
            raise ConfigError(f"{file}, line {n}: another tenant has the same key", _HINT)
    if not found:
        raise ConfigError(f"{file} holds no key", _HINT)
    return list(found.items())


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
