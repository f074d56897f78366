"""Text of other files in the prompt: choice and order of snippets, and their format.

A prompt that changes at its beginning is read anew by the model, so a snippet stays where it was
first shown: new snippets come after the old ones, until the budget is spent and all are chosen
again.

Models read them as they were trained to (`types.FileMarkers`): the repository's name, the files,
last the path of the cursor's own, each behind its marker (Hui et al. 2024, "Qwen2.5-Coder technical
report"). Others read them as comments above the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from codespec.context.fim import other_files
from codespec.system.files import relative
from codespec.types import NO_TOKENS, ModelInfo, Snippet, Tokenizer, Tokens

_HASH_COMMENTS = re.compile(r"\.(pyi?|rb|sh|pl|r|ya?ml|toml|cmake|mk|exs?|jl)", re.IGNORECASE)


class Shelf:
    """Snippets of one document's prompt, in order."""

    def __init__(self) -> None:
        self._snippets: list[Snippet] = []

    def forget(self, paths: Collection[str]) -> None:
        """Remove the snippets of these files."""
        self._snippets = [s for s in self._snippets if s.path not in paths]

    def choose(
        self,
        wanted: Sequence[Snippet],
        n_tokens: Callable[[Snippet], int],
        max_tokens: int,
    ) -> tuple[Snippet, ...]:
        """The snippets shown so far, then those of `wanted`, best first, that fit in
        `max_tokens`."""
        kept = list(self._snippets)
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
            # No room for the best one: begin again with the snippets wanted now.
            self._snippets = []
            kept = list(self.choose(wanted, n_tokens, max_tokens))
        self._snippets = kept
        return tuple(kept)


def _is_shown(shown: Snippet, wanted: Snippet) -> bool:
    """True if the wanted text is shown already; of an edit that grows, half of it suffices: the
    rest is not worth reading the document again for."""
    if shown.path != wanted.path:
        return False
    is_edit = shown.source == wanted.source == "edits"
    is_most = is_edit and shown.text in wanted.text and len(wanted.text) < 2 * len(shown.text)
    return is_most or wanted.text in shown.text


class Rendered(NamedTuple):
    """Tokens that go before the document's: before their first marker, and directly before the
    text that precedes the cursor."""

    before: Tokens = NO_TOKENS
    inside: Tokens = NO_TOKENS

    @property
    def n_tokens(self) -> int:
        return len(self.before) + len(self.inside)


NOTHING_SHOWN = Rendered()


def render(
    snippets: Sequence[Snippet], info: ModelInfo, tokenizer: Tokenizer, path: str, root: str
) -> Rendered:
    """The tokens of snippets, none for no snippets. path: of the document. root: of its
    workspace."""
    if not snippets:
        return NOTHING_SHOWN
    files = info.fim.files if info.fim is not None else None
    if files is None:
        mark = "#" if _HASH_COMMENTS.fullmatch(os.path.splitext(path)[1]) else "//"
        comments = "".join(_as_comment(s, mark, root) for s in snippets)
        return Rendered(inside=tokenizer.encode(comments))
    others = [(_relative(s.path, root), s.text) for s in snippets]
    own = _relative(path, root)
    parts, inside = other_files(
        others,
        own,
        os.path.basename(root),
        files.repository if files.repository >= 0 else None,
        files.file if files.file >= 0 else None,
        files.heading,
        files.is_inside,
    )
    before = [tokenizer.encode(part) if isinstance(part, str) else [part] for part in parts]
    return Rendered(
        np.concatenate([NO_TOKENS, *before], dtype=np.int32),
        tokenizer.encode(inside) if inside else NO_TOKENS,
    )


def _as_comment(snippet: Snippet, mark: str, root: str) -> str:
    lines = [f"Path: {_relative(snippet.path, root)}", *snippet.text.split("\n")]
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)


def _relative(path: str, root: str) -> str:
    if not (root and os.path.isabs(path)):  # a name that a client made up
        return path
    return relative(path, root).replace(os.sep, "/")
