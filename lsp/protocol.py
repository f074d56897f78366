"""Our corrections to pygls 2.1: its document store splits lines where the protocol does not (form
feeds, U+2028), costs time linear in the document for each keystroke, its reader takes three
thread hops a message, and what kind a message is costs it more than everything else it does. It
leaves some requests without an answer, and tells others what the server's folders are.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import re
import stat
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.io_ import StdinAsyncReader
from pygls.protocol import (
    JsonRPCNotification,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)
from pygls.uris import to_fs_path

from .changes import Change, Changed, read_changed
from .documents import Document
from .notebooks import Notebooks
from .positions import Encoding, Place

if TYPE_CHECKING:
    from cattrs import Converter
    from pygls.io_ import AsyncReader
    from pygls.workspace import Workspace

log = logging.getLogger(__name__)

OUT_OF_STEP = "a change of this document was not understood: close it and open it again"


class Protocol(LanguageServerProtocol):
    """Keeps `documents` instead of pygls' own."""

    documents: dict[str, Document]
    out_of_step: dict[str, Document]
    """By URI, those that the editor changed in a way that is not known: for everybody else they are
    closed until it sends all of their text."""
    notebooks: Notebooks
    on_open: Callable[[Document], None]
    on_change: Callable[[Document, Sequence[Change]], None]
    on_close: Callable[[str], None]

    def structure_message(self, data: dict[str, Any]) -> Any:
        # pygls leaves a request whose parameters are wrong without an answer, and takes one of a
        # method that it does not know for wrong where it has none.
        if "jsonrpc" not in data:
            return data
        method = data.get("method")
        is_known = isinstance(method, str) and self.get_message_type(method) is not None
        if not is_known:
            data.setdefault("params", None)
        try:
            if method == types.TEXT_DOCUMENT_DID_CHANGE:  # which may be many: 40 us each to cattrs
                return JsonRPCNotification(method, self.VERSION, _changed_of(data))
            return super().structure_message(data)
        except JsonRpcException as e:
            # Not the cause: it may quote source text.
            log.error("not understood: %s", method if is_known else "a message of the editor")
            if "id" in data and method is not None:
                error = self._why_untimely(method) or e
                self._send_response(data["id"], error=error.to_response_error())
            elif method == types.TEXT_DOCUMENT_DID_CHANGE:
                self._lose(data.get("params"))
            elif method == types.TEXT_DOCUMENT_DID_OPEN:
                self._lose(data.get("params"), is_new=True)
            raise

    def handle_message(self, message: Any) -> None:
        # pygls asks `isinstance` of runtime-checkable protocols, 20 us each time.
        method = getattr(message, "method", None)
        if method is None or message.jsonrpc != self.VERSION:
            super().handle_message(message)
            return
        untimely = self._why_untimely(method)
        if not hasattr(message, "id"):
            if untimely is None:
                contextvars.copy_context().run(self._handle_notification, method, message.params)
        elif untimely is not None:
            self._send_response(message.id, error=untimely.to_response_error())
        else:
            run = contextvars.copy_context().run
            run(self._handle_request, message.id, method, message.params)

    def _why_untimely(self, method: str) -> JsonRpcException | None:
        """Before `initialize` and after `shutdown`, requests are errors and notifications are
        dropped; so is a second `initialize`."""
        if self._shutdown:
            return None if method == types.EXIT else JsonRpcInvalidRequest("after shutdown")
        if self._workspace is not None:
            is_again = method == types.INITIALIZE
            return JsonRpcInvalidRequest("initialized before") if is_again else None
        is_early = method not in (types.INITIALIZE, types.EXIT)
        return JsonRpcServerNotInitialized() if is_early else None

    def _send_response(
        self, msg_id: str | int, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        if error is not None:
            error.data = None  # pygls puts tracebacks there
        super()._send_response(msg_id, result, error)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: types.DidOpenTextDocumentParams
    ) -> None:
        self._open(params.text_document)
        self.on_open(self.documents[params.text_document.uri])

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: Changed
    ) -> None:
        self._change(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: types.DidCloseTextDocumentParams
    ) -> None:
        self._close(params.text_document.uri)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: types.DidOpenNotebookDocumentParams
    ) -> None:
        for cell in params.cell_text_documents:
            self._open(cell)
        notebook = params.notebook_document
        self.notebooks.open(notebook.uri, [cell.document for cell in notebook.cells])

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: types.DidChangeNotebookDocumentParams
    ) -> None:
        cells = params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            array = cells.structure.array
            uris = [cell.document for cell in array.cells or ()]
            self.notebooks.splice(
                params.notebook_document.uri, array.start, array.delete_count, uris
            )
            for opened in cells.structure.did_open or ():
                self._open(opened)
            for closed in cells.structure.did_close or ():
                self._close(closed.uri)
        for content in cells.text_content or ():
            changes = [_change_of(event) for event in content.changes]
            self._change(Changed(content.document.uri, content.document.version, changes))

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, params: types.DidCloseNotebookDocumentParams
    ) -> None:
        self.notebooks.close(params.notebook_document.uri)
        for cell in params.cell_text_documents:
            self._close(cell.uri)

    def _lose(self, params: Any, is_new: bool = False) -> None:
        """Of a document whose text was not understood. Whatever follows would be wrong."""
        try:
            uri, language = (params["textDocument"].get(key) for key in ("uri", "languageId"))
            document = self.documents.pop(uri, None)
        except (KeyError, TypeError, AttributeError):
            return
        if is_new and isinstance(uri, str):
            document = Document(uri, language if isinstance(language, str) else "", 0, "")
        if document is not None:
            self.out_of_step[document.uri] = document
            self.on_close(document.uri)

    def _open(self, opened: types.TextDocumentItem) -> None:
        path_of.cache_clear()
        self.out_of_step.pop(opened.uri, None)
        language = cast("object", opened.language_id)  # of which lsprotocol checks nothing
        self.documents[opened.uri] = Document(
            opened.uri,
            language if isinstance(language, str) else "",
            opened.version,
            opened.text,
        )

    def _close(self, uri: str) -> None:
        self.out_of_step.pop(uri, None)
        self.documents.pop(uri, None)
        self.on_close(uri)

    def _change(self, changed: Changed) -> None:
        uri, changes = changed.uri, changed.changes
        if uri in self.out_of_step and any(change.start is None for change in changes):
            self.documents[uri] = self.out_of_step.pop(uri)
            self.on_open(self.documents[uri])
        document = self.documents.get(uri)
        if document is not None:
            document.apply(changes, encoding_of(self.workspace))
            document.version = changed.version
            self.on_change(document, changes)


