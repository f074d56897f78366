"""Parsing in child processes: on several cores, although the parser holds the interpreter's lock,
and so that input made to kill it kills a process that holds nothing.

A child reads a file's path and text from its standard input, and writes the result of
`selection.select` to its standard output, each with its length before it. It ends when its input
does.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import signal
import struct
import subprocess
import sys
from typing import BinaryIO

import msgspec

from codespec.errors import CodespecError
from codespec.index.selection import SelectedText, select
from codespec.system.processes import away, lower_priority, module_command

MAX_MEMORY_BYTES = 512 << 20
"""Memory limit of a child; the largest file that is indexed takes about a tenth."""
MAX_SECONDS = 20.0
"""Time limit of a parse, which ends the child: not every loop of a grammar can be interrupted."""

_REQUEST = struct.Struct("<II")  # bytes of the path, bytes of the text
_REPLY = struct.Struct("<I")
_READY = b"\1"
_decoder = msgspec.msgpack.Decoder(SelectedText)


class ParserDiedError(Exception):
    """A child died while it parsed the file it was given."""


class Parsers:
    """Up to `n` parsing children, each started when first needed. Thread-safe."""

    def __init__(self, n: int) -> None:
        self.n = n
        # Last in, first out: little work needs few children.
        self._slots: queue.LifoQueue[_Child | None] = queue.LifoQueue()
        for _ in range(n):
            self._slots.put(None)

    def __enter__(self) -> Parsers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def select(self, path: str, text: bytes) -> SelectedText:
        """Run `selection.select` in one of the children; waits until one is free.

        Raises: ParserDiedError; OSError and CodespecError if no child can be started.
        """
        child = self._slots.get()
        try:
            if child is None:
                child = _Child()
            return child.select(path, text)
        except ParserDiedError:
            if child is not None:
                child.end()
            child = None
            raise
        finally:
            self._slots.put(child)

    def rest(self) -> None:
        """End all children but one, when no file is expected for a while. Must not run beside
        `select`."""
        self._end_all_but(1)

    def close(self) -> None:
        """End the children. Must not run beside `select`; a later `select` starts children anew."""
        self._end_all_but(0)

    def _end_all_but(self, n: int) -> None:
        running = [c for c in (self._slots.get() for _ in range(self.n)) if c is not None]
        for child in running[n:]:
            child.end()
        for _ in range(self.n - len(running[:n])):
            self._slots.put(None)
        for child in running[:n]:
            self._slots.put(child)


class _Child:
    def __init__(self) -> None:
        """Start the child and wait until it is ready. Raises: OSError, CodespecError."""
        self._process = subprocess.Popen(
            module_command("codespec.index.parsers"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=away(),
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0)
            | getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        # A child that cannot even start must not be taken for one that died of a file.
        if self._stdout.read(len(_READY)) != _READY:
            self.end()
            raise CodespecError(
                f"the parser cannot be started: it ended with status {self._process.returncode}",
                "Install codespec again.",
            )

    def select(self, path: str, text: bytes) -> SelectedText:
        """Run `selection.select` in the child. Raises: ParserDiedError."""
        name = path.encode("utf-8", "surrogateescape")
        try:
            self._stdin.write(_REQUEST.pack(len(name), len(text)) + name)
            self._stdin.write(text)
            self._stdin.flush()
            header = self._stdout.read(_REPLY.size)
            reply = self._stdout.read(*_REPLY.unpack(header)) if len(header) == _REPLY.size else b""
            return _decoder.decode(reply)
        except (OSError, msgspec.DecodeError):
            raise ParserDiedError from None

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):  # what was not flushed goes nowhere
                stream.close()


def _serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    encode = msgspec.msgpack.Encoder().encode
    outgoing.write(_READY)
    outgoing.flush()
    while len(header := incoming.read(_REQUEST.size)) == _REQUEST.size:
        n_path, n_text = _REQUEST.unpack(header)
        path = incoming.read(n_path).decode("utf-8", "surrogateescape")
        text = incoming.read(n_text)
        if len(text) < n_text:
            return
        # Its thread needs no interpreter lock, which the parser may hold for ever.
        faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)
        reply = encode(select(path, text))
        faulthandler.cancel_dump_traceback_later()
        outgoing.write(_REPLY.pack(len(reply)) + reply)
        outgoing.flush()


def main() -> None:
    # The group's interrupt is for the parent; its end closes our input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lower_priority(MAX_MEMORY_BYTES)
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever native code prints
    _serve(incoming, outgoing)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
