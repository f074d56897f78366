"""File events of Linux (inotify) for a folder and all folders below it.

Written here because libraries follow links when they look for folders: with a link to / in a
repository they watched the whole disk, and with some dozen links between folders, each of which
doubles the number of paths, they never finished. They also watch the folders of tools, which are
most of all folders, and report nothing when the kernel's queue overflows.

Source: inotify(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import selectors
import struct
from collections.abc import Iterator

from codespec.rules.ignore import MAX_DEPTH, TOOL_FOLDERS

_MODIFY, _ATTRIB, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x40, 0x80
_CREATE, _DELETE, _MOVE_SELF = 0x100, 0x200, 0x800
_OVERFLOW, _IGNORED, _ISDIR = 0x4000, 0x8000, 0x40000000
_ONLYDIR, _DONT_FOLLOW, _EXCL_UNLINK = 0x1000000, 0x2000000, 0x4000000
_CHANGES = _MODIFY | _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _MOVE_SELF
_MASK = _CHANGES | _ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, bytes of the name
_BUFFER_BYTES = 1 << 16
# Errors of a path that is gone, no folder any more, or not ours to read: nothing to watch.
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG)


class FolderEvents:
    """Events of one folder and of those below it, without folders of tools. Links are not followed.
    Of `.git`, only itself and its `info` are watched. Use it on one thread; close it after use."""

    def __init__(self, root: str) -> None:
        """root: absolute, links resolved. Watches every folder, about 50,000 a second.

        Raises: OSError if a limit of the system is reached, or the system has no such events.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            self._add, self._rm = libc.inotify_add_watch, libc.inotify_rm_watch
            fd = libc.inotify_init()
        except AttributeError:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
        if fd < 0:
            raise _last_error("max_user_instances")
        self._fd: int = fd
        self._root = root
        self._folders: dict[int, str] = {}
        self._ready = selectors.DefaultSelector()
        try:
            os.set_inheritable(fd, False)
            self._ready.register(fd, selectors.EVENT_READ)
            self._watch_below(root)
        except OSError:
            self.close()
            raise

    def __enter__(self) -> FolderEvents:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._ready.close()
        os.close(self._fd)

    def wait(self, seconds: float) -> set[str]:
        """Files and folders that may have changed since the last call, as absolute paths; the root
        if anything may have changed. Empty if nothing happens for `seconds`.

        Raises: as the constructor, since new folders are watched.
        """
        found: set[str] = set()
        if not self._ready.select(seconds):
            return found
        for watch, mask, name in _events(os.read(self._fd, _BUFFER_BYTES)):
            if mask & _OVERFLOW:
                found.add(self._root)
                self._watch_below(self._root)
            elif mask & _IGNORED:
                self._forget(watch, found)
            elif watch in self._folders:
                path = os.path.join(self._folders[watch], name) if name else self._folders[watch]
                found.add(path)
                if name and mask & _ISDIR:
                    self._folder_moved(path, name, mask)
                elif mask & _MOVE_SELF and path == self._root:
                    self._drop(path)
                    self._watch_below(path)  # another one may be there by now
        return found

    def _folder_moved(self, path: str, name: str, mask: int) -> None:
        if mask & (_CREATE | _MOVED_TO) and _is_entered(os.path.dirname(path), name):
            self._watch_below(path)
        elif mask & _MOVED_FROM:
            self._drop(path)

    def _drop(self, top: str) -> None:
        """Remove the watches of a moved folder and of those below it: they would report its old
        name."""
        below = os.path.join(top, "")
        for watch, folder in list(self._folders.items()):
            if folder == top or folder.startswith(below):
                del self._folders[watch]
                self._rm(self._fd, watch)

    def _forget(self, watch: int, found: set[str]) -> None:
        """Forget a watch whose folder is gone. A deleted root may have been made anew by now."""
        if self._folders.pop(watch, "") == self._root:
            self._watch_below(self._root)
            found.add(self._root)

    def _watch_below(self, top: str) -> None:
        stack = [(top, 0)]
        while stack:
            folder, depth = stack.pop()
            watch = self._add(self._fd, os.fsencode(folder), ctypes.c_uint32(_MASK))
            if watch < 0:
                error = _last_error("max_user_watches")
                if error.errno in _NO_FOLDER:
                    continue
                raise error
            self._folders[watch] = folder
            # Watched before it is listed: later changes are reported.
            try:
                with os.scandir(folder) as entries:
                    below = [e.path for e in entries if _is_folder(e, folder)]
            except OSError:
                continue
            if depth < MAX_DEPTH:
                stack += [(path, depth + 1) for path in below]


def _is_folder(entry: os.DirEntry[str], parent: str) -> bool:
    return _is_entered(parent, entry.name) and entry.is_dir(follow_symlinks=False)


def _is_entered(parent: str, name: str) -> bool:
    if os.path.basename(parent) == ".git":
        return name == "info"
    return name not in TOOL_FOLDERS or name == ".git"


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(data):
        watch, mask, _, n_name = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        yield watch, mask, os.fsdecode(data[at : at + n_name].rstrip(b"\0"))
        at += n_name


def _last_error(limit: str) -> OSError:
    """The error of the last system call. limit: the system's setting that may be its cause."""
    number = ctypes.get_errno()
    # The system's message would be that of too many files, or of a full disk.
    if number in (errno.EMFILE, errno.ENOSPC):
        return OSError(number, f"fs.inotify.{limit} is too low for the folders to watch")
    return OSError(number, os.strerror(number))
