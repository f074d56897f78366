"""Parts of a file that are worth learning from.

Licence headers, generated and minified files, lock files and data blobs repeat a great deal and
help nobody write code; in the index they only dilute the votes. tree-sitter says where comments and
literals are; files in other languages are judged by their text alone.

Parsing hostile input can take memory without limit or kill the process (a few ten thousand nested
openings are enough, depending on the grammar): parse only in a process that may die.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tree_sitter import Node

from codespec.languages.base import Grammar
from codespec.languages.registry import TEXT, language_of
from codespec.reasons import Reason
from codespec.rules.secrets import find, masked, spans_left
from codespec.syntax.parse import facts_of, syntax_tree
from codespec.syntax.symbols import Symbol, find_symbols

RULES_VERSION = 9
"""Version of the rules. Raise it with every change of the selection, of tokenising or of the keys
of `LeftOut`: indexes of other versions are then built again."""

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
# the index, and no speed (bench/log).
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
Span = tuple[int, int]


class LeftOut(Reason):
    """Reason not to index a file that no rule excludes; a manifest keeps its key."""

    VENDORED = "vendored", "vendored"
    LOCK_FILE = "lock_file", "a lock file"
    MINIFIED = "minified", "minified"
    GENERATED = "generated", "generated"
    DATA = "data", "data"
    BINARY = "binary", "binary"
    EMPTY = "empty", "empty"
    ONLY_SECRETS = "only_secrets", "nothing but secrets"
    ONLY_COMMENTS = "only_comments", "nothing but comments and data"
    TOO_LARGE = "too_large", "too large"
    UNREADABLE = "unreadable", "cannot be read"
    NAME_NOT_UTF8 = "name_not_utf8", "a name that is not UTF-8"
    ENDED_INDEXER = "ended_indexer", "it ended the indexer twice"


@dataclass(frozen=True, slots=True)
class SelectedText:
    """Text to index from one file. spans: byte ranges, ascending, each of whole lines except at a
    secret that was cut out. why_not: the reason if there are none. symbols: definitions in the
    file, unless it is left out."""

    spans: tuple[Span, ...] = ()
    why_not: LeftOut | None = None
    symbols: tuple[Symbol, ...] = ()


def why_not_by_name(path: str) -> LeftOut | None:
    """The reason not to index a file that shows in its name alone, or None."""
    if _VENDORED.fullmatch(path):
        return LeftOut.VENDORED
    name = PurePosixPath(path).name
    if _LOCK_FILE.fullmatch(name):
        return LeftOut.LOCK_FILE
    if _MINIFIED_FILE.fullmatch(name):
        return LeftOut.MINIFIED
    if _DATA_FILE.fullmatch(name):
        return LeftOut.DATA
    return None


def is_generated(text: bytes) -> bool:
    """True if the first lines of a file say that a program wrote it. text: UTF-8 with \\n line
    ends, or its beginning."""
    head = b"\n".join(text[:_HEAD_BYTES].split(b"\n", 10)[:10])
    return bool(_GENERATED.search(head))


def select(path: str, text: bytes, *, parse: bool = True) -> SelectedText:
    """Choose the parts of a file to index.

    text: UTF-8 with \\n line ends.
    parse: False judges by the text alone, for a file that killed the parser before.
    Cost: 5 to 12 MB of source a second, a tenth of it for the search for secrets, which neither the
        parts nor a signature contain. Thread-safe; holds the GIL while parsing, see `parsers`.
    """
    if why_not := why_not_by_name(path):
        return SelectedText(why_not=why_not)
    secrets = find(text)
    chosen = _select(path, masked(text, secrets) if secrets else text, parse)
    if not secrets or not chosen.spans:
        return chosen
    parts = (part for span in chosen.spans for part in spans_left(secrets, *span))
    spans = tuple((start, end) for start, end in parts if text[start:end].strip())
    return replace(chosen, spans=spans, why_not=None if spans else LeftOut.ONLY_SECRETS)


def _select(path: str, text: bytes, parse: bool) -> SelectedText:
    if not text.strip():
        return SelectedText(why_not=LeftOut.EMPTY)
    if _is_minified(text):
        return SelectedText(why_not=LeftOut.MINIFIED)
    language = language_of(path)
    root = _parse(language, text) if parse and language != TEXT else None
    if root is None:
        return _select_text(text)
    facts = facts_of(language)
    header = _header(root, text, facts)
    if any(_GENERATED.search(text, a, min(b, a + _HEAD_BYTES)) for a, b in header):
        return SelectedText(why_not=LeftOut.GENERATED)
    cut = [span for span in header if _LICENCE.search(text, *span)]
    cut += _data_spans(root, text, facts)
    chosen = _without(text, cut)
    if not chosen.spans:
        return chosen
    return replace(chosen, symbols=find_symbols(language, root, text))


def _select_text(text: bytes) -> SelectedText:
    if is_generated(text):
        return SelectedText(why_not=LeftOut.GENERATED)
    if len(text) >= MIN_DATA_FILE_BYTES and _is_data(text):
        return SelectedText(why_not=LeftOut.DATA)
    return SelectedText(((0, len(text)),))


def _is_minified(text: bytes) -> bool:
    """True if most of the text stands in lines that nobody wrote by hand."""
    if len(text) < 2 * _LONG_LINE_BYTES:
        return False
    n_long = sum(n for line in text.split(b"\n") if (n := len(line)) > _LONG_LINE_BYTES)
    return 2 * n_long > len(text)


def _is_data(text: bytes) -> bool:
    """True if the text is values rather than code: hardly a letter outside strings and numbers."""
    bare = _QUOTED_OR_NUMBER.sub(b"", _ESCAPE.sub(b" ", text))
    return len(bare.translate(None, _NO_LETTERS)) * 10 < len(text)


def _is_blob(text: bytes) -> bool:
    """True if the content of a string is neither prose nor code: hardly a blank in it."""
    return (len(text) - len(text.translate(None, _BLANKS))) * 30 < len(text)


def _parse(language: str, text: bytes) -> Node | None:
    """The tree's root, or None if the text makes no sense in this language or takes too long."""
    tree = syntax_tree(language, text)
    return None if tree is None or tree.root_node.type == "ERROR" else tree.root_node