@lru_cache(maxsize=512)
def path_of(uri: str) -> str:
    """Absolute path of a document on this machine, "" for others. Links are resolved anew when a
    document is opened, or folders change."""
    if uri.startswith("untitled:/"):  # a file that is not saved yet
        uri = uri.replace("untitled:", "file:", 1)
    if not uri.startswith("file:"):
        return ""
    if uri.startswith("file://"):
        host, slash, rest = uri[len("file://") :].partition("/")
        if host.lower() == "localhost":
            uri = f"file://{slash}{rest}"
        elif host and os.name != "nt":  # there it is a folder that another machine shares
            return ""
    try:
        path = to_fs_path(uri)
        return str(Path(path).resolve()) if path else ""
    except (ValueError, RuntimeError):  # no name of a file, or links that lead in a circle
        return ""


def encoding_of(workspace: Workspace) -> Encoding:
    """Units of columns, negotiated at `initialize`."""
    kind = workspace.position_encoding or types.PositionEncodingKind.Utf16
    return types.PositionEncodingKind(kind).value


def _changed_of(data: dict[str, Any]) -> Changed:
    try:
        return read_changed(data["params"])
    except (KeyError, TypeError, ValueError) as e:
        raise JsonRpcInvalidParams from e


def make_converter() -> Converter:
    """Texts are texts and numbers are numbers: cattrs takes the text of null for "None"."""
    converter = default_converter()
    for kind in (str, int):
        converter.register_structure_hook(kind, _as_it_is)
    return converter


def _as_it_is(value: Any, kind: type[Any]) -> Any:
    if issubclass(kind, Enum):  # those of the protocol are texts and numbers, too
        return kind(value)
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value


def _change_of(event: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(event, types.TextDocumentContentChangePartial):
        return Change(event.text, place_of(event.range.start), place_of(event.range.end))
    return Change(event.text)


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
            return as_expected(await self._stream.readline())
        except ValueError:  # a header line over 64 KiB: not LSP
            return b""

    async def readexactly(self, n: int) -> bytes:
        try:
            return well_formed(await self._stream.readexactly(n))
        except asyncio.IncompleteReadError:
            return b""


class _FileReader(StdinAsyncReader):
    """Reads it in a thread."""

    async def readline(self) -> bytes:
        return as_expected(await super().readline())

    async def readexactly(self, n: int) -> bytes:
        return well_formed(await super().readexactly(n))


def as_expected(header: bytes) -> bytes:
    """A header as pygls knows it. Their names are those of HTTP, in which case does not count."""
    name, _, value = header.partition(b":")
    if name.strip().lower() != b"content-length":
        return header
    return b"Content-Length: %s\r\n" % value.strip()


def well_formed(message: bytes) -> bytes:
    """Editors may send bytes of a file that are no UTF-8 as they are. Each becomes a "?", in every
    encoding of positions as wide as they count it."""
    try:
        message.decode()
    except UnicodeDecodeError:
        text = message.decode(errors="surrogateescape")
        return re.sub("[\udc80-\udcff]", "?", text).encode()
    return message


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
    return cast("AsyncReader", _FileReader(sys.stdin.buffer))


def private_stdout() -> BinaryIO:
    """stdout for JSON-RPC alone: whatever else is printed goes to stderr from now on."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out
