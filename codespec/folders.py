"""Folders of the user's: what can be rebuilt, what cannot, sockets, logs; none in a repository."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

import platformdirs

from codespec.errors import ConfigError

# Backups leave such a folder out, and so does an index of what lies around it.
# Source: https://bford.info/cachedir/
_CACHE_TAG = """\
Signature: 8a477f597d28d172789f06886806bc55
# This file marks a folder of codespec's that can be rebuilt. See https://bford.info/cachedir/
"""


def cache_path() -> Path:
    """Folder of everything that can be rebuilt: indexes, built wheels, calibration. For those who
    do without where it cannot be made.

    Raises: ConfigError for a name that is none.
    """
    path = _override("CODESPEC_CACHE_DIR") or platformdirs.user_cache_path("codespec")
    with contextlib.suppress(OSError):
        if not path.exists():  # what was there may be more than a cache
            path.mkdir(parents=True, exist_ok=True)
            (path / "CACHEDIR.TAG").write_text(_CACHE_TAG)
    return path


def cache_dir() -> Path:
    """That folder, for those who cannot. Raises: ConfigError when it cannot be used."""
    return _writable(cache_path(), "CODESPEC_CACHE_DIR")


def runtime_dir() -> Path:
    """Folder of sockets and locks, private to the user if it is made here.

    Raises: ConfigError as `cache_dir`.
    """
    path = _override("CODESPEC_RUNTIME_DIR")
    if path is None and sys.platform in ("darwin", "win32"):
        path = platformdirs.user_runtime_path("codespec")
    if path is None:
        # The usual substitute, below /tmp, is anybody's to squat.
        session = _session_dir()
        path = session / "codespec" if session is not None else cache_dir() / "run"
    return _writable(path, "CODESPEC_RUNTIME_DIR", 0o700)


def _session_dir() -> Path | None:
    """$XDG_RUNTIME_DIR, if it is what its specification says: made by the login session, which is
    why we do not make it, for this user alone. Others come in by su, or out of containers."""
    path = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if sys.platform == "win32" or not path.is_absolute():
        return None
    try:
        info = path.stat()
    except OSError:
        return None
    is_ours = info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) == 0o700
    return path if is_ours and stat.S_ISDIR(info.st_mode) and os.access(path, os.W_OK) else None


def data_path() -> Path:
    """Folder of what cannot be rebuilt, or takes long: statistics, models, distilled drafts. For
    those who only look: it need not exist."""
    return platformdirs.user_data_path("codespec")


def data_dir() -> Path:
    """That folder, for those who write. Raises: ConfigError as `cache_dir`."""
    return _writable(data_path(), "XDG_DATA_HOME")


def log_dir() -> Path:
    """Folder of the daemon's log files."""
    return _writable(platformdirs.user_log_path("codespec"), "XDG_STATE_HOME")


def _override(variable: str) -> Path | None:
    """A folder that the user names. Raises: ConfigError."""
    value = os.environ.get(variable)
    if not value:
        return None
    path = expanded(value)
    if not path.is_absolute():
        why = "processes that codespec starts run in other folders"
        raise ConfigError(f"{variable} = {value!r}: {why}", "Give the whole path.")
    return path


def expanded(path: str) -> Path:
    """With the home folder for ~. Raises: ConfigError for that of a user who is not there."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(f"{path}: there is no such user", "Give the whole path.") from None


def _writable(path: Path, variable: str, mode: int = 0o777) -> Path:
    try:
        path.mkdir(mode, parents=True, exist_ok=True)
    except OSError as e:
        raise ConfigError(
            f"cannot create the folder {path}: {e.strerror}",
            f"Set {variable} to a folder you can write to.",
        ) from None
    if not os.access(path, os.W_OK):
        raise not_writable(path, variable)
    return path


def not_writable(path: Path, variable: str) -> ConfigError:
    whose = ""
    with contextlib.suppress(OSError, KeyError):
        if sys.platform != "win32" and path.stat().st_uid != os.geteuid():
            whose = f": it belongs to {path.owner()}"
    return ConfigError(
        f"the folder {path} is not writable{whose}",
        f"Set {variable} to a folder you can write to.",
    )
