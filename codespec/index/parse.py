"""What of a file is worth learning from.

Licence headers, generated and minified files, lock files and data blobs repeat a great deal and
help nobody write code; in the index they only dilute the votes. tree-sitter says where comments
and literals are; files in other languages are judged by their text alone.

Parsing hostile input can take memory without limit or kill the process (a few ten thousand nested
openings are enough, depending on the grammar): parse only in a process that may die.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tree_sitter import Node

from codespec.index.languages import TEXT, language_of, syntax_tree
from codespec.index.symbols import Symbol, find_symbols
from codespec.secrets import find, kept, masked

RULES_VERSION = 8
"""To be raised with every change of what is selected or how it is tokenised: indexes are then built
again."""

MIN_DATA_BYTES = 2048
"""Literals smaller than this are code, whatever is in them."""
MIN_DATA_FILE_BYTES = 32768
_HEAD_BYTES = 4096
_LONG_LINE_BYTES = 500

_LOCK_FILE = re.compile(
    r".*\.lock|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum|.*\.lockb|"
    r"packages\.lock\.json|gradle\.lockfile|Package\.resolved|MODULE\.bazel\.lock"
)
_DATA_FILE = re.compile(
    r".*\.(svg|csv|tsv|map|ipynb|geojson|jsonl|ndjson|pbtxt|prototxt|srt|vtt|po|pot|diff|patch|"
    r"log|snap|golden|plist|xlf|xliff|drawio|eps|ps|obj|stl|hex|b64|pub|crt|cer|asc|sig)",
    re.IGNORECASE,
)
_MINIFIED_FILE = re.compile(r".*[.-]min\.(js|mjs|cjs|css)", re.IGNORECASE)
# Other people's code, kept in the tree. Measured on two repositories that hold much of it: half of
# the index, and no speed (bench/LOG.md).
_VENDORED = re.compile(
    r"(?:.*/)?(?:_?vendor(?:ed|s)?|third[-_]?party|3rd[-_]?party|Godeps|Pods|Carthage)/.*",
    re.IGNORECASE,
)
_GENERATED = re.compile(
    rb"@generated\b|\bdo not (?:edit|modify|change)\b|\bauto-?\s?generated\b|"
    rb"^\W*generated (?:by|from|using|automatically|code|file|source)\b|"
    rb"\b(?:is|was|been|file|code|automatically) generated\b",
    re.IGNORECASE | re.MULTILINE,
)
_LICENCE = re.compile(
    rb"licen[cs]|copyright|\(c\) (?:19|20)\d\d|spdx-|all rights reserved|warrant(?:y|ies)",
    re.IGNORECASE,
)
_ESCAPE = re.compile(rb"\\[^A-Za-z_]")
# Without escapes in it: where a quote finds no other in its line, none after it looks again. With
# them each would look to the text's end, for hours in a file of nothing else.
_QUOTED_OR_NUMBER = re.compile(rb"'[^'\n]*'|\"[^\"\n]*\"|(?<![A-Za-z_])\d[\w.]*")
_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123)) + b"_"
_NO_LETTERS = bytes(set(range(256)) - set(_LETTERS))
_BLANKS = b" \t\n"
_CONTAINERS = frozenset(
    # One grammar's name or another's for a literal with elements.
    [
        "list",
        "tuple",
        "set",
        "dictionary",
        "array",
        "object",
        "array_expression",
        "token_tree",
        "tuple_expression",
        "literal_value",
        "initializer_list",
        "array_initializer",
        "array_literal",
        "array_creation_expression",
        "dictionary_literal",
        "hash",
        "initializer_expression",
        "table_constructor",
        "concatenated_string",
        "binary_expression",
        "binary_operator",
    ]
)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Selection:
    """spans: byte ranges to index, ascending, each of whole lines but where a secret stood between
    two. why_not: the reason for none. symbols: what is defined in the file, unless it is left
    out."""

    spans: tuple[Span, ...] = ()
    why_not: str = ""
    symbols: tuple[Symbol, ...] = ()


def why_not_by_name(path: str) -> str:
    """A reason not to index that shows in the name alone, or ""."""
    if _VENDORED.fullmatch(path):
        return "vendored"
    name = PurePosixPath(path).name
    if _LOCK_FILE.fullmatch(name):
        return "a lock file"
    if _MINIFIED_FILE.fullmatch(name):
        return "minified"
    if _DATA_FILE.fullmatch(name):
        return "data"
    return ""


def select(path: str, text: bytes, *, parse: bool = True) -> Selection:
    """Which parts of a file to index.

    text: UTF-8 with \\n line ends.
    parse: False: judge by the text alone, for a file that killed the parser before.
    Cost: 5 to 12 MB of source a second, a tenth of it for the search for secrets, which are in none
    of the parts nor in a signature. Thread-safe; holds the GIL while parsing, see `parsers`.
    """
    if why_not := why_not_by_name(path):
        return Selection(why_not=why_not)
    secrets = find(text)
    chosen = _select(path, masked(text, secrets) if secrets else text, parse)
    if not secrets or not chosen.spans:
        return chosen
    parts = (part for span in chosen.spans for part in kept(secrets, *span))
    spans = tuple((start, end) for start, end in parts if text[start:end].strip())
    return replace(chosen, spans=spans, why_not="" if spans else "nothing but secrets")


def _select(path: str, text: bytes, parse: bool) -> Selection:
    if not text.strip():
        return Selection(why_not="empty")
    if _is_minified(text):
        return Selection(why_not="minified")
    language = language_of(path)
    root = _parse(language, text) if parse and language != TEXT else None
    if root is None:
        return _select_text(text)
    header = _header(root, text)
    if any(_GENERATED.search(text, a, min(b, a + _HEAD_BYTES)) for a, b in header):
        return Selection(why_not="generated")
    cut = [span for span in header if _LICENCE.search(text, *span)]
    cut += _data_spans(root, text)
    chosen = _without(text, cut)
    if not chosen.spans:
        return chosen
    return replace(chosen, symbols=find_symbols(language, root, text))


def _select_text(text: bytes) -> Selection:
    head = b"\n".join(text[:_HEAD_BYTES].split(b"\n", 10)[:10])
    if _GENERATED.search(head):
        return Selection(why_not="generated")
    if len(text) >= MIN_DATA_FILE_BYTES and _is_data(text):
        return Selection(why_not="data")
    return Selection(((0, len(text)),))


def _is_minified(text: bytes) -> bool:
    """Most of the text stands in lines that nobody wrote by hand."""
    if len(text) < 2 * _LONG_LINE_BYTES:
        return False
    n_long = sum(n for line in text.split(b"\n") if (n := len(line)) > _LONG_LINE_BYTES)
    return 2 * n_long > len(text)


def _is_data(text: bytes) -> bool:
    """Whether text is values rather than code: hardly a letter outside strings and numbers."""
    bare = _QUOTED_OR_NUMBER.sub(b"", _ESCAPE.sub(b" ", text))
    return len(bare.translate(None, _NO_LETTERS)) * 10 < len(text)


def _is_blob(text: bytes) -> bool:
    """Whether the content of a string is no prose and no code: hardly a blank in it."""
    return (len(text) - len(text.translate(None, _BLANKS))) * 30 < len(text)


def _parse(language: str, text: bytes) -> Node | None:
    """The tree's root, or None when the text makes no sense in this language or takes too long."""
    tree = syntax_tree(language, text)
    return None if tree is None or tree.root_node.type == "ERROR" else tree.root_node


