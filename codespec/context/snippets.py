"""Text of other files in the prompt: which snippets, in which order, and how the model is told.

A prompt that changes at its beginning is read anew by the model, so what was shown once stays where
it is: new snippets come after the old ones, until the budget is spent and all are chosen again.

Where the model knows markers of repositories and files, these are used, in the order of Hui et al.
2024 ("Qwen2.5-Coder technical report"): repository, files, last the file of the cursor. Other
models see snippets as comments above the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

import numpy as np

from codespec.types import ModelInfo, Snippet, Tokenizer, Tokens

_HASH_COMMENTS = re.compile(r"\.(pyi?|rb|sh|pl|r|ya?ml|toml|cmake|mk|exs?|jl)", re.IGNORECASE)


class Shelf:
    """The snippets that one document's prompt holds, in order."""

    def __init__(self) -> None:
        self._snippets: list[Snippet] = []

    def forget(self, path: str) -> None:
        """Show nothing of this file that was shown before."""
        self._snippets = [s for s in self._snippets if s.path != path]

    def choose(
        self,
        wanted: Sequence[Snippet],
        n_tokens: Callable[[Snippet], int],
        max_tokens: int,
        allowed: Callable[[str], bool],
    ) -> tuple[Snippet, ...]:
        """wanted: best first. allowed: whether a file's text may be shown at all (now)."""
        kept = [s for s in self._snippets if allowed(s.path)]
        room = max_tokens - sum(map(n_tokens, kept))
        left_out: list[Snippet] = []
        for snippet in wanted:
            if any(_is_shown(s, snippet) for s in kept):
                continue
            n = n_tokens(snippet)
            if n <= room:
                kept.append(snippet)
                room -= n
            elif n <= max_tokens:
                left_out.append(snippet)
        if left_out and left_out[0] is next(iter(wanted)):
            # The best one has no room: begin again with what is wanted now.
            self._snippets = []
            kept = list(self.choose(wanted, n_tokens, max_tokens, allowed))
        self._snippets = kept
        return tuple(kept)


def _is_shown(shown: Snippet, wanted: Snippet) -> bool:
    """Whether what is wanted stands there; of an edit that goes on, most of it: the rest is not
    worth reading the document again for."""
    if shown.path != wanted.path:
        return False
    is_edit = shown.source == wanted.source == "edits"
    is_most = is_edit and shown.text in wanted.text and len(wanted.text) < 2 * len(shown.text)
    return is_most or wanted.text in shown.text


def has_markers(info: ModelInfo) -> bool:
    return info.fim is not None and info.fim.repository >= 0 and info.fim.file >= 0


def render(
    snippets: Sequence[Snippet], info: ModelInfo, tokenizer: Tokenizer, path: str, root: str
) -> Tokens:
    """Tokens that go before the document's: before its markers with `has_markers`, else directly
    before its text. None for no snippets. path: of the document. root: of its workspace."""
    if not snippets:
        return np.zeros(0, np.int32)
    if not has_markers(info):
        mark = "#" if _HASH_COMMENTS.fullmatch(os.path.splitext(path)[1]) else "//"
        return tokenizer.encode("".join(_as_comment(s, mark, root) for s in snippets))
    assert info.fim is not None
    parts: list[Tokens | list[int]] = [[info.fim.repository]]
    parts.append(tokenizer.encode(f"{os.path.basename(root)}\n"))
    for snippet in snippets:
        parts.append([info.fim.file])
        parts.append(tokenizer.encode(f"{_relative(snippet.path, root)}\n{snippet.text}\n"))
    parts += [[info.fim.file], tokenizer.encode(f"{_relative(path, root)}\n")]
    return np.concatenate([np.asarray(part, np.int32) for part in parts])


def _as_comment(snippet: Snippet, mark: str, root: str) -> str:
    lines = [f"Path: {_relative(snippet.path, root)}", *snippet.text.split("\n")]
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)


def _relative(path: str, root: str) -> str:
    if not (root and os.path.isabs(path)):  # a name that a client made up
        return path
    return os.path.relpath(path, root).replace(os.sep, "/")
