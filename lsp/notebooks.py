"""Notebooks: the cells of one language, joined, are the text that a cell is completed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .documents import Document, Snapshot

_END = 10**9


@dataclass(slots=True)
class Notebook:
    """A notebook. `cells`: the URIs of its cells' documents, in order."""

    uri: str
    cells: list[str] = field(default_factory=list[str])


class Notebooks:
    """The open notebooks; `documents` has the texts of their cells, by URI."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents
        self._by_uri: dict[str, Notebook] = {}

    def open(self, uri: str, cells: list[str]) -> None:
        self._by_uri[uri] = Notebook(uri, cells)

    def splice(self, uri: str, start: int, n_deleted: int, cells: list[str]) -> None:
        """Replace `n_deleted` cells from `start` on."""
        notebook = self._by_uri.get(uri)
        if notebook is not None:
            notebook.cells[start : start + n_deleted] = cells

    def close(self, uri: str) -> None:
        self._by_uri.pop(uri, None)

    def cells_of(self, uri: str) -> list[str]:
        """URIs of a notebook's cells, in order."""
        notebook = self._by_uri.get(uri)
        return [] if notebook is None else notebook.cells

    def of(self, cell: str) -> Notebook | None:
        """The notebook of a cell; None for other documents."""
        return next((n for n in self._by_uri.values() if cell in n.cells), None)

    def joined(self, snapshot: Snapshot, max_prefix: int, max_suffix: int) -> Snapshot:
        """The snapshot with the cells of its language around its own, as far as they fit
        `max_prefix` and `max_suffix` characters. A document that is no cell stays as it is."""
        notebook = self.of(snapshot.uri)
        if notebook is None:
            return snapshot
        at = notebook.cells.index(snapshot.uri)
        prefix, suffix = snapshot.prefix, snapshot.suffix
        for uri in reversed(notebook.cells[:at]):
            text = self._text(uri, snapshot.language_id)
            if len(text) + len(prefix) > max_prefix:
                break
            prefix = text + prefix
        for uri in notebook.cells[at + 1 :]:
            text = self._text(uri, snapshot.language_id)
            if len(text) + len(suffix) > max_suffix:
                break
            if text:
                suffix = f"{suffix.removesuffix(chr(10))}\n{text}"
        return replace(snapshot, prefix=prefix, suffix=suffix)

    def _text(self, uri: str, language_id: str) -> str:
        document = self._documents.get(uri)
        if document is None or document.language_id != language_id:
            return ""
        text = document.lines(0, _END)
        return text if text.endswith("\n") or not text else f"{text}\n"
