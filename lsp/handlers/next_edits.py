"""textDocument/copilotInlineEdit and didShowInlineEdit, as editors know them from Copilot's
language server; textDocument/nextEdits and didDismissInlineEdit, our own; and
workspace/executeCommand codespec.nextEditAccepted.

Source of the first two: the README of @github/copilot-language-server.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from ..bounds import integer_of
from ..language_server import EVERYWHERE, CodespecServer
from ..lsp_types import EDIT_ACCEPTED, edit_of, offer_id_of
from ..positions import DocumentPlace

if TYPE_CHECKING:
    from ..documents import Document
    from ..next_edits.next_edit_session import EditAsk
    from ..positions import Encoding

INLINE_EDIT = "textDocument/copilotInlineEdit"
NEXT_EDITS = "textDocument/nextEdits"
DID_SHOW = "textDocument/didShowInlineEdit"
DID_DISMISS = "textDocument/didDismissInlineEdit"


async def inline_edit(server: CodespecServer, params: Any) -> dict[str, Any]:
    """The next edit, or none for every reason, which the trace tells."""
    return await _edits(server, params, all_places=False)


async def next_edits(server: CodespecServer, params: Any) -> dict[str, Any]:
    """All places that are likely to want an edit, best first."""
    return await _edits(server, params, all_places=True)


async def _edits(server: CodespecServer, params: Any, *, all_places: bool) -> dict[str, Any]:
    from ..next_edits.next_edit_session import MAX_LISTED

    nothing: dict[str, Any] = {"edits": []}
    asked = getattr(params, "textDocument", None)
    uri, version = getattr(asked, "uri", None), getattr(asked, "version", None)
    cursor = getattr(params, "position", None)
    line, character = (integer_of(getattr(cursor, each, None)) for each in ("line", "character"))
    if not isinstance(uri, str) or line is None or character is None:
        raise JsonRpcInvalidParams("a document and a position are needed")
    if server.session is None:
        await server.opened(False)
    if server.configuration.file_changed:
        await server.reload()
    document = server.documents.get(uri)
    if document is None or server.next_edits is None:
        server.trace(f"{uri}: no next edit: the document is not open")
        return nothing
    if version is not None and version != document.version:
        server.trace(f"{uri}: no next edit: the document is not at the version asked about")
        return nothing
    place = DocumentPlace(line, character)
    ask = _question(server, document, place, server.encoding, MAX_LISTED if all_places else 1)
    answer = await server.next_edits.propose(ask)
    server.trace(f"{ask.path or uri}:{ask.line + 1}: {answer.words}", answer)
    return {"edits": [edit_of(offer) for offer in answer.offers]}


async def accepted(server: CodespecServer, *arguments: object) -> None:
    """An edit was made; its offer's id is the only argument."""
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise JsonRpcInvalidParams(f"{EDIT_ACCEPTED} takes the id of an edit")
    if server.next_edits is not None:
        server.next_edits.accepted(arguments[0], functools.partial(_question_at, server))


async def did_show(server: CodespecServer, params: Any) -> None:
    """The user sees the edit."""
    offer_id = offer_id_of(params)
    if server.next_edits is not None and offer_id:
        server.next_edits.shown(offer_id)


async def did_dismiss(server: CodespecServer, params: Any) -> None:
    """The user does not want the edit."""
    offer_id = offer_id_of(params)
    if server.next_edits is not None and offer_id:
        server.next_edits.dismissed(offer_id)


def look_ahead(server: CodespecServer, uri: str) -> None:
    """A document changed: the editor is about to ask for its next edit."""
    if server.next_edits is not None:
        server.next_edits.look_ahead(uri, functools.partial(_question_at, server))


def _question(
    server: CodespecServer,
    document: Document,
    place: DocumentPlace,
    encoding: Encoding,
    n_most: int,
) -> EditAsk:
    """The question about the document as it is now. Call it with a session only."""
    from ..next_edits.next_edit_session import EditAsk

    now = server.ask(document, place, encoding)
    is_cell = server.notebooks.of(document.uri) is not None
    return EditAsk(
        uri=document.uri,
        path="" if is_cell else now.path,
        workspace=now.workspace,
        language_id=document.language_id,
        version=document.version,
        text=document.lines(0, document.n_lines),
        cursor=0 if is_cell else now.snapshot.offset,
        line=now.snapshot.place.line,
        everywhere=server.can(EVERYWHERE),
        n_most=n_most,
    )


def _question_at(server: CodespecServer, uri: str) -> EditAsk | None:
    """The question where a document changed last; None for one that is not open."""
    document = server.documents.get(uri)
    if document is None or server.session is None:
        return None
    return _question(server, document, document.edited, "utf-32", 1)


def register(server: CodespecServer) -> None:
    """Have the server answer these methods."""
    server.feature(INLINE_EDIT)(inline_edit)
    server.feature(NEXT_EDITS)(next_edits)
    server.feature(DID_SHOW)(did_show)
    server.feature(DID_DISMISS)(did_dismiss)
    server.command(EDIT_ACCEPTED)(accepted)
