"""textDocument/didOpen, didChange, didClose and didSave.

The first three are plain functions: a document is in step before the next message is read.
"""

from __future__ import annotations

from lsprotocol import types

from ..changes import Changed
from ..language_server import CodespecServer
from .next_edits import look_ahead


def did_open(server: CodespecServer, params: types.DidOpenTextDocumentParams) -> None:
    server.editor_documents.open(params.text_document)
    server.editor_documents.opened(params.text_document.uri)


def did_change(server: CodespecServer, params: Changed) -> None:
    """`params`: as `protocol` reads them, faster than pygls does."""
    server.editor_documents.change(params)
    look_ahead(server, params.uri)


def did_close(server: CodespecServer, params: types.DidCloseTextDocumentParams) -> None:
    server.editor_documents.close(params.text_document.uri)


async def did_save(server: CodespecServer, params: types.DidSaveTextDocumentParams) -> None:
    """Tell the indexer: not every file system reports changes."""
    if server.configuration.file_changed:
        await server.reload()
    if server.indexer is not None:
        path, root = server.place_of(params.text_document.uri)
        if root:
            server.indexer.changed(root, path)
