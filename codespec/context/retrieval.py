"""Retrieval: text of other files for the prompt. Definitions of the names used near the cursor,
like parts of other open documents, recent edits.

Snippets are looked for when the cursor comes to another line, not with every character, so the
prompt's beginning and the KV cache of it survive typing.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from codespec.config import ContextSettings, Switch
from codespec.context.snippets import NOTHING_SHOWN, Rendered, Shelf, render
from codespec.documents.open_documents import OpenDocuments, OtherDocuments
from codespec.index.reader import WorkspaceIndex
from codespec.requests import CompletionRequest
from codespec.rules.secrets import without_secrets
from codespec.syntax.names import NameScanner, names_in
from codespec.syntax.symbols import Symbol
from codespec.syntax.trees import TreeCache
from codespec.types import ModelInfo, Snippet, Tokenizer

AUTO_MIN_PARAMS = 300_000_000
"""Size below which models are shown recent edits alone. The bundled one may gain a little by them,
at next to no cost; definitions gain it nothing, and like parts of other documents no more than
edits, for a third more time (bench/log). Larger ones have not been measured."""
MAX_SHELVES = 8
_LINES_BEFORE, _LINES_AFTER = 30, 8
_WINDOW_LINES, _WINDOW_STEP = 20, 10
_MIN_LIKENESS = 0.15
_MAX_DEFINITIONS, _MAX_PER_NAME, _MAX_WINDOWS, _MAX_EDITS = 8, 2, 2, 2
_IDENTIFIER = re.compile(r"[^\W\d]\w{2,}")


@dataclass(slots=True)
class _Page:
    """Snippets in the prompt of one document, and the line for which they were chosen: (lines
    before, lines after)."""

    shelf: Shelf = field(default_factory=Shelf)
    line: tuple[int, int] = (-1, -1)
    snippets: tuple[Snippet, ...] = ()


class Gatherer:
    """Chooses the snippets of prompts. One thread only."""

    def __init__(
        self,
        settings: ContextSettings,
        info: ModelInfo,
        tokenizer: Tokenizer,
        documents: OpenDocuments,
        index: Callable[[str], WorkspaceIndex | None],
        trees: TreeCache,
    ) -> None:
        """index: gives the index of a workspace folder, None where there is none (yet). trees:
        parsed documents."""
        self._settings = settings
        self._info = info
        self._tokenizer = tokenizer
        self._documents = documents
        self._index = index
        self._trees = trees
        self._scanner = NameScanner(())
        self._scanned: list[tuple[Symbol, ...]] = []
        self._pages: OrderedDict[tuple[str, str], _Page] = OrderedDict()
        self._windows: OrderedDict[str, tuple[str, list[_Window]]] = OrderedDict()
        self._rendered: Rendered = NOTHING_SHOWN
        self._rendered_for: tuple[tuple[Snippet, ...], str, str] = (), "", ""

    def snippets(
        self, request: CompletionRequest, n_most: int, name: str = ""
    ) -> tuple[Snippet, ...]:
        """Snippets of at most `n_most` tokens together for this request; those of the request
        before while the cursor stays in its line. Snippets that the client sends replace those
        found here.

        name: key of the document in `OpenDocuments`; default: its path.
        """
        if request.raw:
            return ()
        if request.extra:
            return self._given(request, n_most) if self._is_on(self._settings.buffers) else ()
        if not request.workspace or not request.path:
            return ()
        key = name or request.path, request.workspace
        page = self._pages.pop(key, None) or _Page()
        self._pages[key] = page
        if len(self._pages) > MAX_SHELVES:
            self._pages.popitem(last=False)
        line = (request.prefix.count("\n"), request.suffix.count("\n"))

        withdrawn = self._documents.withdrawn(page.snippets, request.workspace)
        if line != page.line or withdrawn:
            others = self._documents.others(request.path, request.workspace)
            wanted = list(self._wanted(request, others))
            unfit = self._documents.withdrawn(wanted, request.workspace)
            wanted = [snippet for snippet in wanted if snippet.path not in unfit]
            page.shelf.forget(withdrawn)
            page.line = line
            page.snippets = page.shelf.choose(wanted, self._n_tokens, n_most)
        return page.snippets

    def _given(self, request: CompletionRequest, n_most: int) -> tuple[Snippet, ...]:
        """The last of the client's snippets, as many as fit, without secrets."""
        room, chosen = n_most, list[Snippet]()
        for given in reversed(request.extra):
            snippet = replace(given, text=without_secrets(given.text))
            room -= self._n_tokens(snippet)
            if room < 0:
                break
            chosen.append(snippet)
        return tuple(reversed(chosen))

    def forget(self, path: str) -> None:
        """Forget the text of a file that was never saved."""
        self._windows.pop(path, None)
        for page in self._pages.values():
            if any(s.path == path for s in page.snippets):
                page.shelf.forget({path})
                page.line = (-1, -1)

    def render(self, snippets: tuple[Snippet, ...], request: CompletionRequest) -> Rendered:
        """See `context.snippets.render`."""
        asked = snippets, request.path, request.workspace
        if asked != self._rendered_for:  # with most keys nothing has changed
            rendered = render(snippets, self._info, self._tokenizer, *asked[1:])
            self._rendered, self._rendered_for = rendered, asked
        return self._rendered

    def _n_tokens(self, snippet: Snippet) -> int:
        # 16 more: estimate for path and markers.
        return len(self._tokenizer.encode(snippet.text)) + 16

    def _wanted(self, request: CompletionRequest, others: OtherDocuments) -> Iterator[Snippet]:
        before = "\n".join(request.prefix[-8000:].split("\n")[-_LINES_BEFORE:])
        after = "\n".join(request.suffix[:2000].split("\n")[:_LINES_AFTER])
        if self._is_on(self._settings.symbols):
            yield from self._definitions(request, others, after + "\n" + before)
        if self._is_on(self._settings.buffers):
            yield from self._like(others, before + after)
        if self._settings.edits != "off":
            yield from self._edits(others)

    def _is_on(self, switch: Switch) -> bool:
        return switch == "on" or (switch == "auto" and self._info.n_params >= AUTO_MIN_PARAMS)

    def _definitions(
        self, request: CompletionRequest, others: OtherDocuments, near: str
    ) -> Iterator[Snippet]:
        index = self._index(request.workspace)
        if index is None:
            return
        # Paths of an index hold no links; those of an editor may.
        spelled = {os.path.realpath(path): path for path in (*others.overridden, request.path)}
        buffers = self._trees.symbols(spelled.values())
        # Definitions in open documents may stand in no file yet.
        open_names = self._scanner_of([s for p, s in buffers.items() if p != request.path])
        names = dict.fromkeys([*open_names.find(near), *index.defined(names_in(near))])
        n = 0
        for name in names:
            places = self._places_of(name, index, request.workspace, spelled, buffers)
            if request.path in places or not 0 < len(places) <= _MAX_PER_NAME:
                continue  # defined in this document, or in too many
            for path, (signature, line) in places.items():
                yield Snippet("symbols", path, signature, f"defines {name}, in line {line}")
                n += 1
                if n == _MAX_DEFINITIONS:
                    return

    def _scanner_of(self, symbols: list[tuple[Symbol, ...]]) -> NameScanner:
        """The scanner for names that other documents define; it is kept, as they change less often
        than the cursor's line."""
        if symbols != self._scanned:
            self._scanned = symbols
            self._scanner = NameScanner({s.name for each in symbols for s in each})
        return self._scanner

    def _places_of(
        self,
        name: str,
        index: WorkspaceIndex,
        workspace: str,
        spelled: dict[str, str],
        buffers: dict[str, tuple[Symbol, ...]],
    ) -> dict[str, tuple[str, int]]:
        """Path -> (signature, line) of each definition of a name; open documents override their
        files.

        spelled: real paths of open documents -> paths as their editor writes them.
        buffers: symbols that open documents define.
        """
        places: dict[str, tuple[str, int]] = {}
        for d in index.definitions([name]):
            real = os.path.join(index.root, d.path)
            path = spelled.get(real) or os.path.join(workspace, d.path)
            if path not in buffers:
                places[path] = d.signature, d.first_line
        for path, symbols in buffers.items():
            for symbol in symbols:
                if symbol.name == name:
                    places[path] = symbol.signature, symbol.first_line
        return places

    def _like(self, others: OtherDocuments, near: str) -> Iterator[Snippet]:
        words = set(_IDENTIFIER.findall(near))
        scored: list[tuple[float, str, _Window]] = []
        for path, text in others.texts:
            for window in self._windows_of(path, text):
                both = len(words & window.words)
                likeness = both / max(1, len(words) + len(window.words) - both)
                if likeness >= _MIN_LIKENESS:
                    scored.append((likeness, path, window))
        scored.sort(key=lambda row: -row[0])
        taken: list[tuple[str, _Window]] = []
        for likeness, path, window in scored:
            if len(taken) == _MAX_WINDOWS:
                return
            if any(path == p and window.overlaps(w) for p, w in taken):
                continue
            taken.append((path, window))
            why = f"lines {window.first}-{window.last}: {likeness:.0%} of the names are the same"
            yield Snippet("buffers", path, window.text, why)

    def _windows_of(self, path: str, text: str) -> list[_Window]:
        known = self._windows.pop(path, None)
        if known is None or known[0] is not text:
            known = (text, list(_windows(text)))
        self._windows[path] = known
        if len(self._windows) > MAX_SHELVES:
            self._windows.popitem(last=False)
        return known[1]

    def _edits(self, others: OtherDocuments) -> Iterator[Snippet]:
        for path, tokens in others.lost[:_MAX_EDITS]:
            text = self._tokenizer.decode(tokens).decode("utf-8", "ignore").rstrip()
            if text.strip():
                yield Snippet("edits", path, text, "lines changed or deleted lately")


@dataclass(frozen=True, slots=True)
class _Window:
    """A range of lines of a document, from 1, both ends in it."""

    first: int
    last: int
    text: str
    words: frozenset[str]

    def overlaps(self, other: _Window) -> bool:
        return self.first <= other.last and other.first <= self.last


def _windows(text: str) -> Iterator[_Window]:
    lines = text.split("\n")
    for start in range(0, max(1, len(lines) - _WINDOW_STEP), _WINDOW_STEP):
        part = "\n".join(lines[start : start + _WINDOW_LINES]).strip("\n")
        last = min(start + _WINDOW_LINES, len(lines))
        yield _Window(start + 1, last, part, frozenset(_IDENTIFIER.findall(part)))
