"""Documents from disk, and places in them."""

from __future__ import annotations

import stat
from pathlib import Path

from codespec.errors import InputError
from codespec.syntax.text import normalise

MAX_DOCUMENT_BYTES = 16_000_000


def read_document(path: Path) -> str:
    """The text of a file, with \\n line ends.

    Raises: InputError when it cannot be read, is too large, or is not text.
    """
    try:
        info = path.stat()
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
            raise InputError(f"{path}: a device or pipe", "codespec completes files.")
        if info.st_size > MAX_DOCUMENT_BYTES:
            raise InputError(f"{path}: larger than {MAX_DOCUMENT_BYTES // 10**6} MB")
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as e:
        raise InputError(f"{path}: {e.strerror}") from None
    if b"\0" in raw:
        raise InputError(f"{path}: a binary file", "codespec completes text files.")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"{path}: not UTF-8 text", "Convert the file to UTF-8, e.g. with iconv."
        ) from None
    return normalise(text)


def split_at(text: str, line: int, column: int, name: str = "the document") -> tuple[str, str]:
    """(text before, text after) a place; line and column from 1, the column in characters.

    Raises: InputError for a place outside the text.
    """
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        raise InputError(f"{name}: line {line} is outside the file; its last one is {len(lines)}")
    width = len(lines[line - 1])
    if not 1 <= column <= width + 1:
        raise InputError(
            f"{name}:{line}: column {column} is outside the line",
            f"The line has {width} characters: columns 1 to {width + 1}.",
        )
    offset = sum(len(s) + 1 for s in lines[: line - 1]) + column - 1
    return text[:offset], text[offset:]


def workspace_of(path: Path) -> Path:
    """The nearest folder above `path` with a .git, else the file's own folder."""
    folder = path.resolve().parent
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return folder
