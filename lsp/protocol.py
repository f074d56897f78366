"""Our corrections to pygls 2.1.

- Its document store splits lines where the protocol does not (form feeds, U+2028), and each
  keystroke takes time linear in the document.
- Its reader takes three thread hops a message, and finding out the kind of a message takes it
  longer than everything else.
- It leaves some requests without an answer, and puts the server's folders into some errors.
"""

from __future__ import annotations

import contextvars
import logging
from enum import Enum
from typing import TYPE_CHECKING, Any

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
)

from codespec import limits
from codespec.limits import is_deeper

from .bounds import SKIPPED, fields, integer_of
from .changes import Changed, read_changed

if TYPE_CHECKING:
    from cattrs import Converter

    from .editor_documents import EditorDocuments

log = logging.getLogger(__name__)

_DOCUMENT_SYNC = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)


class CodespecProtocol(LanguageServerProtocol):
    """LSP as pygls speaks it; documents are kept in step by our handlers alone."""

    documents: EditorDocuments

    def _register_builtin_features(self) -> None:
        super()._register_builtin_features()
        for method in _DOCUMENT_SYNC:
            del self.fm.builtin_features[method]

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
            if method == types.TEXT_DOCUMENT_DID_CHANGE:  # cattrs takes 40 us a change
                return JsonRPCNotification(method, self.VERSION, _changed_of(data))
            if method == types.NOTEBOOK_DOCUMENT_DID_CHANGE:
                texts = _changed_cells_of(data)
                message: Any = super().structure_message(data)
                if texts:
                    message.params.change.cells.text_content = texts
                return message
            return super().structure_message(data)
        except JsonRpcException as e:
            # The cause is not logged: it may quote source text.
            log.error("not understood: %s", method if is_known else "a message of the editor")
            if "id" in data and method is not None:
                error = self._why_untimely(method) or e
                self._send_response(data["id"], error=error.to_response_error())
            elif method == types.TEXT_DOCUMENT_DID_CHANGE:
                self.documents.lose(data.get("params"))
            elif method == types.TEXT_DOCUMENT_DID_OPEN:
                self.documents.lose(data.get("params"), is_new=True)
            elif method == types.NOTEBOOK_DOCUMENT_DID_CHANGE:
                self.documents.lose_cells(data.get("params"))
            raise

    def _check(self, data: dict[str, Any]) -> None:
        """Raises: JsonRpcException for a message beyond the bounds of all messages."""
        if data.get("method") == SKIPPED:
            log.error("a message of over %d MiB was not read", limits.MESSAGE_BYTES >> 20)
            self.documents.lose_all()
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
        """The error of a message before `initialize`, after `shutdown`, or of a second
        `initialize`; None for others. Requests are answered with it, notifications dropped."""
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


def _changed_of(data: dict[str, Any]) -> Changed:
    try:
        params = data["params"]
        return read_changed(params["textDocument"], params["contentChanges"])
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise JsonRpcInvalidParams from e


def _changed_cells_of(data: dict[str, Any]) -> list[Changed]:
    """Changes of the texts of a notebook's cells, taken out of the message, which is mended where a
    version is missing."""
    try:
        notebook = data["params"]["notebookDocument"]
        notebook["version"] = integer_of(notebook.get("version")) or 0
        cells = data["params"]["change"].get("cells") or {}
        texts = cells.pop("textContent", None) or []
        return [read_changed(text["document"], text["changes"]) for text in texts]
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise JsonRpcInvalidParams from e


def make_converter() -> Converter:
    """A converter that takes only texts for texts and numbers for numbers: cattrs by itself reads
    null as the text "None"."""
    converter = default_converter()
    for kind in (str, int):
        converter.register_structure_hook(kind, _as_it_is)
    for kind in (JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage):
        converter.register_structure_hook(kind, _with_fields)
    return converter


def _as_it_is(value: Any, kind: type[Any]) -> Any:
    if issubclass(kind, Enum):  # the protocol's enums are texts and numbers, too
        return kind(value)
    read = integer_of(value) if kind is int else value
    if type(read) is not kind:
        raise TypeError(kind.__name__)
    return read


def _with_fields(message: dict[str, Any], kind: type[Any]) -> Any:
    """A message of an unknown method. pygls would make a class for each object in it: a hundred
    thousand of them take nine seconds and 600 MB."""
    return kind(**{k: fields(v) if k in ("params", "result") else v for k, v in message.items()})
