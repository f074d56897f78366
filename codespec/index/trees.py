"""Syntax trees of open documents, kept in step with their text, and trees of what a suggestion
would make of them. An edit costs about a millisecond in a document of 100 kB, the first parse ten.

Parsing may kill the process, see `parse`: use this only where that is allowed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection

import numpy as np
from tree_sitter import Node, Point, Tree

from codespec.index.languages import TEXT, language_of, language_of_id, syntax_tree
from codespec.index.symbols import Symbol, find_symbols

MAX_BYTES = 1_000_000
MAX_DEPTH = 2_000
"""Brackets within brackets: some grammars overflow the stack at some ten thousand."""
MAX_TREES = 8
_MAX_ERRORS = 100

_DEPTH = np.zeros(256, np.int8)
_DEPTH[list(b"([{")] = 1
_DEPTH[list(b")]}")] = -1


class ParsedDocument:
    """A text and its tree. Not thread-safe."""

    def __init__(self, language: str) -> None:
        """language: not `TEXT`."""
        self.language = language
        self.text = b""
        self._tree: Tree | None = None
        self._symbols: tuple[Symbol, ...] | None = None

    @property
    def root(self) -> Node | None:
        """None where the text is too large or too deep, or takes too long."""
        return self._tree.root_node if self._tree is not None else None

    def update(self, text: bytes) -> None:
        """Go over to this text; costs its parse the first time, the change's later."""
        if text == self.text and self._tree is not None:
            return
        self._symbols = None
        if not _is_tame(text):
            self._tree = None
        elif self._tree is None:
            self._tree = syntax_tree(self.language, text)
        else:
            start, old_end, new_end = _difference(self.text, text)
            self._tree = self._changed(text, start, old_end, new_end)
        self.text = text

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """What the text defines, in the order of its places. About 2 ms in a document of 100 kB
        whose text is new."""
        if self._symbols is None:
            root = self.root
            found = find_symbols(self.language, root, self.text) if root is not None else ()
            self._symbols = found
        return self._symbols

    def with_change(self, start: int, end: int, new: bytes) -> Node | None:
        """The root of what the text would be with `new` in the place of bytes start..end - 1.
        The document stays as it is."""
        text = self.text[:start] + new + self.text[end:]
        if self._tree is None or not _is_tame(new):
            return None
        tree = self._changed(text, start, end, start + len(new))
        return tree.root_node if tree is not None else None

    def _changed(self, text: bytes, start: int, old_end: int, new_end: int) -> Tree | None:
        assert self._tree is not None
        old = self._tree.copy()
        old.edit(
            start,
            old_end,
            new_end,
            _point(self.text, start),
            _point(self.text, old_end),
            _point(text, new_end),
        )
        return syntax_tree(self.language, text, old)


class Trees:
    """Of the documents asked about last, by path or other name. Not thread-safe."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, ParsedDocument] = OrderedDict()

    def update(self, path: str, language_id: str, text: bytes) -> ParsedDocument | None:
        """The document as it is now; None for a language without a grammar.

        language_id: as of LSP; says the language where the path does not.
        """
        language = language_of(path)
        if language == TEXT:
            language = language_of_id(language_id)
        if language == TEXT or len(text) > MAX_BYTES:
            return None
        document = self._documents.pop(path, None)
        if document is None or document.language != language:
            document = ParsedDocument(language)
        self._documents[path] = document
        if len(self._documents) > MAX_TREES:
            self._documents.popitem(last=False)
        document.update(text)
        return document if document.root is not None else None

    def definitions(self, name: str, paths: Collection[str]) -> dict[str, list[Symbol]]:
        """Of those of these documents that are known here, the places that define a name."""
        known = {path: self._documents[path] for path in paths if path in self._documents}
        return {path: [s for s in d.symbols if s.name == name] for path, d in known.items()}


def n_errors(root: Node) -> int:
    """Places where the text does not follow its grammar, at most some hundred are counted."""
    if not root.has_error:
        return 0
    n, stack = 0, [root]
    while stack and n < _MAX_ERRORS:
        node = stack.pop()
        if node.is_error or node.is_missing:
            n += 1
        stack += [child for child in node.children if child.has_error]
    return n


def _is_tame(text: bytes) -> bool:
    if len(text) <= MAX_DEPTH:
        return True
    depths = np.cumsum(_DEPTH[np.frombuffer(text, np.uint8)], dtype=np.int32)
    return len(text) <= MAX_BYTES and int(depths.max() - min(0, int(depths.min()))) <= MAX_DEPTH


def _point(text: bytes, offset: int) -> Point:
    return Point(text.count(b"\n", 0, offset), offset - (text.rfind(b"\n", 0, offset) + 1))


def _difference(old: bytes, new: bytes) -> tuple[int, int, int]:
    """(start, end in old, end in new) of what differs."""
    n = min(len(old), len(new))
    a, b = np.frombuffer(old, np.uint8), np.frombuffer(new, np.uint8)
    differs = np.flatnonzero(a[:n] != b[:n])
    start = int(differs[0]) if len(differs) else n
    n -= start
    if n == 0:
        return start, len(old), len(new)
    differs = np.flatnonzero(a[len(old) - n :] != b[len(new) - n :])
    n_tail = n - 1 - int(differs[-1]) if len(differs) else n
    return start, len(old) - n_tail, len(new) - n_tail
