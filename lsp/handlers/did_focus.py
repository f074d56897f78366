"""textDocument/didFocus, which editors know from other completion servers: the user looks at this
document, with the cursor at `position`, if the editor says so."""

from __future__ import annotations

from typing import Any

from ..bounds import is_integer
from ..language_server import CodespecServer
from ..positions import DocumentPlace

DID_FOCUS = "textDocument/didFocus"


async def did_focus(server: CodespecServer, params: Any) -> None:
    """Show the status of this document, and have the cursor's prompt read ahead."""
    uri = getattr(getattr(params, "textDocument", None), "uri", None)
    document = server.documents.get(uri) if isinstance(uri, str) else None
    if document is not None:
        server.at_hand = document.uri
        server.show_pause()
        cursor = getattr(params, "position", None)
        line, character = getattr(cursor, "line", None), getattr(cursor, "character", None)
        if is_integer(line) and is_integer(character):
            server.looked_at(document, DocumentPlace(line, character), server.encoding)
