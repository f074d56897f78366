"""Syntax trees of open documents, kept in step with their text, and trees of what a suggestion
would make of them. An edit costs half a millisecond in a document of 100 kB, the first parse ten.

Parsing may kill the process, see `parse`, and does so before it takes much memory: use this only
where that is allowed.
"""

from __future__ import annotations

import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tree_sitter import Node, Point, Tree

from codespec.index.languages import TEXT, language_of, language_of_id, syntax_tree
from codespec.index.symbols import Symbol, find_symbols
from codespec.index.tame import MAX_BYTES, is_tame
from codespec.index.text import common_prefix, common_suffix
from codespec.processes import memory_limited
from codespec.secrets import find, masked

MAX_MEMORY_BYTES = 512 << 20
"""Most memory of a parse; the largest text takes about a tenth. 6 kB of C can be made to take
gigabytes. At half of it a parse is given up, where its grammar asks in time."""
_STEPS = 64
"""Memory is looked at with one in so many of the questions whether to go on."""
MAX_TREES = 8
_MAX_ERRORS = 100
_FAR_BYTES = 4096
_MAX_BLANK = 512
_MAX_KNOWN = 4
_START = Point(0, 0)

NEAR_BYTES = 1024
"""After the cursor, so much is parsed in any case."""
# Nodes whose children stand one below the other, and can do without the last of them.
_LISTS = re.compile(
    r"(?:^|_)(?:block|body|module|program|source_file|translation_unit|compilation_unit|chunk"
    r"|declaration_list|compound_statement|body_statement|statements)$"
)

_PAIRS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"/*", b"*/"))


@dataclass(frozen=True, slots=True)
class _Parsed:
    text: bytes
    tree: Tree


@dataclass(frozen=True, slots=True)
class _Change:
    """Bytes start..old_end - 1 of a text became bytes start..new_end - 1 of another."""

    start: int
    old_end: int
    new_end: int

    @property
    def n_bytes(self) -> int:
        return max(self.old_end, self.new_end) - self.start

    def then(self, start: int, end: int, new: bytes) -> _Change:
        """And then bytes start..end - 1 of that became `new`."""
        first, last = min(self.start, start), max(self.new_end, end)
        old_end = self.old_end + last - self.new_end
        return _Change(first, old_end, last - (end - start) + len(new))