def _header(root: Node, text: bytes, facts: Grammar) -> list[Span]:
    """Spans of the comments before the first code, as blocks of adjacent lines."""
    blocks: list[Span] = []
    for node in root.children:
        if node.type in facts.prologue:
            continue
        if "comment" not in node.type and node.type != "hash_bang_line":
            break
        start, end = _whole_lines(text, node.start_byte, node.end_byte)
        if blocks and start <= blocks[-1][1]:
            blocks[-1] = (blocks[-1][0], end)
        else:
            blocks.append((start, end))
    return blocks


def _data_spans(root: Node, text: bytes, facts: Grammar) -> list[Span]:
    """Spans of large literals that hold data, without their first and last lines. Only nodes of
    some size are looked into, so the cost is a small part of parsing."""
    found: list[Span] = []
    budget = 8 * len(text)  # nested literals are each looked at whole
    stack = [root]
    while stack and budget > 0:
        for node in stack.pop().children:
            size = node.end_byte - node.start_byte
            if size < MIN_DATA_BYTES:
                continue
            is_string = "string" in node.type
            if is_string or node.type in facts.literals:
                budget -= size
                body = text[node.start_byte : node.end_byte]
                if _is_blob(body) if is_string else _is_data(body):
                    found.append(_inner_lines(text, node.start_byte, node.end_byte))
                    continue
            stack.append(node)
    return found


def _whole_lines(text: bytes, start: int, end: int) -> Span:
    """Extend a span to line starts; `end` may already stand at one."""
    start = text.rfind(b"\n", 0, start) + 1
    if end == 0 or text[end - 1 : end] != b"\n":
        newline = text.find(b"\n", end)
        end = len(text) if newline < 0 else newline + 1
    return start, end


def _inner_lines(text: bytes, start: int, end: int) -> Span:
    first = text.find(b"\n", start, end) + 1
    last = text.rfind(b"\n", start, end) + 1
    return (first, last) if 0 < first < last else _whole_lines(text, start, end)


def _without(text: bytes, cut: list[Span]) -> SelectedText:
    spans: list[Span] = []
    at = 0
    for start, end in [*sorted(cut), (len(text), len(text))]:
        if text[at:start].strip():
            spans.append((at, start))
        at = max(at, end)
    return SelectedText(tuple(spans), None if spans else LeftOut.ONLY_COMMENTS)
