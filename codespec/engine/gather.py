"""What the model is shown beside the file: definitions of the names used near the cursor, like
parts of other open documents, recent edits.

Snippets are looked for when the cursor comes to another line, not with every character, so the
prompt's beginning and the model's cache of it survive typing.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from codespec.config import ContextSettings, Switch
from codespec.context.snippets import NOTHING_SHOWN, Rendered, Shelf, render
from codespec.engine.documents import OpenDocuments
from codespec.index.names import NameScanner, names_in
from codespec.index.openfiles import Looks
from codespec.index.reader import WorkspaceIndex
from codespec.index.symbols import Symbol
from codespec.index.trees import Trees
from codespec.requests import CompletionRequest
from codespec.secrets import without
from codespec.types import ModelInfo, Snippet, Tokenizer

AUTO_MIN_PARAMS = 300_000_000
"""Models below this size are shown recent edits alone. The bundled one may gain a little by them,
at next to no cost; definitions gain it nothing, and like parts of other documents no more than
edits, for a third more time (bench/LOG.md). Larger ones have not been measured."""
MAX_SHELVES = 8
_LINES_BEFORE, _LINES_AFTER = 30, 8
_WINDOW_LINES, _WINDOW_STEP = 20, 10
_MIN_LIKENESS = 0.15
_MAX_DEFINITIONS, _MAX_PER_NAME, _MAX_WINDOWS, _MAX_EDITS = 8, 2, 2, 2
_IDENTIFIER = re.compile(r"[^\W\d]\w{2,}")


@dataclass(slots=True)
class _Page:
    """What one document's prompt shows, and at which line that was decided."""

    shelf: Shelf = field(default_factory=Shelf)
    line: tuple[int, int] = (-1, -1)
    snippets: tuple[Snippet, ...] = ()


class Gatherer:
    """One thread only."""

    def __init__(
        self,
        settings: ContextSettings,
        info: ModelInfo,
        tokenizer: Tokenizer,
        documents: OpenDocuments,
        index: Callable[[str], WorkspaceIndex | None],
        trees: Trees,
    ) -> None:
        """index: of a workspace folder, None where there is none (yet). trees: of the documents."""
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
        """Of `n_most` tokens, for this request; those of the one before while the cursor stays in
        its line. What the client knows of other documents takes the place of what is known here.
        name: what the document is known by, where that is not its path."""
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

        looks = Looks()

        def allowed(path: str) -> bool:
            return self._documents.may_show(path, request.workspace, looks)

        stale = {s.path for s in page.snippets if not self._documents.may_still_show(s)}
        for path in stale:
            page.shelf.forget(path)
        if line != page.line or stale or not all(allowed(s.path) for s in page.snippets):
            wanted = [s for s in self._wanted(request) if allowed(s.path)]
            page.line = line
            page.snippets = page.shelf.choose(wanted, self._n_tokens, n_most, allowed)
        return page.snippets

    def _given(self, request: CompletionRequest, n_most: int) -> tuple[Snippet, ...]:
        """The last of the client's snippets, as many as there is room for, without secrets."""
        room, chosen = n_most, list[Snippet]()
        for given in reversed(request.extra):
            snippet = replace(given, text=without(given.text))
            room -= self._n_tokens(snippet)
            if room < 0:
                break
            chosen.append(snippet)
        return tuple(reversed(chosen))

    def forget(self, path: str) -> None:
        """What was shown of this file was never saved."""
        self._windows.pop(path, None)
        for page in self._pages.values():
            if any(s.path == path for s in page.snippets):
                page.shelf.forget(path)
                page.line = (-1, -1)

    def render(self, snippets: tuple[Snippet, ...], request: CompletionRequest) -> Rendered:
        """See `context.snippets.render`."""
        asked = snippets, request.path, request.workspace
        if asked != self._rendered_for:  # with most keys nothing has changed
            rendered = render(snippets, self._info, self._tokenizer, *asked[1:])
            self._rendered, self._rendered_for = rendered, asked
        return self._rendered

    def _n_tokens(self, snippet: Snippet) -> int:
        # Path and markers cost some more.
        return len(self._tokenizer.encode(snippet.text)) + 16

    def _wanted(self, request: CompletionRequest) -> Iterator[Snippet]:
        before = "\n".join(request.prefix[-8000:].split("\n")[-_LINES_BEFORE:])
        after = "\n".join(request.suffix[:2000].split("\n")[:_LINES_AFTER])
        if self._is_on(self._settings.symbols):
            yield from self._definitions(request, after + "\n" + before)
        if self._is_on(self._settings.buffers):
            yield from self._like(request, before + after)
        if self._settings.edits != "off":
            yield from self._edits(request)

    def _is_on(self, switch: Switch) -> bool:
        return switch == "on" or (switch == "auto" and self._info.n_params >= AUTO_MIN_PARAMS)

    def _definitions(self, request: CompletionRequest, near: str) -> Iterator[Snippet]:
        index = self._index(request.workspace)
        if index is None:
            return
        open_now = self._documents.overridden(request.path, request.workspace)
        # An index has no links in its paths; an editor may.
        spelled = {os.path.realpath(path): path for path in (*open_now, request.path)}
        buffers = self._trees.symbols(spelled.values())
        # Those of open documents may stand in no file yet.
        open_names = self._scanner_of([s for p, s in buffers.items() if p != request.path])
        names = dict.fromkeys([*open_names.find(near), *index.defined(names_in(near))])
        n = 0
        for name in names:
            places = self._places_of(name, index, request.workspace, spelled, buffers)
            if request.path in places or not 0 < len(places) <= _MAX_PER_NAME:
                continue  # defined here, or anywhere
            for path, (signature, line) in places.items():
                yield Snippet("symbols", path, signature, f"defines {name}, in line {line}")
                n += 1
                if n == _MAX_DEFINITIONS:
                    return

    def _scanner_of(self, symbols: list[tuple[Symbol, ...]]) -> NameScanner:
        """For the names of other documents, which change less often than they are looked for."""
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
        """Path -> (signature, line) of each definition; open documents override their files.
        spelled: their real paths -> as their editor writes them. buffers: what they define."""
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

    def _like(self, request: CompletionRequest, near: str) -> Iterator[Snippet]:
        words = set(_IDENTIFIER.findall(near))
        scored: list[tuple[float, str, _Window]] = []
        for path, text in self._documents.texts(request.path, request.workspace):
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

    def _edits(self, request: CompletionRequest) -> Iterator[Snippet]:
        for path, tokens in self._documents.lost(request.workspace)[:_MAX_EDITS]:
            text = self._tokenizer.decode(tokens).decode("utf-8", "ignore").rstrip()
            if text.strip():
                yield Snippet("edits", path, text, "lines changed or deleted lately")


@dataclass(frozen=True, slots=True)
class _Window:
    """Some lines of a document, from 1."""

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
