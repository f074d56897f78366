"""workspace/executeCommand codespec.accepted, textDocument/didShowCompletion and
textDocument/didPartiallyAcceptCompletion: by these an editor tells what became of an item.

The command is the item's own; editors know the notifications from other completion servers."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from ..bounds import is_integer
from ..language_server import CodespecServer
from ..lsp_types import ACCEPTED, offer_id_of

DID_SHOW = "textDocument/didShowCompletion"
DID_PARTIALLY_ACCEPT = "textDocument/didPartiallyAcceptCompletion"


async def accepted(server: CodespecServer, *arguments: object) -> None:
    """All of an item was accepted; its offer's id is the only argument."""
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise JsonRpcInvalidParams(f"{ACCEPTED} takes the id of an item")
    if server.session is not None:
        server.session.accepted(arguments[0])


async def did_show(server: CodespecServer, params: Any) -> None:
    """The user sees the item."""
    offer_id = offer_id_of(params)
    if server.session is not None and offer_id:
        server.session.shown(offer_id)


async def did_partially_accept(server: CodespecServer, params: Any) -> None:
    """The first `acceptedLength` UTF-16 units of the item are accepted by now."""
    offer_id = offer_id_of(params)
    n_units = getattr(params, "acceptedLength", None)
    if server.session is not None and offer_id and is_integer(n_units):
        server.session.partially_accepted(offer_id, n_units)
