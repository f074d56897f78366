"""textDocument/inlineCompletion: the suggestions at the cursor."""

from __future__ import annotations

from lsprotocol import types

from ..language_server import CodespecServer
from ..lsp_types import item_of, place_of, selection_of


async def inline_completion(
    server: CodespecServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """The offers of the session; an empty list for every reason to suggest nothing, which the trace
    tells."""
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
    # A document that changed during these waits has a newer request under way; one that was closed
    # gets no answer.
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
        selection=selection_of(context.selected_completion_info),
    )
    snapshot = ask.snapshot
    server.at_hand = document.uri
    answer = await server.session.suggest(ask)
    if server.at_hand == document.uri:  # still
        server.status.paused(answer.paused)
        server.status.ready(answer.is_ready)
        server.status.saving(server.session.eligibility.saves_power)
    place = f"{ask.path or document.uri}:{snapshot.place.line + 1}"
    server.trace(f"{place}: {answer.words}", answer)
    return types.InlineCompletionList(
        items=[item_of(snapshot, offer, server.encoding) for offer in answer.offers]
    )