def _header(root: Node, text: bytes) -> list[Span]:
    """The comments before the first code, as blocks of adjacent lines."""
    blocks: list[Span] = []
    for node in root.children:
        if node.type == "php_tag":
            continue
        if "comment" not in node.type and node.type != "hash_bang_line":
            break
        start, end = _whole_lines(text, node.start_byte, node.end_byte)
        if blocks and start <= blocks[-1][1]:
            blocks[-1] = (blocks[-1][0], end)
        else:
            blocks.append((start, end))
    return blocks


def _data_spans(root: Node, text: bytes) -> list[Span]:
    """Large literals that hold data, without their first and last lines. Only nodes of some size
    are looked into, so the cost is a small part of parsing."""
    found: list[Span] = []
    budget = 8 * len(text)  # nested literals are each looked at whole
    stack = [root]
    while stack and budget > 0:
        for node in stack.pop().children:
            size = node.end_byte - node.start_byte
            if size < MIN_DATA_BYTES:
                continue
            is_string = "string" in node.type
            if is_string or node.type in _CONTAINERS:
                budget -= size
                body = text[node.start_byte : node.end_byte]
                if _is_blob(body) if is_string else _is_data(body):
                    found.append(_inner_lines(text, node.start_byte, node.end_byte))
                    continue
            stack.append(node)
    return found


def _whole_lines(text: bytes, start: int, end: int) -> Span:
    """Extend to line starts; `end` may already stand at one."""
    start = text.rfind(b"\n", 0, start) + 1
    if end == 0 or text[end - 1 : end] != b"\n":
        newline = text.find(b"\n", end)
        end = len(text) if newline < 0 else newline + 1
    return start, end


def _inner_lines(text: bytes, start: int, end: int) -> Span:
    first = text.find(b"\n", start, end) + 1
    last = text.rfind(b"\n", start, end) + 1
    return (first, last) if 0 < first < last else _whole_lines(text, start, end)


def _without(text: bytes, cut: list[Span]) -> Selection:
    spans: list[Span] = []
    at = 0
    for start, end in [*sorted(cut), (len(text), len(text))]:
        if text[at:start].strip():
            spans.append((at, start))
        at = max(at, end)
    return Selection(tuple(spans), "" if spans else "nothing but comments and data")
