"""stdin and stdout of the server: messages as pygls reads them, none too large."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
from typing import TYPE_CHECKING, BinaryIO, cast

from pygls.io_ import StdinAsyncReader

from codespec.limits import MESSAGE_BYTES

from .bounds import read_away

if TYPE_CHECKING:
    from pygls.io_ import AsyncReader

_LENGTH_DIGITS = 20


class _PipeReader:
    """stdin, read on the event loop itself."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        # A read from the buffer does not yield by itself. Let the handler of the last message
        # begin first: it must see the document before the next message changes it.
        await asyncio.sleep(0)
        try:
            return as_expected(await self._stream.readline())
        except ValueError:  # a header line over 64 KiB: not LSP
            return b""

    async def readexactly(self, n: int) -> bytes:
        try:
            if n > MESSAGE_BYTES:
                return await read_away(n, self._stream.readexactly)
            return well_formed(await self._stream.readexactly(n))
        except asyncio.IncompleteReadError:
            return b""


class _FileReader(StdinAsyncReader):
    """stdin, read in a thread."""

    async def readline(self) -> bytes:
        return as_expected(await super().readline())

    async def readexactly(self, n: int) -> bytes:
        if n > MESSAGE_BYTES:
            return await read_away(n, super().readexactly)
        return well_formed(await super().readexactly(n))


def as_expected(header: bytes) -> bytes:
    """A header as pygls knows it. Header names are those of HTTP, in which case does not count."""
    name, _, value = header.partition(b":")
    if name.strip().lower() != b"content-length":
        return header
    if len(value) > _LENGTH_DIGITS:  # longer than any length: not LSP
        return b""
    return b"Content-Length: %s\r\n" % value.strip()


def well_formed(message: bytes) -> bytes:
    """The message in UTF-8. Editors may send bytes of a file that are no UTF-8 as they are: each
    becomes a "?", as wide as the editor counts the byte in every encoding of positions."""
    try:
        message.decode()
    except UnicodeDecodeError:
        text = message.decode(errors="surrogateescape")
        return re.sub("[\udc80-\udcff]", "?", text).encode()
    return message


async def stdin_reader() -> AsyncReader:
    """stdin on the event loop, or in a thread where that is impossible: files, and Windows.

    Source: asyncio documentation, "connect_read_pipe"."""
    mode = os.fstat(0).st_mode
    if sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        stream = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(os.dup(0), "rb", buffering=0)
        )
        return cast("AsyncReader", _PipeReader(stream))
    return cast("AsyncReader", _FileReader(sys.stdin.buffer))


def private_stdout() -> BinaryIO:
    """stdout for JSON-RPC alone: whatever else is printed goes to stderr from now on."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out
