"""The name by which servers know a workspace: the same in all its requests, and opaque.

A router before several engines keeps the requests of one name on one engine, which has then read
their prompts and opened their workspace already.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from functools import lru_cache

from filelock import FileLock
from filelock import Timeout as LockTimeout

from codespec.errors import ConfigError
from codespec.system.folders import cache_dir, private_opener

HEADER = "X-Session-Id"
_FILE = "session.key"
_KEY_BYTES = 32
_LOCK_S = 2.0


def session_headers(workspace: str) -> dict[str, str]:
    """The header that names a workspace; none where there is none, or no key can be kept."""
    name = session_of(workspace)
    return {HEADER: name} if name else {}


def files_of(workspace: str, paths: Iterable[str]) -> dict[str, str]:
    """32 hexadecimal digits of each file, keyed likewise; none where no key can be kept. paths:
    relative to the workspace, as its index names them."""
    try:
        folder, key = session_of(workspace), _key()
    except (ConfigError, OSError, LockTimeout):
        return {}
    return {path: _digest(os.fsencode(f"{folder}/{path}"), key) for path in paths}


def session_of(workspace: str) -> str:
    """32 hexadecimal digits of a workspace's folder, keyed by a secret of this user: nobody else
    can tell a folder by them. "" for no workspace, and where no key can be kept."""
    try:
        return _named(workspace) if workspace else ""
    except (ConfigError, OSError, LockTimeout):
        return ""


@lru_cache(maxsize=256)
def _named(workspace: str) -> str:
    folder = os.path.normcase(os.path.realpath(workspace))
    return _digest(os.fsencode(folder), _key())


def _digest(name: bytes, key: bytes) -> str:
    return hashlib.blake2b(name, digest_size=16, key=key).hexdigest()


def _key() -> bytes:
    """The secret, made once and kept in the cache folder."""
    path = cache_dir() / _FILE
    with FileLock(path.with_suffix(".lock"), timeout=_LOCK_S):
        with open(path, "a+b", opener=private_opener) as file:
            file.seek(0)
            key = file.read(_KEY_BYTES)
            if len(key) < _KEY_BYTES:  # new, or cut off by a full disk
                key = secrets.token_bytes(_KEY_BYTES)
                file.truncate(0)
                file.write(key)
        return key
