"""The documents that the editor has open, and those among them that are left alone.

A document is left alone where its text is not known here, or where there is no room for it. For all
others it is closed then, until the editor sends all of its text, or opens it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from codespec import limits

from .bounds import SKIPPED, TOO_LARGE, why_not_kept
from .changes import Change, Changed
from .documents import Document
from .notebooks import Notebooks
from .uris import path_of

if TYPE_CHECKING:
    from lsprotocol.types import TextDocumentItem

    from .positions import Encoding

OUT_OF_STEP = "a change of this document was not understood: close it and open it again"


class EditorDocuments:
    """The documents by URI, as the editor sees them now.

    left_alone: those without text, by URI, each with the reason for people.
    """

    def __init__(
        self,
        on_open: Callable[[Document], None],
        on_change: Callable[[Document, Sequence[Change]], None],
        on_close: Callable[[str], None],
        encoding: Callable[[], Encoding],
    ) -> None:
        """Args:
        on_open, on_change, on_close: told of each document that got, changed or lost its text.
        encoding: the units of columns, once they are negotiated.
        """
        self.by_uri: dict[str, Document] = {}
        self.left_alone: dict[str, tuple[Document, str]] = {}
        self.notebooks = Notebooks(self.by_uri)
        self._on_open = on_open
        self._on_change = on_change
        self._on_close = on_close
        self._encoding = encoding

    def open(self, opened: TextDocumentItem) -> None:
        """Keep a document or a cell, or leave it alone."""
        path_of.cache_clear()
        self.left_alone.pop(opened.uri, None)
        said = cast("object", opened.language_id)  # lsprotocol does not check it
        is_name = isinstance(said, str) and len(said) <= limits.NAME_CHARS
        language = opened.language_id if is_name else ""
        is_named = len(opened.uri) <= limits.URI_CHARS
        why = self._why_not_kept(opened.uri, opened.text) if is_named else TOO_LARGE
        text = "" if why else opened.text
        document = Document(opened.uri, language, opened.version, text)
        if why := why or document.why_alone:
            self._leave(document, why)
        else:
            self.by_uri[opened.uri] = document

    def opened(self, uri: str) -> None:
        """Tell that the document was opened, if it is kept."""
        if (document := self.by_uri.get(uri)) is not None:
            self._on_open(document)

    def close(self, uri: str) -> None:
        """Forget a document or a cell."""
        self.left_alone.pop(uri, None)
        self.by_uri.pop(uri, None)
        self._on_close(uri)

    def change(self, changed: Changed) -> None:
        """Apply the changes, or leave the document alone where it has no room for them."""
        uri, changes = changed.uri, changed.changes
        if uri in self.left_alone and any(change.start is None for change in changes):
            self.by_uri[uri], _ = self.left_alone.pop(uri)
            self._on_open(self.by_uri[uri])
        document = self.by_uri.get(uri)
        if document is None:
            return
        # A short line takes more memory than its text: lines are counted before they are kept.
        n_lines = sum(change.text.count("\n") + change.text.count("\r") for change in changes)
        if len(changes) > limits.CHANGES or n_lines > limits.DOCUMENT_LINES:
            self._leave(document, OUT_OF_STEP if len(changes) > limits.CHANGES else TOO_LARGE)
            return
        document.apply(changes, self._encoding())
        # Each state has a number of its own, also where the editor does not count.
        following = (document.version + 1) % limits.INTEGER
        document.version = following if changed.version is None else changed.version
        if why := document.why_alone or self._why_too_large(document):
            self._leave(document, why)
        else:
            self._on_change(document, changes)

    def lose(self, params: Any, is_new: bool = False) -> None:
        """Leave the document of a message alone whose changes or text could not be read: every
        later change would be applied to a wrong text. `params`: as they came, of any form."""
        try:
            uri, language = (params["textDocument"].get(key) for key in ("uri", "languageId"))
            document = self.by_uri.get(uri)
            why = TOO_LARGE if SKIPPED in params else OUT_OF_STEP
        except (KeyError, TypeError, AttributeError):
            return
        if is_new and isinstance(uri, str):
            document = Document(uri, language if isinstance(language, str) else "", 0, "")
        if document is not None:
            self._leave(document, why)

    def lose_cells(self, params: Any) -> None:
        """Leave the cells of a notebook alone, a change of which could not be read. `params`: as
        they came, of any form."""
        try:
            cells = self.notebooks.cells_of(params["notebookDocument"]["uri"])
        except (KeyError, TypeError):
            return
        for document in [self.by_uri[cell] for cell in cells if cell in self.by_uri]:
            self._leave(document, OUT_OF_STEP)

    def lose_all(self) -> None:
        """Leave every document alone: a message was not read that may have changed any."""
        for document in list(self.by_uri.values()):
            self._leave(document, OUT_OF_STEP)

    def _leave(self, document: Document, why: str) -> None:
        """Keep the document without its text; keep nothing of one that has no room."""
        self.by_uri.pop(document.uri, None)
        empty = Document(document.uri, document.language_id, 0, "")
        if len(self.left_alone) < limits.DOCUMENTS and len(document.uri) <= limits.URI_CHARS:
            self.left_alone[document.uri] = empty, why
        self._on_close(document.uri)

    def _why_not_kept(self, uri: str, text: str) -> str:
        others = [document for other, document in self.by_uri.items() if other != uri]
        n_lines = text.count("\n") + text.count("\r")
        return why_not_kept(len(text), n_lines, sum(d.n_chars for d in others), len(others))

    def _why_too_large(self, document: Document) -> str:
        """The reason to leave a document alone after a change; "" for none."""
        n_open = sum(d.n_chars for d in self.by_uri.values()) - document.n_chars
        return why_not_kept(document.n_chars, document.n_lines, n_open, 0)
