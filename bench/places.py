"""Places in real files where code is cut out, to be asked for again."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import re
import subprocess
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from codespec.documents.from_disk import read_document
from codespec.errors import CodespecError, InputError
from codespec.index.selection import why_not_by_name
from codespec.index.walk import is_text_name
from codespec.languages.registry import TEXT, language_of, record_of
from codespec.suggest.place import indentation
from codespec.syntax.trees import ParsedDocument, n_errors

from . import spans_of_literals
from .history import environment, git_command
from .spans_of_text import (
    MAX_STATEMENT_LINES,
    blocks,
    middle,
    rests_of,
    rests_of_blocks,
    under_blocks,
    under_of,
    whole_lines,
    words_of_lines,
)

KINDS = ("line", "inline", "block")
FINISHED = "finished"
"""The kind where nothing is missing."""
PEOPLE = "people"
"""The kind of all places at lines that name people or licences, which are not shown by rule."""
LITERALS = ("in string", "at string", "in comment", "at comment", "before comment")
CLOSERS = ("before closers", "closing")
LAYOUT = ("indented", "item")
"""Kinds of texts without a grammar alone."""
OF_TEXTS = ("words", "whole", "statement", "rest", "under", *LITERALS, *CLOSERS, *LAYOUT)
"""Kinds that take no grammar. Statements are blocks there, told by their lines."""
TEXTS = (
    *(".bash", ".bib", ".cfg", ".clj", ".cljc", ".cljs", ".cmake", ".css", ".dart", ".edn", ".el"),
    *(".erl", ".ex", ".exs", ".fish", ".fs", ".gradle", ".graphql", ".groovy", ".heex", ".hs"),
    *(".html", ".ini", ".jl", ".json", ".jsonc", ".kt", ".kts", ".less", ".md", ".ml", ".mli"),
    *(".nix", ".pl", ".pm", ".properties", ".proto", ".ps1", ".psm1", ".R", ".rst", ".scala"),
    *(".scss", ".sh", ".sql", ".svelte", ".t", ".tex", ".tf", ".toml", ".txt", ".vim", ".vue"),
    *(".yaml", ".yml", ".zig", ".zsh", "CMakeLists.txt", "Dockerfile", "Makefile"),
)
"""Ends of names of files whose places are taken without a grammar."""
_NAMES = re.compile(
    rb"(?i)copyright|licen[cs]e|spdx|\bauthors?\b|maintainer|signed-off-by|[\w.+-]+@[\w-]+\.\w"
)
_PROSE = (".md", ".rst", ".txt")
"""Files without strings and comments."""
_BODY = re.compile(
    r"block|body|compound_statement|class_body|declaration_list|field_declaration_list"
    r"|body_statement|statements"
)
_LIST = re.compile(
    r".*(?:block|body|module|program|source_file|translation_unit|compilation_unit|chunk|list"
    r"|compound_statement|body_statement|statements)"
)
MAX_FILE_BYTES = 200_000
MIN_BODY_LINES, MAX_BODY_LINES = 2, 8


@dataclass(frozen=True, slots=True)
class CutPlace:
    """prefix + truth + suffix is the file as it is; it parses. kind: "line", the rest of a line;
    "inline", what stands between brackets that are closed behind it; "block", a body of some lines;
    "statement", one or a definition, of whole lines; "rest", one from its middle on; "under", all
    of one but its first line; "words", the last ones of a line but for its end; "whole", a line;
    "finished", nothing, at the end of a statement of one line; "below", from there the next one, if
    it is the last of its block; "in string", "in comment", from a word inside to the end of it;
    "at string", "at comment", from right before one to the end of the line; "before comment", code
    that a comment follows; "before closers", the last words before brackets that end a line;
    "closing", such brackets; "indented", lines further in than the one above; "item", of a list."""

    path: Path
    root: Path
    language: str
    kind: str
    prefix: str
    truth: str
    suffix: str


def places_in(
    root: Path,
    n: int,
    kinds: tuple[str, ...] = KINDS,
    *,
    per_file: int = 2,
    texts: tuple[str, ...] = (),
) -> list[CutPlace]:
    """`n` places of each kind and language of a repository, at most `per_file` of a kind in a file;
    the same ones each time.

    texts: ends of names of files to take without a grammar, for kinds of `OF_TEXTS`.

    Raises: InputError where there are none.
    """
    found: dict[tuple[str, str], list[CutPlace]] = {}
    for path in _files(root, texts):
        language = language_of(path.name)
        if language == TEXT:
            language = path.name if path.name in texts else path.suffix
            left_out = LITERALS if language in _PROSE else ()
            asked = tuple(k for k in kinds if k in OF_TEXTS and k not in left_out)
        else:
            asked = tuple(k for k in kinds if k not in LAYOUT)
        if all(len(found.get((language, kind), ())) >= n for kind in asked):
            continue
        rng = random.Random(path.name)
        for place in _places(path, root, language, asked, rng, per_file):
            of_kind = found.setdefault((language, place.kind), [])
            if len(of_kind) < n:
                of_kind.append(place)
    if not found:
        raise InputError(f"{root}: no places to complete", "Give a folder with source files.")
    return [place for key in sorted(found) for place in found[key]]


def _files(root: Path, texts: tuple[str, ...]) -> list[Path]:
    """Source files in an order that depends on their names alone."""
    try:
        names = _listed(root, "ls-files", "-z")
        names -= _listed(
            root, "ls-files", "-z", "-ci", "--exclude-standard"
        )  # the engine reads none
    except (OSError, subprocess.CalledProcessError):
        names = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    named = (n for n in names if is_text_name(n) and not why_not_by_name(n))  # as for the index
    wanted = [n for n in named if n.endswith(texts) or language_of(n) != TEXT]
    wanted.sort(key=lambda name: hashlib.blake2b(name.encode()).digest())
    return [root / name for name in wanted]


def _listed(root: Path, *asked: str) -> set[str]:
    command = git_command(root, *asked)
    done = subprocess.run(command, capture_output=True, check=True, env=environment())
    return {name for name in os.fsdecode(done.stdout).split("\0") if name}


def _places(
    path: Path,
    root: Path,
    language: str,
    kinds: tuple[str, ...],
    rng: random.Random,
    per_file: int,
) -> Iterator[CutPlace]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return
        text = read_document(path)
    except (OSError, CodespecError):
        return
    raw = text.encode()
    nodes: list[Node] = []
    is_parsed = record_of(language).grammar is not None
    spans_of = _SPANS if is_parsed else {**_SPANS, **_SPANS_OF_TEXTS}
    if is_parsed:
        parsed = ParsedDocument(language)
        parsed.update(raw)
        if parsed.root is None or n_errors(parsed.root):
            return
        nodes = list(_walk(parsed.root))
    comments = spans_of_literals.comments_in(nodes, raw)
    for kind in kinds:
        spans = [s for s in spans_of[kind](nodes, raw) if not _comments_out(raw, *s, comments)]
        for start, end in rng.sample(spans, min(per_file, len(spans))):
            first = raw.rfind(b"\n", 0, start) + 1
            names = kind in OF_TEXTS and _NAMES.search(raw[first:end])
            yield CutPlace(
                path,
                root,
                language,
                PEOPLE if names else kind,
                raw[:start].decode(),
                raw[start:end].decode(),
                raw[end:].decode(),
            )


def _comments_out(raw: bytes, start: int, end: int, comments: list[int]) -> bool:
    """True if a comment begins in the span and goes on behind it: no suggestion may make a comment
    of what an editor has behind the cursor."""
    last = raw.rfind(b"\n", start, end) + 1
    at = bisect_left(comments, max(start, last))
    return at < len(comments) and comments[at] < end and bool(raw[end:].split(b"\n", 1)[0].strip())


def _walk(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children


def _lines(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """From a word inside a line of code to the line's end."""
    in_text = [(n.start_byte, n.end_byte) for n in nodes if re.search("comment|string", n.type)]
    at = 0
    for line in raw.split(b"\n"):
        begin = middle(line) if len(line.strip()) >= 12 else None
        if begin is not None and not any(a < at + len(line) and b > at for a, b in in_text):
            yield at + begin, at + len(line.rstrip())
        at += len(line) + 1


