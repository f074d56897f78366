"""A workspace's text as lessons: files to learn from, files kept aside, places to ask about."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codespec.config import IndexSettings
from codespec.context.fim import assemble, n_markers
from codespec.errors import InputError
from codespec.index import selection
from codespec.index.walk import FileCandidate, is_binary, read_file, scan
from codespec.languages.registry import TEXT, language_of
from codespec.rules.ignore import IgnoreRules
from codespec.rules.secrets import without_secrets
from codespec.syntax import text
from codespec.training.dedup import DuplicateFilter
from codespec.training.line_cuts import few_lines, rest_of_line
from codespec.types import ModelInfo, Tokenizer, Tokens

HELD_OUT_PART = 8
MIN_TOKENS = 2_000
MAX_LINES = 3
MOST_BYTES = 64_000_000
"""More than all that a target is ever asked about, and read in half a minute."""


@dataclass(frozen=True, slots=True)
class LessonPlace:
    """A cursor in a file that nothing was learned from: the text around it."""

    path: str
    prefix: str
    suffix: str


class Workspace:
    """The source files of a workspace that rules allow, those to learn from and those kept aside.

    Which is which depends on a hash of the path alone, so it stays when other files change. About
    one file in HELD_OUT_PART is kept aside, and at least one; nothing is learned from copies and
    near copies of these, such as builds and older versions, where there is enough beside them.
    Of more than MOST_BYTES a half is read, or a quarter, ...: also by that hash.

    on_share: told the share that is read, 0 to 1, before each file; what it raises ends this.

    Raises: InputError when there is too little.
    """

    def __init__(
        self,
        root: Path,
        tokenizer: Tokenizer,
        settings: IndexSettings,
        on_share: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.root = os.path.realpath(root)
        rules = IgnoreRules(self.root, exclude=settings.exclude)
        found = scan(rules, settings.max_file_bytes).files
        files = [c for c in found if not selection.why_not_by_name(c.path)]

        def read(chosen: list[FileCandidate]) -> dict[str, str]:
            texts: dict[str, str] = {}
            for c in _part_of(chosen):
                on_share(0.0)
                source = _read(self.root, c.path, settings.max_file_bytes)
                if source is not None:
                    texts[c.path] = source
            return texts

        texts = read([c for c in files if language_of(c.path) != TEXT])
        if len(texts) < 2:
            texts = read(files)
        names = sorted(texts, key=_order)
        n_aside = max(1, len(names) // HELD_OUT_PART)
        cuts = text.safe_cuts(tokenizer)
        self.held_out = {name: texts[name] for name in names[:n_aside]}
        aside = DuplicateFilter()
        for source in self.held_out.values():
            aside.add(source)
        others: dict[str, Tokens] = {}
        for i, name in enumerate(names[n_aside:], n_aside):
            on_share(i / len(names))
            others[name] = text.encode(texts[name], tokenizer, cuts)
        learned = {name: d for name, d in others.items() if not aside.holds(texts[name])}
        if sum(map(len, learned.values())) < MIN_TOKENS:
            learned = others
        self.learned = tuple(learned)
        """Paths of the files to learn from, relative to the root."""
        self.documents = list(learned.values())
        """Tokens of these files."""
        self.n_tokens = sum(map(len, self.documents))
        if self.n_tokens < MIN_TOKENS:
            raise InputError(
                f"{root}: too little to learn from, {self.n_tokens} tokens in "
                f"{len(self.documents)} files",
                f"A workspace needs {MIN_TOKENS} tokens in its code, and two files.",
            )

    def places(self, n: int, seed: int = 0) -> list[LessonPlace]:
        """n places in files kept aside: from inside a line, to be completed to its end or over a
        few lines.
        """
        rng = random.Random(seed)
        names = sorted(self.held_out)
        sizes = [len(self.held_out[name]) for name in names]
        out: list[LessonPlace] = []
        for _ in range(n):
            name = rng.choices(names, sizes)[0]
            source = self.held_out[name]
            start, end = rng.choice((rest_of_line, few_lines))(source, rng)
            out.append(LessonPlace(os.path.join(self.root, name), source[:start], source[end:]))
        return out


class Prompts:
    """Prompts at random places of a workspace, as they are served, of a given length."""

    def __init__(self, workspace: Workspace, tokenizer: Tokenizer, info: ModelInfo) -> None:
        self._documents = workspace.documents
        sizes = np.array([len(d) for d in self._documents], np.float64)
        self._chance = sizes / sizes.sum()
        self._info = info
        self._is_line_end = np.array(
            [b"\n" in tokenizer.piece(t) for t in range(info.n_vocab)], np.bool_
        )

    def prompt(self, n_tokens: int, n_suffix: int, rng: np.random.Generator) -> Tokens:
        """At most n_tokens, of them n_suffix after the cursor."""
        document = self._documents[rng.choice(len(self._documents), p=self._chance)]
        cursor = int(rng.integers(1, len(document) + 1))
        right = document[self._middle_end(document, cursor, rng) :][:n_suffix]
        room = n_tokens - n_markers(self._info) - len(right)
        return assemble(self._info, document[max(0, cursor - room) : cursor], right)[0]

    def _middle_end(self, document: Tokens, cursor: int, rng: np.random.Generator) -> int:
        """The place where the text after the cursor goes on: its line's end or a few lines on."""
        ends = np.flatnonzero(self._is_line_end[document[cursor:]])
        n_lines = int(rng.integers(0, MAX_LINES + 1))
        return cursor + int(ends[n_lines]) if n_lines < len(ends) else len(document)


def _part_of(files: list[FileCandidate]) -> list[FileCandidate]:
    """Halved as often as it is too much, so that a few files more or less change nothing."""
    limit = 1 << 64
    while sum(c.stat.size for c in files) > MOST_BYTES:
        limit >>= 1
        files = [c for c in files if int.from_bytes(_order(c.path), "big") < limit]
    return files


def _read(root: str, path: str, max_file_bytes: int) -> str | None:
    loaded = read_file(os.path.join(root, path), max_file_bytes)
    if loaded is None or is_binary(loaded[0]):
        return None
    source = text.normalise(loaded[0].decode())
    # Without a parser: it is native code on text that nobody vouches for.
    chosen = selection.select(path, source.encode(), parse=False)
    return None if chosen.why_not or not source.strip() else without_secrets(source)


def _order(path: str) -> bytes:
    return hashlib.blake2b(path.encode(), digest_size=8).digest()
