"""Requests for the comparison, from a Git history.

edits: the added hunks of the last commits, each at its place, with the parent's tree as the
workspace. fresh: the same places as if nothing else were known: twenty lines before the cursor,
none after it, no workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codespec.types import Tokenizer

from ..history import History
from ..replay import MAX_TOKENS, MIN_TOKENS
from ..replay_trees import CommitTrees, Tree

FRESH_LINES = 20
MOST_TOKENS = 64


@dataclass(frozen=True, slots=True)
class WritingPlace:
    """A place where something is to be written, and what is known there. max_tokens: as many as
    were written there."""

    workload: str
    prefix: str
    suffix: str
    path: str
    tree: Tree | None
    max_tokens: int


def places(
    repo: Path, tokenizer: Tokenizer, n_commits: int, glob: str, n_most: int
) -> Iterator[WritingPlace]:
    """At most `n_most` edits and as many fresh ones. Raises: InputError."""
    history = History(repo, glob)
    trees = CommitTrees(history, tokenizer)
    n = 0
    for commit in history.commits(n_commits):
        for hunk in commit.hunks:
            n_tokens = len(tokenizer.encode(hunk.text))
            if not MIN_TOKENS <= n_tokens <= MAX_TOKENS:
                continue
            if n == n_most:
                return
            n += 1
            n_tokens = min(n_tokens, MOST_TOKENS)
            # A programmer asks after the indentation of the first line.
            indent = hunk.text[: len(hunk.text) - len(hunk.text.lstrip())]
            prefix, suffix = hunk.prefix + indent, "\n" + hunk.suffix
            tree = trees.of(commit, hunk.path)
            yield WritingPlace("edits", prefix, suffix, str(repo / hunk.path), tree, n_tokens)
            near = "".join(prefix.splitlines(keepends=True)[-FRESH_LINES:])
            yield WritingPlace("fresh", near, "", "", None, n_tokens)