def _between_brackets(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    for node in nodes:
        if node.type in ("argument_list", "arguments", "parameters", "parameter_list"):
            inner = raw[node.start_byte + 1 : node.end_byte - 1]
            if len(inner.strip()) >= 4 and b"\n" not in inner:
                yield node.start_byte + 1, node.end_byte - 1


def _end_of(node: Node, raw: bytes) -> int:
    """Some grammars leave out the last separator, others take the line end in."""
    end = node.start_byte + len(raw[node.start_byte : node.end_byte].rstrip())
    return end + (raw[end : end + 1] in (b",", b";"))


def _bodies(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    for node in nodes:
        inside = [c for c in node.children if c.is_named]
        if not _BODY.fullmatch(node.type) or not inside:
            continue
        start, end = inside[0].start_byte, _end_of(inside[-1], raw)
        n_lines = raw.count(b"\n", start, end) + 1
        lead = raw[raw.rfind(b"\n", 0, start) + 1 : start]
        if MIN_BODY_LINES <= n_lines <= MAX_BODY_LINES and not lead.strip():
            yield start, end


def _statements(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    for node in nodes:
        for child in node.children if _LIST.fullmatch(node.type) else ():
            is_one = child.is_named and not re.search(f"comment|tag|{_LIST.pattern}$", child.type)
            start, end = child.start_byte, _end_of(child, raw)
            lead = raw[raw.rfind(b"\n", 0, start) + 1 : start]
            after = raw[end : raw.find(b"\n", end)] if b"\n" in raw[end:] else raw[end:]
            n_lines = raw.count(b"\n", start, end) + 1
            if is_one and n_lines <= MAX_STATEMENT_LINES and not (lead + after).strip():
                yield start, end


def _rests(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    yield from rests_of(_statements(nodes, raw), raw)


def _finished(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    for start, end in _statements(nodes, raw):
        if b"\n" not in raw[start:end]:
            yield end, end


def _below(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    whole = list(_statements(nodes, raw))
    for (start, end), (next_start, next_end) in itertools.pairwise(whole):
        between, after = raw[end:next_start], raw[next_end:].lstrip(b" \t\r")
        follows = after[1:].split(b"\n", 1)[0].decode(errors="replace")
        column = indentation(between.rpartition(b"\n")[2].decode())
        is_last = not follows.strip() or indentation(follows) < column
        is_line = b"\n" not in raw[start:end]
        if is_line and is_last and not between.strip() and between.count(b"\n") == 1:
            yield end, next_end


def _under(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    yield from under_of(_statements(nodes, raw), raw)


_SPANS = {
    "line": _lines,
    "inline": _between_brackets,
    "block": _bodies,
    "statement": _statements,
    "rest": _rests,
    "under": _under,
    FINISHED: _finished,
    "below": _below,
    "words": words_of_lines,
    "whole": whole_lines,
    "in string": spans_of_literals.in_strings,
    "at string": spans_of_literals.at_strings,
    "in comment": spans_of_literals.in_comments,
    "at comment": spans_of_literals.at_comments,
    "before comment": spans_of_literals.before_comments,
    "before closers": spans_of_literals.before_closers,
    "closing": spans_of_literals.closing,
    "indented": spans_of_literals.indented,
    "item": spans_of_literals.items,
}
_SPANS_OF_TEXTS = {
    "statement": blocks,
    "rest": rests_of_blocks,
    "under": under_blocks,
}
