"""Our corrections to pygls 2.1: its document store splits lines where the protocol does not (form
feeds, U+2028), costs time linear in the document for each keystroke, and its reader takes three
thread hops a message.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from typing import TYPE_CHECKING, BinaryIO, cast

from lsprotocol import types
from pygls.io_ import StdinAsyncReader
from pygls.protocol import LanguageServerProtocol, lsp_method

from .documents import Document, Place
from .positions import Encoding

if TYPE_CHECKING:
    from pygls.io_ import AsyncReader
    from pygls.workspace import Workspace


class Protocol(LanguageServerProtocol):
    """Keeps `documents` instead of pygls' own. The overridden handlers are generators only to call
    further ones, which nobody registers here."""

    documents: dict[str, Document]

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: types.DidOpenTextDocumentParams
    ) -> None:
        opened = params.text_document
        self.documents[opened.uri] = Document(
            opened.uri, opened.language_id, opened.version, opened.text
        )

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: types.DidChangeTextDocumentParams
    ) -> None:
        document = self.documents.get(params.text_document.uri)
        if document is None:
            return
        encoding = encoding_of(self.workspace)
        for change in params.content_changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = change.range.start, change.range.end
                document.replace(place_of(start), place_of(end), change.text, encoding)
            else:
                document.replace_all(change.text)
        document.version = params.text_document.version

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: types.DidCloseTextDocumentParams
    ) -> None:
        self.documents.pop(params.text_document.uri, None)


def encoding_of(workspace: Workspace) -> Encoding:
    """Units of columns, negotiated at `initialize`."""
    kind = workspace.position_encoding or types.PositionEncodingKind.Utf16
    return types.PositionEncodingKind(kind).value


def place_of(position: types.Position) -> Place:
    return Place(position.line, position.character)


class _PipeReader:
    """Reads stdin on the event loop itself."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def readline(self) -> bytes:
        # A read from the buffer does not yield by itself. Let the handler of the last message
        # begin first: it must see the document before the next message changes it.
        await asyncio.sleep(0)
        try:
            return await self._stream.readline()
        except ValueError:  # a header line over 64 KiB: not LSP
            return b""

    async def readexactly(self, n: int) -> bytes:
        try:
            return await self._stream.readexactly(n)
        except asyncio.IncompleteReadError:
            return b""


async def stdin_reader() -> AsyncReader:
    """Source: asyncio documentation, "connect_read_pipe" (not for files, nor on Windows)."""
    mode = os.fstat(0).st_mode
    if sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        stream = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(os.dup(0), "rb", buffering=0)
        )
        return cast("AsyncReader", _PipeReader(stream))
    return cast("AsyncReader", StdinAsyncReader(sys.stdin.buffer))


def private_stdout() -> BinaryIO:
    """stdout for JSON-RPC alone: whatever else is printed goes to stderr from now on."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out
