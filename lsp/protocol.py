"""Our corrections to pygls 2.1: its document store splits lines where the protocol does not (form
feeds, U+2028), costs time linear in the document for each keystroke, its reader takes three
thread hops a message, and what kind a message is costs it more than everything else it does. It
leaves some requests without an answer, and tells others what the server's folders are.
"""

from __future__ import annotations

import contextvars
import logging
import os
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
    lsp_method,
)
from pygls.uris import to_fs_path

from codespec import limits
from codespec.limits import is_deeper

from .bounds import SKIPPED, TOO_LARGE, fields, is_integer, why_not_kept
from .changes import Change, Changed, read_changed
from .documents import Document
from .notebooks import Notebooks
from .positions import Encoding, Place

if TYPE_CHECKING:
    from cattrs import Converter
    from pygls.workspace import Workspace

log = logging.getLogger(__name__)

OUT_OF_STEP = "a change of this document was not understood: close it and open it again"


class Protocol(LanguageServerProtocol):
    """Keeps `documents` instead of pygls' own."""

    documents: dict[str, Document]
    left_alone: dict[str, tuple[Document, str]]
    """By URI, those whose text is not known, or too much, and why: for everybody else they are
    closed until the editor sends all of it."""
    notebooks: Notebooks
    on_open: Callable[[Document], None]
    on_change: Callable[[Document, Sequence[Change]], None]
    on_close: Callable[[str], None]

    def structure_message(self, data: dict[str, Any]) -> Any:
        # pygls leaves a request whose parameters are wrong without an answer, and takes one of a
        # method that it does not know for wrong where it has none.
        if "jsonrpc" not in data:
            return data
        self._check(data)
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

    def _check(self, data: dict[str, Any]) -> None:
        """Raises: JsonRpcException for a message beyond the bounds of all messages."""
        if data.get("method") == SKIPPED:
            log.error("a message of over %d MiB was not read", limits.MESSAGE_BYTES >> 20)
            for document in list(self.documents.values()):
                self._leave(document, OUT_OF_STEP)
            why = f"a message has at most {limits.MESSAGE_BYTES >> 20} MiB: send less text"
        elif is_deeper(data):
            why = f"a message has at most {limits.DEPTH} levels of lists and objects: send fewer"
        elif isinstance(name := data.get("id"), str) and len(name) > limits.NAME_CHARS:
            data["id"] = ""
            why = f"an id has at most {limits.NAME_CHARS} characters: shorten it"
        else:
            return
        error = JsonRpcInvalidRequest(why)
        if "id" in data and "method" in data:
            self._send_response(data["id"], error=error.to_response_error())
        raise error

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
        if (document := self.documents.get(params.text_document.uri)) is not None:
            self.on_open(document)

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
        if len(notebook.cells) <= limits.DOCUMENTS:
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
            changes = [_change_of(event) for event in content.changes[: limits.CHANGES + 1]]
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
            document = self.documents.get(uri)
            why = TOO_LARGE if SKIPPED in params else OUT_OF_STEP
        except (KeyError, TypeError, AttributeError):
            return
        if is_new and isinstance(uri, str):
            document = Document(uri, language if isinstance(language, str) else "", 0, "")
        if document is not None:
            self._leave(document, why)

    def _leave(self, document: Document, why: str) -> None:
        """Without its text; nothing is kept of what has no room."""
        self.documents.pop(document.uri, None)
        empty = Document(document.uri, document.language_id, 0, "")
        if len(self.left_alone) < limits.DOCUMENTS and len(document.uri) <= limits.URI_CHARS:
            self.left_alone[document.uri] = empty, why
        self.on_close(document.uri)

    def _why_not_kept(self, uri: str, text: str) -> str:
        others = [document for other, document in self.documents.items() if other != uri]
        n_lines = text.count("\n") + text.count("\r")
        return why_not_kept(len(text), n_lines, sum(d.n_chars for d in others), len(others))

    def _open(self, opened: types.TextDocumentItem) -> None:
        path_of.cache_clear()
        self.left_alone.pop(opened.uri, None)
        said = cast("object", opened.language_id)  # of which lsprotocol checks nothing
        is_name = isinstance(said, str) and len(said) <= limits.NAME_CHARS
        language = opened.language_id if is_name else ""
        is_named = len(opened.uri) <= limits.URI_CHARS
        why = self._why_not_kept(opened.uri, opened.text) if is_named else TOO_LARGE
        text = "" if why else opened.text
        document = Document(opened.uri, language, opened.version, text)
        if why := why or document.why_alone:
            self._leave(document, why)
        else:
            self.documents[opened.uri] = document

    def _close(self, uri: str) -> None:
        self.left_alone.pop(uri, None)
        self.documents.pop(uri, None)
        self.on_close(uri)

    def _change(self, changed: Changed) -> None:
        uri, changes = changed.uri, changed.changes
        if uri in self.left_alone and any(change.start is None for change in changes):
            self.documents[uri], _ = self.left_alone.pop(uri)
            self.on_open(self.documents[uri])
        document = self.documents.get(uri)
        if document is None:
            return
        # Of many short lines each takes more than its text: they are counted before they are kept.
        n_lines = sum(change.text.count("\n") + change.text.count("\r") for change in changes)
        if len(changes) > limits.CHANGES or n_lines > limits.DOCUMENT_LINES:
            self._leave(document, OUT_OF_STEP if len(changes) > limits.CHANGES else TOO_LARGE)
            return
        document.apply(changes, encoding_of(self.workspace))
        document.version = changed.version
        if why := document.why_alone or self._why_too_large(document):
            self._leave(document, why)
        else:
            self.on_change(document, changes)

    def _why_too_large(self, document: Document) -> str:
        """After a change."""
        n_open = sum(d.n_chars for d in self.documents.values()) - document.n_chars
        return why_not_kept(document.n_chars, document.n_lines, n_open, 0)


@lru_cache(maxsize=512)
def path_of(uri: str) -> str:
    """Absolute path of a document on this machine, "" for others. Links are resolved anew when a
    document is opened, or folders change."""
    if uri.startswith("untitled:/"):  # a file that is not saved yet
        uri = uri.replace("untitled:", "file:", 1)
    if not uri.startswith("file:") or len(uri) > limits.URI_CHARS:
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
    for kind in (JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage):
        converter.register_structure_hook(kind, _with_fields)
    return converter


def _as_it_is(value: Any, kind: type[Any]) -> Any:
    if issubclass(kind, Enum):  # those of the protocol are texts and numbers, too
        return kind(value)
    if type(value) is not kind or (kind is int and not is_integer(value)):
        raise TypeError(kind.__name__)
    return value


def _with_fields(message: dict[str, Any], kind: type[Any]) -> Any:
    """A message of no known kind. pygls makes a class for each object in it: a hundred thousand of
    them take nine seconds and 600 MB."""
    return kind(**{k: fields(v) if k in ("params", "result") else v for k, v in message.items()})


def _change_of(event: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(event, types.TextDocumentContentChangePartial):
        return Change(event.text, place_of(event.range.start), place_of(event.range.end))
    return Change(event.text)


def place_of(position: types.Position) -> Place:
    return Place(position.line, position.character)
