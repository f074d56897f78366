"""textDocument/completionGrew, a notification to the editor: more of the suggestion that it shows.

Only editors with the experimental capability `growingCompletion` get it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lsprotocol import types

from ..lsp_types import item_of

if TYPE_CHECKING:
    from ..language_server import CodespecServer
    from ..suggestions.answers import Ask, Offer

GREW = "textDocument/completionGrew"


def tell_grown(server: CodespecServer, ask: Ask, answered: str, offer: Offer) -> None:
    """`answered`: the id of the offer in the answer, as in the command of that item. `offer`: what
    it is by now."""
    grown = {
        "textDocument": types.TextDocumentIdentifier(ask.snapshot.uri),
        "id": answered,
        "item": item_of(ask.snapshot, offer, server.encoding),
    }
    with contextlib.suppress(BrokenPipeError):
        server.protocol.notify(GREW, grown)
