"""Bytecode that attrs makes when a module is imported, kept as Python keeps that of modules.

attrs compiles the methods of each class that it decorates. lsprotocol has more than 500 of them,
half of the time that the server takes to start.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib
import importlib.util
import marshal
import os
import sys
import tempfile
import zlib
from collections.abc import Generator
from pathlib import Path
from types import CodeType
from typing import Any

_Known = dict[bytes, CodeType]
"""By digest of file name and source."""


@contextlib.contextmanager
def kept(path: Path) -> Generator[None]:
    """A context in which attrs takes code from a file that an earlier process compiled; at its end
    the file holds the code compiled now. Without such a file, or where it cannot be read or
    written, everything is compiled as usual."""
    make = vars(importlib.import_module("attr._make"))
    known = _read(path)
    used: _Known = {}

    def compile_once(source: str, filename: str, mode: str, *rest: Any) -> CodeType:
        key = hashlib.blake2b(f"{filename}\n{source}".encode(), digest_size=16).digest()
        code = known.get(key)
        if code is None:
            code = builtins.compile(source, filename, mode, *rest)
        used[key] = code
        return code

    make["compile"] = compile_once
    try:
        yield
    finally:
        del make["compile"]
    if used.keys() - known.keys() and not sys.dont_write_bytecode:
        _write(path, used)


def beside(module_file: str, name: str) -> Path:
    """The path where Python keeps the bytecode of a module `name` in the folder of
    `module_file`."""
    return Path(importlib.util.cache_from_source(str(Path(module_file).with_name(f"{name}.py"))))


def _read(path: Path) -> _Known:
    try:
        content = path.read_bytes()
    except OSError:
        return {}
    head = _head(content[len(_head(b"")) :])
    return marshal.loads(content[len(head) :]) if content.startswith(head) else {}


def _write(path: Path, known: _Known) -> None:
    body = marshal.dumps(known)
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(_head(body) + body)
        try:
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)


def _head(body: bytes) -> bytes:
    """Python's magic number and the checksum: bytecode belongs to one version of Python, and
    damaged code would crash it."""
    return importlib.util.MAGIC_NUMBER + zlib.crc32(body).to_bytes(4, "little")