class ParsedDocument:
    """A text and, once somebody asks for it, its tree. Not thread-safe.

    Trees are made from the last text without errors that was seen, which a half-typed line does
    not spoil: an unclosed bracket there would have everything below it parsed twice, now and once
    it is closed.
    """

    def __init__(self, language: str) -> None:
        """language: not `TEXT`."""
        self.language = language
        self.text = b""
        self._base: _Parsed | None = None
        self._tree: Tree | None = None
        self._is_tame = False
        self._symbols: tuple[Symbol, ...] | None = None
        self._known: list[_Parsed] = []
        self._change: _Change | None = None

    @property
    def can_be_parsed(self) -> bool:
        """Not so where the text is too large or too deep, or takes too long."""
        return self._is_tame and self._base is not None

    @property
    def root(self) -> Node | None:
        """None where the text cannot be parsed. Costs a parse if there was none of this text."""
        return self.read()

    def read(self, interrupted: Callable[[], bool] = lambda: False) -> Node | None:
        """`root`; None, too, where `interrupted` turns true before it is known."""
        if self._tree is None and self._is_tame:
            self._tree = self._parse(self.text, self._changed(), interrupted)
        return self._tree.root_node if self._tree is not None else None

    def update(self, text: bytes) -> None:
        """Go over to this text; costs its parse the first time, and after large changes."""
        if text == self.text and self.can_be_parsed:
            return
        self.text, self._tree, self._symbols = text, None, None
        self._change = None
        self._is_tame = is_tame(self.language, text)
        if self._is_tame and (self._base is None or self._changed().n_bytes > _FAR_BYTES):
            self._tree = self._parse(text, self._changed())
            self._is_tame = self._tree is not None  # nobody is to try the same text once more

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Definitions in the text, in the order of its places, without secrets in signatures. About
        4 ms in a document of 100 kB whose text is new."""
        if self._symbols is None:
            root = self.root
            text = masked(self.text, find(self.text))
            self._symbols = find_symbols(self.language, root, text) if root is not None else ()
        return self._symbols

    def node_over(self, start: int, end: int) -> Node | None:
        """The innermost node over bytes start..end - 1, as far as text up to `end` tells: without a
        parse where that is as it was when there were no errors. Its end may be another by now."""
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
        """The root of what the text would be with `new` in the place of bytes start..end - 1; None
        as of `read`. The document stays as it is. The last few are kept: several judges ask for the
        same text, and what a line leaves without itself is the same with each key typed in it."""
        if not self.can_be_parsed or not is_tame(self.language, new):
            return None
        text = self.text[:start] + new + self.text[end:]
        at = next((i for i, known in enumerate(self._known) if known.text == text), None)
        if at is not None:
            self._known.append(self._known.pop(at))
        else:
            tree = self._parse(text, self._changed().then(start, end, new), interrupted)
            if tree is None:
                return None
            self._known = [*self._known, _Parsed(text, tree)][-_MAX_KNOWN:]
        return self._known[-1].tree.root_node

    def changed(self, start: int, end: int, new: bytes) -> ParsedDocument:
        """Another document: this one with `new` in the place of bytes start..end - 1."""
        return self._from(self._base, self.text[:start] + new + self.text[end:])

    def _from(self, base: _Parsed | None, text: bytes) -> ParsedDocument:
        """A document of this text, parsed as a change of what is parsed already, which leaves what
        stands before the change as it is."""
        other = ParsedDocument(self.language)
        other._base = base
        other.update(text)
        return other

    def _changed(self) -> _Change:
        """What became of the base."""
        if self._change is None:
            base = self._base.text if self._base is not None else b""
            self._change = _difference(base, self.text)
        return self._change

    def near(self, at: int) -> Near | None:
        """The document without what stands far after byte `at`; None where it cannot be parsed."""
        if not self._is_tame:
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
        kept = _without_far(parsed.tree.root_node, parsed.text, begin)
        document = self._from(parsed, parsed.text[:begin] + kept)
        root = document.root
        n_cut = n_errors(parsed.tree.root_node) - n_errors(root) if root is not None else -1
        # What is cut with an error may hold the other bracket of one that is missing at the cursor.
        if n_cut < 0 or (n_cut > 0 and _balance(kept) != _balance(tail)):
            kept, document._base, document._change = tail, parsed, None
        document.update(text[:limit] + kept)
        return Near(document, limit - at, tail, kept)

    def _parse(
        self, text: bytes, change: _Change, interrupted: Callable[[], bool] = lambda: False
    ) -> Tree | None:
        """change: what became of the base."""
        base = self._base
        old = _edited(base, text, change) if base is not None else None
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
            # So much changed that parsing it each time would cost.
            or change.n_bytes > _FAR_BYTES
        ):
            self._base, self._change = _Parsed(text, tree), None
        return tree


@dataclass(frozen=True, slots=True)
class Near:
    """A document up to some lines after the cursor, with what closes the blocks around them.

    An error has tree-sitter parse all that follows anew, up to 30 ms in 70 kB, and most of what
    judges ask about holds one. What stands before the cursor costs nothing: it stays as it is.

    n_near: bytes of those lines. tail: the text after them. kept: what `document` has of it.
    """

    document: ParsedDocument
    n_near: int
    tail: bytes
    kept: bytes

    def update(self, text: bytes, at: int) -> bool:
        """Go over to this text, with the cursor at byte `at`. False where that is another place."""
        end = len(text) - len(self.tail)
        fewest = NEAR_BYTES // 4 if self.tail else 0
        if not fewest <= end - at <= self.n_near + NEAR_BYTES or not text.endswith(self.tail):
            return False
        self.document.update(text[:end] + self.kept)
        return True


@dataclass(slots=True)
class _Known:
    """whole: as it was when somebody last asked for all of it. text: as it is now."""

    whole: ParsedDocument
    text: bytes = b""
    near: Near | None = None


class Trees:
    """Of the documents asked about last, by path or other name. Not thread-safe."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, _Known] = OrderedDict()

    def update(
        self, path: str, language_id: str, text: bytes, at: int | None = None
    ) -> ParsedDocument | None:
        """The document as it is now; None for a language without a grammar.

        language_id: as of LSP; says the language where the path does not.
        at: the cursor's byte. Then, of what stands after the cursor, at least the next lines.
        """
        language = language_of(path)
        said = language_of_id(language_id)
        if language == TEXT or (language, said) == ("c", "cpp"):  # a header of either
            language = said
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
        """What those of these documents that are known here define."""
        found: dict[str, tuple[Symbol, ...]] = {}
        for path in paths:
            known = self._documents.get(path)
            if known is not None:
                known.whole.update(known.text)
                found[path] = known.whole.symbols
        return found


