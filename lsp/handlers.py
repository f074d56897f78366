"""What the editor says, one function each: async, and waiting for nothing but its answer.

Beyond the protocol: the notifications that editors know from other completion servers,
`textDocument/didShowCompletion`, `textDocument/didPartiallyAcceptCompletion` and
`textDocument/didFocus`, and the command of an item, which editors run when it is accepted. Editors
with the experimental capability `growingCompletion` are told by `textDocument/completionGrew` what
the first item of their last request is by now.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from codespec.limits import NAME_CHARS

from .bounds import is_integer
from .configuration import section_of
from .positions import Place
from .protocol import path_of, place_of
from .server import Server

if TYPE_CHECKING:
    from .answers import Ask, Offer
    from .documents import Selection, Snapshot
    from .positions import Encoding

log = logging.getLogger(__name__)

ACCEPTED = "codespec.accepted"
DID_SHOW = "textDocument/didShowCompletion"
DID_PARTIALLY_ACCEPT = "textDocument/didPartiallyAcceptCompletion"
DID_FOCUS = "textDocument/didFocus"
GREW = "textDocument/completionGrew"


async def initialize(server: Server, params: types.InitializeParams) -> None:
    server.configuration.options = params.initialization_options
    if params.trace is not None:
        server.protocol.trace = params.trace


async def initialized(server: Server, _params: types.InitializedParams) -> None:
    server.opening = asyncio.ensure_future(server.open_session())
    _warm_up(server)


async def inline_completion(
    server: Server, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    nothing = types.InlineCompletionList(items=[])
    uri = params.text_document.uri
    document = server.documents.get(uri)
    if document is None:
        why = "the document is not open"
        if uri in server.left_alone:
            _, why = server.left_alone[uri]
            server.at_hand = uri
            server.show_pause()
        server.trace(f"{uri}: {why}")
        return nothing
    context = params.context
    invoked = context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
    version = document.version
    if server.session is None:
        await server.opened(invoked)
    if server.configuration.file_changed:
        await server.reload()
    # A text that changed while we waited has a request of its own under way, and one that was
    # closed is not sent any more.
    is_same = server.documents.get(document.uri) is document and document.version == version
    if server.session is None or not is_same:
        why = "the document changed meanwhile" if server.session else "the server is starting"
        server.trace(f"{uri}: no suggestion: {why}")
        return nothing
    ask = server.ask(
        document,
        place_of(params.position),
        server.encoding,
        invoked=invoked,
        selection=_selection_of(context.selected_completion_info),
    )
    snapshot = ask.snapshot
    server.at_hand = document.uri
    answer = await server.session.suggest(ask)
    if server.at_hand == document.uri:  # still
        server.status.paused(answer.paused)
    place = f"{ask.path or document.uri}:{snapshot.place.line + 1}"
    server.trace(f"{place}: {answer.words}")
    return types.InlineCompletionList(
        items=[_item(snapshot, offer, server.encoding) for offer in answer.offers]
    )


def _selection_of(info: types.SelectedCompletionInfo | None) -> Selection | None:
    from .documents import Selection

    if info is None:
        return None
    return Selection(place_of(info.range.start), place_of(info.range.end), info.text)


def _item(snapshot: Snapshot, offer: Offer, encoding: Encoding) -> types.InlineCompletionItem:
    """The range is always given."""
    start, end = snapshot.range_of(offer.edit, encoding)
    return types.InlineCompletionItem(
        insert_text=offer.edit.text.replace("\n", snapshot.line_end),
        range=types.Range(
            types.Position(start.line, start.character), types.Position(end.line, end.character)
        ),
        command=types.Command("Completion accepted", ACCEPTED, arguments=[offer.id]),
    )


def _grew(server: Server, ask: Ask, answered: str, offer: Offer) -> None:
    """`id`: as in the command of the item that was answered with."""
    uri = types.TextDocumentIdentifier(ask.snapshot.uri)
    grown = {
        "textDocument": uri,
        "id": answered,
        "item": _item(ask.snapshot, offer, server.encoding),
    }
    with contextlib.suppress(BrokenPipeError):
        server.protocol.notify(GREW, grown)


# --- what became of a suggestion --------------------------------------------------------------


async def accepted(server: Server, *arguments: object) -> None:
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise JsonRpcInvalidParams(f"{ACCEPTED} takes the id of an item")
    if server.session is not None:
        server.session.accepted(arguments[0])


async def did_show(server: Server, params: Any) -> None:
    offer_id = _offer_of(params)
    if server.session is not None and offer_id:
        server.session.shown(offer_id)


async def did_partially_accept(server: Server, params: Any) -> None:
    offer_id = _offer_of(params)
    n_units = getattr(params, "acceptedLength", None)
    if server.session is not None and offer_id and is_integer(n_units):
        server.session.partially_accepted(offer_id, n_units)


def _offer_of(params: Any) -> str:
    """The id in an item's command, "" where there is none."""
    command = getattr(getattr(params, "item", None), "command", None)
    arguments = getattr(command, "arguments", None)
    offer_id = arguments[0] if isinstance(arguments, list) and arguments else ""
    return offer_id if isinstance(offer_id, str) and len(offer_id) <= NAME_CHARS else ""


