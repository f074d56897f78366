"""notebookDocument/didOpen, didChange and didClose.

Plain functions: the cells are in step before the next message is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lsprotocol import types

from codespec import limits

from ..language_server import CodespecServer

if TYPE_CHECKING:
    from ..changes import Changed


def did_open(server: CodespecServer, params: types.DidOpenNotebookDocumentParams) -> None:
    for cell in params.cell_text_documents:
        server.editor_documents.open(cell)
    notebook = params.notebook_document
    if len(notebook.cells) <= limits.DOCUMENTS:
        server.notebooks.open(notebook.uri, [cell.document for cell in notebook.cells])


def did_change(server: CodespecServer, params: types.DidChangeNotebookDocumentParams) -> None:
    cells = params.change.cells
    if cells is None:
        return
    if cells.structure is not None:
        array = cells.structure.array
        uris = [cell.document for cell in array.cells or ()]
        server.notebooks.splice(params.notebook_document.uri, array.start, array.delete_count, uris)
        for opened in cells.structure.did_open or ():
            server.editor_documents.open(opened)
        for closed in cells.structure.did_close or ():
            server.editor_documents.close(closed.uri)
    for changed in cast("list[Changed]", cells.text_content or []):  # as `protocol` reads them
        server.editor_documents.change(changed)


def did_close(server: CodespecServer, params: types.DidCloseNotebookDocumentParams) -> None:
    server.notebooks.close(params.notebook_document.uri)
    for cell in params.cell_text_documents:
        server.editor_documents.close(cell.uri)
