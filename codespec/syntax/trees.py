"""Syntax trees of open documents, kept in step with their text, and trees of the text that a
suggestion would give. An edit costs half a millisecond in a document of 100 kB, the first parse
ten.

Parsing may kill the process, see `selection`, and does so before it takes much memory: use this
only where that is allowed.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tree_sitter import Node, Tree

from codespec.languages.registry import TEXT, parsed_as
from codespec.rules.secrets import find, masked
from codespec.syntax.far_text import bracket_balance, without_far
from codespec.syntax.parse import syntax_tree
from codespec.syntax.parse_limits import MAX_BYTES, is_safe_to_parse
from codespec.syntax.symbols import Symbol, find_symbols
from codespec.syntax.tree_edit import TreeEdit, difference, edited
from codespec.system.processes import memory_limited

MAX_MEMORY_BYTES = 512 << 20
"""Memory limit of a parse; the largest text takes about a tenth. 6 kB of C can be made to take
gigabytes. At half of it a parse is given up, if its grammar asks in time."""
_STEPS = 64
"""Memory is checked at one in so many of the parser's questions whether to go on."""
MAX_TREES = 8
_MAX_ERRORS = 100
_FAR_BYTES = 4096
_MAX_KNOWN = 4

NEAR_BYTES = 1024
"""Bytes after the cursor that are parsed in any case."""


@dataclass(frozen=True, slots=True)
class _Parsed:
    text: bytes
    tree: Tree


