"""Places in real files where code is cut out, to be asked for again."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from codespec.context.document import read_document
from codespec.engine.postprocess.place import indentation
from codespec.errors import CodespecError, InputError
from codespec.index.languages import LANGUAGES, TEXT, language_of
from codespec.index.parse import why_not_by_name
from codespec.index.scan import is_text_name
from codespec.index.trees import ParsedDocument, n_errors

from .history import environment, git_command

KINDS = ("line", "inline", "block")
FINISHED = "finished"
"""The kind where nothing is missing."""
OF_TEXTS = ("words", "whole", "statement", "rest", "under")
"""Kinds that take no grammar. Statements are blocks there, told by their lines."""
_BODY = re.compile(
    r"block|body|compound_statement|class_body|declaration_list|field_declaration_list"
    r"|body_statement|statements"
)
_LIST = re.compile(
    r".*(?:block|body|module|program|source_file|translation_unit|compilation_unit|chunk|list"
    r"|compound_statement|body_statement|statements)"
)
# Lines that end a block without a grammar, those that go on with one, and what follows one.
_CLOSES = re.compile(r"(?:end|fi|done|esac)\b|[)\]}]|</|/>|\{/|(?:\{%|<%)-? *end")
_BRANCHES = re.compile(
    r"(?:then|do|else|elif|rescue|catch|after)\b|>$|\{:|\{%-? *el|[)\]}].*[(\[{]$"
    r"|(?:end|done|fi).* do$"
)
_FOLLOWS = re.compile(r"\|>|\.|\|\||&&|:?else|catch\b|\{:|v-else")
MAX_FILE_BYTES = 200_000
MIN_BODY_LINES, MAX_BODY_LINES = 2, 8
MAX_STATEMENT_LINES = 12


@dataclass(frozen=True, slots=True)
class Place:
    """prefix + truth + suffix is the file as it is; it parses. kind: "line", the rest of a line;
    "inline", what stands between brackets that are closed behind it; "block", a body of some lines;
    "statement", one or a definition, of whole lines; "rest", one from its middle on; "under", all
    of one but its first line; "words", the last ones of a line but for its end; "whole", a line;
    "finished", nothing, at the end of a statement of one line; "below", from there the next one, if
    it is the last of its block."""

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
) -> list[Place]:
    """`n` places of each kind and language of a repository, at most `per_file` of a kind in a file;
    the same ones each time.

    texts: ends of names of files to take without a grammar, for kinds of `OF_TEXTS`.

    Raises: InputError where there are none.
    """
    found: dict[tuple[str, str], list[Place]] = {}
    for path in _files(root, texts):
        language, asked = language_of(path.name), kinds
        if language == TEXT:
            language, asked = path.suffix, tuple(k for k in kinds if k in OF_TEXTS)
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
        command = git_command(root, "ls-files", "-z")
        done = subprocess.run(command, capture_output=True, check=True, env=environment())
        listed = done.stdout
        names = [name for name in os.fsdecode(listed).split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]
    named = (n for n in names if is_text_name(n) and not why_not_by_name(n))  # as for the index
    wanted = [n for n in named if n.endswith(texts) or language_of(n) != TEXT]
    wanted.sort(key=lambda name: hashlib.blake2b(name.encode()).digest())
    return [root / name for name in wanted]


def _places(
    path: Path,
    root: Path,
    language: str,
    kinds: tuple[str, ...],
    rng: random.Random,
    per_file: int,
) -> Iterator[Place]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return
        text = read_document(path)
    except (OSError, CodespecError):
        return
    raw = text.encode()
    nodes: list[Node] = []
    spans_of = _SPANS if language in LANGUAGES else {**_SPANS, **_SPANS_OF_TEXTS}
    if language in LANGUAGES:
        parsed = ParsedDocument(language)
        parsed.update(raw)
        if parsed.root is None or n_errors(parsed.root):
            return
        nodes = list(_walk(parsed.root))
    for kind in kinds:
        spans = list(spans_of[kind](nodes, raw))
        for start, end in rng.sample(spans, min(per_file, len(spans))):
            yield Place(
                path,
                root,
                language,
                kind,
                raw[:start].decode(),
                raw[start:end].decode(),
                raw[end:].decode(),
            )


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
        middle = _middle(line) if len(line.strip()) >= 12 else None
        if middle is not None and not any(a < at + len(line) and b > at for a, b in in_text):
            yield at + middle, at + len(line.rstrip())
        at += len(line) + 1


def _middle(line: bytes) -> int | None:
    """Where the middle one of its words begins: by a fixed rule, and never the first. None for a
    line of few."""
    words = [m.start() for m in re.finditer(rb"\w+|[^\w\s]+", line)]
    return words[len(words) // 2] if len(words) >= 4 else None


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


def _blocks(_: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """Lines that are indented more than the one above them, from that one to the one that closes
    them."""
    lines = [line.decode() for line in raw.split(b"\n")]
    starts = [0, *itertools.accumulate(len(line.encode()) + 1 for line in lines)]
    for first, head in enumerate(lines):
        is_inside = _CLOSES.match(head.strip()) or _BRANCHES.match(head.strip())
        last = first if is_inside or not head.strip() else _last_of_block(lines, first)
        if last > first:
            lead = len(head) - len(head.lstrip())
            yield starts[first] + lead, starts[last] + len(lines[last].rstrip().encode())


def _last_of_block(lines: list[str], first: int) -> int:
    """The line that closes the block of the first one, `first` where there is none."""
    column, n = indentation(lines[first]), 0
    for at in range(first + 1, min(first + MAX_STATEMENT_LINES, len(lines))):
        line = lines[at].strip()
        if not line or indentation(lines[at]) > column:
            n += bool(line)
            continue
        if not n or indentation(lines[at]) < column:
            break
        if _BRANCHES.match(line):
            continue
        following = next((s.strip() for s in lines[at + 1 :] if s.strip()), "")
        return at if _CLOSES.match(line) and not _FOLLOWS.match(following) else first
    return first


def _rests(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    yield from _rests_of(_statements(nodes, raw), raw)


def _rests_of_blocks(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    yield from _rests_of(_blocks(nodes, raw), raw)


def _rests_of(whole: Iterator[tuple[int, int]], raw: bytes) -> Iterator[tuple[int, int]]:
    for start, end in whole:
        middle = _middle(raw[start:end].split(b"\n", 1)[0])
        if middle is not None:
            yield start + middle, end


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
    yield from _under_of(_statements(nodes, raw), raw)


def _under_blocks(nodes: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    yield from _under_of(_blocks(nodes, raw), raw)


def _under_of(whole: Iterator[tuple[int, int]], raw: bytes) -> Iterator[tuple[int, int]]:
    for start, end in whole:
        at = raw.find(b"\n", start, end)
        if at >= 0:
            yield at, end


def _words(_: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    """From the middle of a line's words to the last one that is followed by others, or by signs."""
    for start, end in _whole_lines([], raw):
        words = list(re.finditer(rb"\w+", raw[start : end - 1]))
        if len(words) >= 2:
            yield start + words[len(words) // 2].start(), start + words[-1].end()


def _whole_lines(_: list[Node], raw: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    for line in raw.split(b"\n"):
        if line.strip():
            yield at + len(line) - len(line.lstrip()), at + len(line.rstrip())
        at += len(line) + 1


_SPANS = {
    "line": _lines,
    "inline": _between_brackets,
    "block": _bodies,
    "statement": _statements,
    "rest": _rests,
    "under": _under,
    FINISHED: _finished,
    "below": _below,
    "words": _words,
    "whole": _whole_lines,
}
_SPANS_OF_TEXTS = {
    "statement": _blocks,
    "rest": _rests_of_blocks,
    "under": _under_blocks,
}
