"""The user's folders: cache, data, sockets, logs; none in a repository.

They hold the user's text as tokens, weights learned from it, and typing statistics, so they and all
files in them are readable by their owner alone: `private_folder` makes the folders,
    `private_opener`
the files. Looser permissions of earlier versions are tightened when a folder is next opened.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path

import platformdirs

from codespec.errors import ConfigError

_OTHERS = 0o077
# Opened with care by `daemon.address`, which refuses one that was open to others.
_RUN = "run"
# Backups leave such a folder out, and so does an index of what lies around it.
# Source: https://bford.info/cachedir/
_CACHE_TAG = """\
Signature: 8a477f597d28d172789f06886806bc55
# This file marks a folder of codespec's that can be rebuilt. See https://bford.info/cachedir/
"""


def cache_path() -> Path:
    """Folder of everything that can be rebuilt: indexes, built wheels, learned weights. For callers
    that can do without: it may not exist.

    Raises: ConfigError for an invalid CODESPEC_CACHE_DIR.
    """
    given = _override("CODESPEC_CACHE_DIR")
    path = given or platformdirs.user_cache_path("codespec")
    tag = path / "CACHEDIR.TAG"
    with contextlib.suppress(OSError):
        if not path.exists():  # an existing folder may be more than a cache
            path.mkdir(0o700, parents=True, exist_ok=True)
            with open(tag, "w", opener=private_opener) as file:
                file.write(_CACHE_TAG)
        elif given is None or tag.is_file():  # nor may we change a foreign folder's permissions
            _close_to_others(path)
    return path


def cache_dir() -> Path:
    """The cache folder, made and writable. Raises: ConfigError when it cannot be used."""
    return _writable(cache_path(), "CODESPEC_CACHE_DIR")


def runtime_dir() -> Path:
    """Folder of sockets and locks; private to the user where we make it.

    Raises: ConfigError as `cache_dir`.
    """
    path = _override("CODESPEC_RUNTIME_DIR")
    if path is None and sys.platform in ("darwin", "win32"):
        path = platformdirs.user_runtime_path("codespec")
    if path is None:
        # Anybody could occupy the usual substitute below /tmp.
        session = _session_dir()
        path = session / "codespec" if session is not None else cache_dir() / _RUN
    return _writable(path, "CODESPEC_RUNTIME_DIR")


def _session_dir() -> Path | None:
    """$XDG_RUNTIME_DIR where it meets its specification: made by the login session (so we never
    make it), for this user alone. Through su or containers, another user's may be set."""
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
    """Folder of what cannot be rebuilt, or takes long: statistics, models, distilled draft models.
    For readers: it may not exist."""
    return platformdirs.user_data_path("codespec")


def data_dir() -> Path:
    """The data folder, made and writable. Raises: ConfigError as `cache_dir`."""
    return _close_to_others(_writable(data_path(), "XDG_DATA_HOME"))


def log_dir() -> Path:
    """Folder of the daemon's log files. Raises: ConfigError as `cache_dir`."""
    path = platformdirs.user_log_path("codespec")
    if path.parent.name == "codespec":
        _close_to_others(_writable(path.parent, "XDG_STATE_HOME"))
    return _close_to_others(_writable(path, "XDG_STATE_HOME"))


def _override(variable: str) -> Path | None:
    """Folder named by an environment variable; None where unset. Raises: ConfigError."""
    value = os.environ.get(variable)
    if not value:
        return None
    path = expanded(value)
    if not path.is_absolute():
        why = "processes that codespec starts run in other folders"
        raise ConfigError(f"{variable} = {value!r}: {why}", "Give the whole path.")
    return path


def expanded(path: str) -> Path:
    """A path with ~ expanded. Raises: ConfigError for the home of an unknown user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(f"{path}: there is no such user", "Give the whole path.") from None


def private_folder(path: Path) -> Path:
    """Make a folder in one of the folders above, for its owner alone; an existing one is closed to
    other users, with all that is in it.

    Raises: OSError where it cannot be made.
    """
    path.mkdir(0o700, parents=True, exist_ok=True)
    return _close_to_others(path)


def private_opener(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, for `open(path, mode, opener=private_opener)` or instead of `os.open`: a new one
    is for its owner alone, an existing one is closed to other users.

    Returns: the file descriptor.

    Raises: OSError, with EINVAL for anything but a plain file: links are not followed, and pipes
    not waited for.
    """
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags | careful | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as e:
        if e.errno not in (errno.ELOOP, errno.ENXIO):  # a link; a pipe that nobody reads
            raise
        raise _not_plain(path) from None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise _not_plain(path)
        if sys.platform != "win32" and info.st_mode & _OTHERS:
            with contextlib.suppress(OSError):  # another user's
                os.fchmod(fd, stat.S_IMODE(info.st_mode) & ~_OTHERS)
    except BaseException:
        os.close(fd)
        raise
    return fd


@contextlib.contextmanager
def private_files() -> Generator[None, None, None]:
    """Make all new files of the process private to their owner meanwhile, for libraries that open
    files by themselves."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def _close_to_others(folder: Path) -> Path:
    """Close a folder and everything below to other users, where it is open to them. The folder
    itself comes last, so an open folder tells that the walk was not finished. Links and other
    users' files are left alone. No effect on Windows, where profiles are private."""
    if sys.platform == "win32":
        return folder
    with contextlib.suppress(OSError):
        if folder.is_symlink() or not folder.stat().st_mode & _OTHERS:
            return folder
        for name, folders, files in os.walk(folder, topdown=False):
            folders[:] = [f for f in folders if (name, f) != (str(folder), _RUN)]
            for path in (os.path.join(name, entry) for entry in (*folders, *files)):
                _chmod(path)
        _chmod(str(folder))
    return folder


def _chmod(path: str) -> None:
    with contextlib.suppress(OSError):
        info = os.lstat(path)
        if not stat.S_ISLNK(info.st_mode) and info.st_mode & _OTHERS:
            os.chmod(path, stat.S_IMODE(info.st_mode) & ~_OTHERS)


def _not_plain(path: str | os.PathLike[str]) -> OSError:
    return OSError(errno.EINVAL, "it is no plain file", os.fspath(path))


def _writable(path: Path, variable: str) -> Path:
    try:
        path.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise ConfigError(
            f"cannot create the folder {path}: {e.strerror}",
            f"Set {variable} to a folder you can write to.",
        ) from None
    if not os.access(path, os.W_OK):
        raise not_writable(path, variable)
    return path


def not_writable(path: Path, variable: str) -> ConfigError:
    """The error of a folder that cannot be written to. variable: the one that can name another."""
    whose = ""
    with contextlib.suppress(OSError, KeyError):
        if sys.platform != "win32" and path.stat().st_uid != os.geteuid():
            whose = f": it belongs to {path.owner()}"
    return ConfigError(
        f"the folder {path} is not writable{whose}",
        f"Set {variable} to a folder you can write to.",
    )