class ParsedDocument:
    """A text and, once somebody asks for it, its tree. Not thread-safe.

    Trees are made from the last text without errors that was seen, which a half-typed line does not
    spoil: an unclosed bracket there would have everything below it parsed twice, now and once it is
    closed.
    """

    def __init__(self, language: str) -> None:
        """language: one with a grammar, not `TEXT`."""
        self.language = language
        self.text = b""
        self._base: _Parsed | None = None
        self._tree: Tree | None = None
        self._is_safe = False
        self._symbols: tuple[Symbol, ...] | None = None
        self._known: list[_Parsed] = []
        self._change: TreeEdit | None = None

    @property
    def can_be_parsed(self) -> bool:
        """False if the text is too large or too deep, or its parse took too long."""
        return self._is_safe and self._base is not None

    @property
    def root(self) -> Node | None:
        """The tree's root; None if the text cannot be parsed. Costs a parse if there was none of
        this text."""
        return self.read()

    def read(self, interrupted: Callable[[], bool] = lambda: False) -> Node | None:
        """The tree's root, as `root`; also None if `interrupted` returns True before it is
        known."""
        if self._tree is None and self._is_safe:
            self._tree = self._parse(self.text, self._changed(), interrupted)
        return self._tree.root_node if self._tree is not None else None

    def update(self, text: bytes) -> None:
        """Switch to this text; costs its parse the first time, and after large changes."""
        if text == self.text and self.can_be_parsed:
            return
        self.text, self._tree, self._symbols = text, None, None
        self._change = None
        self._is_safe = is_safe_to_parse(self.language, text)
        if self._is_safe and (self._base is None or self._changed().n_bytes > _FAR_BYTES):
            self._tree = self._parse(text, self._changed())
            self._is_safe = self._tree is not None  # nobody is to try the same text once more

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Definitions in the text, in the order of their places, without secrets in signatures.
        About 4 ms in a document of 100 kB whose text is new."""
        if self._symbols is None:
            root = self.root
            text = masked(self.text, find(self.text))
            self._symbols = find_symbols(self.language, root, text) if root is not None else ()
        return self._symbols

    def node_over(self, start: int, end: int) -> Node | None:
        """The innermost node over bytes start..end - 1, as far as the text up to `end` tells:
        without a parse if that text is the one of the last tree without errors. The node may end
        elsewhere by now."""
        base = self._base
        if base is not None and not base.tree.root_node.has_error:
            same = end <= self._changed().start
            root = base.tree.root_node if same else self.root
        else:
            root = self.root
        return root.descendant_for_byte_range(start, end) if root is not None else None

    def with_change(
        self, start: int, end: int, new: bytes, interrupted: Callable[[], bool] = lambda: False
    ) -> Node | None:
        """The root of the text with `new` in the place of bytes start..end - 1; None as of `read`.
        The document stays as it is. The last few results are kept: several rules ask for the same
        text, and the text without the line that is typed in stays the same with each key."""
        if not self.can_be_parsed or not is_safe_to_parse(self.language, new):
            return None
        text = self.text[:start] + new + self.text[end:]
        at = next((i for i, known in enumerate(self._known) if known.text == text), None)
        if at is not None:
            self._known.append(self._known.pop(at))
        else:
            tree = self._parse(text, self._changed().then(start, end, new), interrupted)
            if tree is None:
                return None
            if self._base is not None and self._base.tree is tree:
                self._change = TreeEdit(start, start + len(new), end)
            self._known = [*self._known, _Parsed(text, tree)][-_MAX_KNOWN:]
        return self._known[-1].tree.root_node

    @property
    def tried(self) -> bytes:
        """The text that `with_change` gave the tree of last."""
        return self._known[-1].text

    def changed(self, start: int, end: int, new: bytes) -> ParsedDocument:
        """A copy of the document with `new` in the place of bytes start..end - 1."""
        return self._from(self._base, self.text[:start] + new + self.text[end:])

    def _from(self, base: _Parsed | None, text: bytes) -> ParsedDocument:
        """A document of this text, parsed as a change of the tree at hand, which leaves everything
        before the change as it is."""
        other = ParsedDocument(self.language)
        other._base = base
        other.update(text)
        return other

    def _changed(self) -> TreeEdit:
        """The change from the text of the tree at hand to the text of now."""
        if self._change is None:
            base = self._base.text if self._base is not None else b""
            self._change = difference(base, self.text)
        return self._change

    def near(self, at: int) -> Near | None:
        """The document without the text far after byte `at`; None if it cannot be parsed."""
        if not self._is_safe:
            return None
        text = self.text
        limit = text.find(b"\n", at + NEAR_BYTES) + 1 or len(text)
        tail = text[limit:]
        parsed = self._base
        if parsed is None or not parsed.text.endswith(tail):
            if self.root is None or self._tree is None:
                return None
            parsed = _Parsed(text, self._tree)
        begin = len(parsed.text) - len(tail)
        kept = without_far(parsed.tree.root_node, parsed.text, begin)
        document = self._from(parsed, parsed.text[:begin] + kept)
        root = document.root
        n_cut = n_errors(parsed.tree.root_node) - n_errors(root) if root is not None else -1
        # The cut text, with an error in it, may hold the partner of a bracket at the cursor.
        if n_cut < 0 or (n_cut > 0 and bracket_balance(kept) != bracket_balance(tail)):
            kept, document._base, document._change = tail, parsed, None
        document.update(text[:limit] + kept)
        return Near(document, limit - at, tail, kept)

    def _parse(
        self, text: bytes, change: TreeEdit, interrupted: Callable[[], bool] = lambda: False
    ) -> Tree | None:
        """change: from the text of the tree at hand to this one."""
        base = self._base
        old = edited(base.tree, base.text, text, change) if base is not None else None
        steps = itertools.count(1)
        with memory_limited(MAX_MEMORY_BYTES) as is_half_taken:
            tree = syntax_tree(
                self.language,
                text,
                old,
                lambda: interrupted() or (next(steps) % _STEPS == 0 and is_half_taken()),
            )
        if tree is not None and (
            base is None
            or not tree.root_node.has_error
            or base.tree.root_node.has_error
            # A change so large that parsing it each time would cost.
            or change.n_bytes > _FAR_BYTES
        ):
            self._base, self._change = _Parsed(text, tree), None
        return tree


@dataclass(frozen=True, slots=True)
class Near:
    """A document up to some lines after the cursor, with the ends of the blocks around them.

    With an error tree-sitter parses everything that follows anew, up to 30 ms in 70 kB, and most
    texts that suggestions are judged by hold one. Text before the cursor costs nothing: it stays as
    it is.

    n_near: bytes of those lines. tail: the text after them. kept: the part of `tail` in `document`.
    """

    document: ParsedDocument
    n_near: int
    tail: bytes
    kept: bytes

    def update(self, text: bytes, at: int) -> bool:
        """Switch to this text, with the cursor at byte `at`. Returns: False if that is another
        place."""
        end = len(text) - len(self.tail)
        fewest = NEAR_BYTES // 4 if self.tail else 0
        if not fewest <= end - at <= self.n_near + NEAR_BYTES or not text.endswith(self.tail):
            return False
        self.document.update(text[:end] + self.kept)
        return True


@dataclass(slots=True)
class _Known:
    """A document that was asked about. whole: its text when somebody last asked for all of it.
    text: its text now."""

    whole: ParsedDocument
    text: bytes = b""
    near: Near | None = None


class TreeCache:
    """Trees of the documents asked about last, by path or other name. Not thread-safe."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, _Known] = OrderedDict()

    def update(
        self, path: str, language_id: str, text: bytes, at: int | None = None
    ) -> ParsedDocument | None:
        """The document with this text; None for a language without a grammar.

        language_id: LSP's; decides the language if the path does not, see `parsed_as`.
        at: the cursor's byte. If given, the text far after the cursor may be left out, see `Near`.
        """
        language = parsed_as(path, language_id, text)
        if language == TEXT or len(text) > MAX_BYTES:
            return None
        known = self._documents.pop(path, None)
        if known is None or known.whole.language != language:
            known = _Known(ParsedDocument(language))
        self._documents[path] = known
        if len(self._documents) > MAX_TREES:
            self._documents.popitem(last=False)
        known.text = text
        if at is not None and known.near is not None and known.near.update(text, at):
            document = known.near.document
        else:
            known.whole.update(text)
            known.near = known.whole.near(at) if at is not None else None
            document = known.near.document if known.near is not None else known.whole
        return document if document.can_be_parsed else None

    def symbols(self, paths: Collection[str]) -> dict[str, tuple[Symbol, ...]]:
        """Definitions in those of these documents that are known here, by path."""
        found: dict[str, tuple[Symbol, ...]] = {}
        for path in paths:
            known = self._documents.get(path)
            if known is not None:
                known.whole.update(known.text)
                found[path] = known.whole.symbols
        return found


def n_errors(root: Node) -> int:
    """Number of places where the text does not follow its grammar; counting stops at some
    hundred."""
    return len(error_spans(root))


def error_spans(root: Node) -> list[tuple[int, int]]:
    """(first byte, byte after the last) of places where the text does not follow its grammar, at
    most some hundred, in no order."""
    spans: list[tuple[int, int]] = []
    stack = [root] if root.has_error else []
    while stack and len(spans) < _MAX_ERRORS:
        node = stack.pop()
        if node.is_error or node.is_missing:
            spans.append((node.start_byte, node.end_byte))
        stack += [child for child in node.children if child.has_error]
    return spans