def n_errors(root: Node) -> int:
    """Places where the text does not follow its grammar, at most some hundred are counted."""
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


def _edited(base: _Parsed, text: bytes, change: _Change) -> Tree:
    """The tree of `base`, told what is other in `text`.

    White space after the change counts as changed: ends of lines and blocks have no width, and
    stand where the change ends. tree-sitter passes over the whole statement that begins there when
    it looks for them, mostly over all that follows, and parses it again.
    """
    start = change.start
    n_blank = _n_blank(text, change.new_end)
    old_end, new_end = change.old_end + n_blank, change.new_end + n_blank
    at = _point(text, start)
    tree = base.tree.copy()
    ends = _point(base.text, old_end, at, start), _point(text, new_end, at, start)
    tree.edit(start, old_end, new_end, at, *ends)
    return tree


def _without_far(root: Node, text: bytes, limit: int) -> bytes:
    """What of text[limit:] is left without the statements that begin there, whole lines each, in
    the blocks that reach over `limit` and those that begin behind it."""
    cuts: list[tuple[int, int]] = []
    nodes = [root]
    while nodes:
        node = nodes.pop()
        is_list = _LISTS.search(node.type) is not None
        runs: list[list[Node]] = [[]]
        for n, child in enumerate(node.children):
            if n and is_list and child.start_byte >= limit:
                if text[child.start_byte : child.end_byte] == b"end":
                    runs.append([])  # one too many, which Ruby's grammar takes for a name
                elif child.is_named and not child.is_error:
                    runs[-1].append(child)
            elif child.end_byte > limit and (child.start_byte < limit or _LISTS.search(child.type)):
                nodes.append(child)
        for far in filter(None, runs):
            start = text.rfind(b"\n", 0, far[0].start_byte) + 1
            end = text.find(b"\n", far[-1].end_byte) + 1 or len(text)
            around = text[start : far[0].start_byte] + text[far[-1].end_byte : end]
            if start >= limit and not around.strip():
                cuts.append((start, end))
    kept: list[bytes] = []
    for start, end in sorted(cuts):
        kept.append(text[limit:start])
        limit = max(limit, end)
    return b"".join([*kept, text[limit:]])


def _balance(text: bytes) -> list[int]:
    """Of each kind, brackets and comments opened less those closed, strings taken for code."""
    return [text.count(opener) - text.count(closer) for opener, closer in _PAIRS]


def _n_blank(text: bytes, at: int) -> int:
    """Bytes of white space from here on, as far as they count."""
    rest = text[at : at + _MAX_BLANK]
    return len(rest) - len(rest.lstrip())


def _point(text: bytes, offset: int, known: Point = _START, at: int = 0) -> Point:
    """known: the point of the offset `at`, not after `offset`."""
    row = known.row + text.count(b"\n", at, offset)
    return Point(row, offset - (text.rfind(b"\n", 0, offset) + 1))


def _difference(old: bytes, new: bytes) -> _Change:
    start = common_prefix(old, new)
    n_tail = common_suffix(old, new, min(len(old), len(new)) - start)
    return _Change(start, len(old) - n_tail, len(new) - n_tail)
