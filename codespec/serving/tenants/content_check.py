"""Check of token ids that a client sends: none that is no text of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from codespec.errors import CodespecError
from codespec.types import Tokens


class ContentError(CodespecError):
    """Ids that no file has."""


class ContentCheck:
    """Ids that a text may have: those with bytes of their own. Control tokens, and ids without a
    token, have none.

    pieces: bytes of every token, by id, see `TokenizerFile.pieces`.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._is_text = np.fromiter(map(bool, pieces), np.bool_, len(pieces))

    def check(self, contents: Mapping[str, Sequence[Tokens]]) -> int:
        """Number of tokens of these contents. Raises: ContentError."""
        n_tokens = 0
        for key, parts in contents.items():
            for part in parts:
                self._check(key, part)
                n_tokens += len(part)
        return n_tokens

    def _check(self, key: str, part: Tokens) -> None:
        if not len(part):
            return
        if int(part.min()) < 0 or int(part.max()) >= len(self._is_text):
            raise ContentError(
                f"content {key}: an id is not below {len(self._is_text):,}, or negative",
                "Index with the vocabulary of this server's model.",
            )
        if not self._is_text[part].all():
            raise ContentError(
                f"content {key}: an id is that of a control token",
                "Text of a file has none: index with the vocabulary of this server's model.",
            )
