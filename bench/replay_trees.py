"""A repository as it was before a commit: indexed as the product does, and as an exact trie."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from codespec.index.reader import Dead
from codespec.native import Segment, SuffixAutomaton, build_segment
from codespec.syntax.text import encode, safe_cuts
from codespec.types import NO_TOKENS, Tokenizer, Tokens

from .history import Commit, History
from .reference import automaton_of


class Tree:
    """A parent's tree without the old version of the edited file: as the product indexes it, a
    frozen segment, and as an exact trie for the references."""

    def __init__(self, documents: Sequence[Tokens], segment: Segment, edited: int | None) -> None:
        self._documents = documents
        self._segment = segment
        self._dead = np.zeros(len(documents), np.bool_)
        if edited is not None:
            self._dead[edited] = True

    @property
    def living(self) -> list[Tokens]:
        """Tokens of its files, one array a file."""
        found = zip(self._documents, self._dead, strict=True)
        return [tokens for tokens, dead in found if not dead]

    @functools.cached_property
    def trie(self) -> SuffixAutomaton:
        return automaton_of(self.living)

    def segments(self, skip: Collection[str] = ()) -> list[tuple[Segment, Dead | None]]:
        return [(self._segment, self._dead)]


class CommitTrees:
    """Makes trees. Tokens are kept by blob, a commit's segment serves all its files."""

    def __init__(self, history: History, tokenizer: Tokenizer) -> None:
        self._history = history
        self._tokenizer = tokenizer
        self._cuts = safe_cuts(tokenizer)
        self.n_bytes = self.n_tokens = 0
        """Sums over all segments that were made."""
        self._tokens: dict[str, Tokens] = {}
        self._paths: list[str] = []
        self._documents: list[Tokens] = []
        self._segment: Segment | None = None
        self._commit = self._edited = ""
        self._tree: Tree | None = None

    def of(self, commit: Commit, edited: str) -> Tree:
        if self._commit != commit.sha or self._segment is None:
            self._commit, self._tree = commit.sha, None
            self._paths = sorted(commit.tree)
            self._documents = [self._of(commit.tree[path]) for path in self._paths]
            self._segment = segment_of(self._documents)
            self.n_bytes += self._segment.n_bytes
            self.n_tokens += self._segment.n_tokens
        if self._tree is None or self._edited != edited:
            self._edited = edited
            at = self._paths.index(edited) if edited in commit.tree else None
            self._tree = Tree(self._documents, self._segment, at)
        return self._tree

    def _of(self, sha: str) -> Tokens:
        if sha not in self._tokens:
            text = self._history.blob(sha)
            binary = "\0" in text  # which is not indexed
            self._tokens[sha] = encode("" if binary else text, self._tokenizer, self._cuts)
        return self._tokens[sha]


def segment_of(documents: Sequence[Tokens]) -> Segment:
    """A segment that exists only as long as it is mapped. All of it is compared with its checksums,
    as the engine does while nobody waits."""
    starts = np.cumsum([0] + [len(tokens) for tokens in documents], dtype=np.int64)[:-1]
    tokens = np.concatenate([NO_TOKENS, *documents])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "segment"
        build_segment(file, tokens, starts)
        segment = Segment.open(file)
    while segment.check_some(256):
        pass
    return segment