async def did_focus(server: Server, params: Any) -> None:
    """The status is about the document that the user looks at."""
    uri = getattr(getattr(params, "textDocument", None), "uri", None)
    document = server.documents.get(uri) if isinstance(uri, str) else None
    if document is not None:
        server.at_hand = document.uri
        server.show_pause()
        cursor = getattr(params, "position", None)
        line, character = getattr(cursor, "line", None), getattr(cursor, "character", None)
        if is_integer(line) and is_integer(character):
            server.looked_at(document, Place(line, character), server.encoding)


# --- settings ---------------------------------------------------------------------------------


async def did_change_configuration(
    server: Server, params: types.DidChangeConfigurationParams
) -> None:
    """Editors either say what changed, or only that something did, and are asked."""
    pushed = section_of(params.settings)
    if pushed is None:
        await server.pull_configuration()
    else:
        await server.configure(pushed)


# --- files and folders ------------------------------------------------------------------------


async def did_close(_server: Server, _params: types.DidCloseTextDocumentParams) -> None:
    """The protocol does it all; without a handler pygls asks editors not to send documents."""


async def did_save(server: Server, params: types.DidSaveTextDocumentParams) -> None:
    if server.configuration.file_changed:
        await server.reload()
    if server.indexer is not None:
        from .folders import workspace_of

        path = path_of(params.text_document.uri)
        root = workspace_of(path, server.roots)
        if root:
            server.indexer.changed(root, path)


async def did_change_folders(server: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    removed = [path_of(folder.uri) for folder in params.event.removed]
    path_of.cache_clear()
    added = [path_of(folder.uri) for folder in params.event.added]
    async with server.moving:
        for path in removed:
            if server.indexer is not None:
                await server.indexer.unwatch(path)
        for path in added:
            if path and server.indexer is not None:
                server.indexer.watch(path)


def _warm_up(server: Server) -> None:
    """cattrs generates its converters at first use, 20 ms that no keystroke should pay."""
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": types.TEXT_DOCUMENT_INLINE_COMPLETION,
        "params": {
            "textDocument": {"uri": ""},
            "position": {"line": 0, "character": 0},
            "context": {"triggerKind": 2},
        },
    }
    server.protocol.structure_message(message)


def make_server() -> Server:
    server = Server()
    options = types.InlineCompletionOptions()
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, options)(inline_completion)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(did_close)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))(did_save)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(did_change_folders)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)
    server.feature(DID_SHOW)(did_show)
    server.feature(DID_PARTIALLY_ACCEPT)(did_partially_accept)
    server.feature(DID_FOCUS)(did_focus)
    server.command(ACCEPTED)(accepted)
    server.on_grown = functools.partial(_grew, server)
    return server
