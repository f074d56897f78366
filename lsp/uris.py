"""From the URI of a document to its file, and to the workspace folder that it belongs to."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from pygls.uris import to_fs_path

from codespec import limits


@lru_cache(maxsize=512)
def path_of(uri: str) -> str:
    """Absolute path of a document on this machine, "" for others: a path of Windows is none on
    another system. Links are resolved anew when a document is opened, or folders change."""
    if uri.startswith("untitled:/"):  # a file that is not saved yet
        uri = uri.replace("untitled:", "file:", 1)
    if not uri.startswith("file:") or len(uri) > limits.URI_CHARS:
        return ""
    if uri.startswith("file://"):
        host, slash, rest = uri[len("file://") :].partition("/")
        if host.lower() == "localhost":
            uri = f"file://{slash}{rest}"
        elif host and os.name != "nt":  # on Windows, a folder that another machine shares
            return ""
    try:
        path = to_fs_path(uri)
        return str(Path(path).resolve()) if path and Path(path).is_absolute() else ""
    except (ValueError, RuntimeError):  # no name of a file, or links that lead in a circle
        return ""


def is_elsewhere(uri: str) -> bool:
    """True for a file of another machine or system, which no folder here has."""
    return uri.startswith("file:") and not path_of(uri)


def workspace_of(path: str, folders: list[str]) -> str:
    """The innermost of `folders` that `path` is in; for a document without a path, the only folder;
    otherwise ""."""
    if not path:
        return folders[0] if len(folders) == 1 else ""
    inside = [folder for folder in folders if _is_in(path, folder)]
    return max(inside, key=len, default="")


def _is_in(path: str, folder: str) -> bool:
    """`Path.is_relative_to`, which would take 20 us of each request."""
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(os.path.join(folder, ""))
