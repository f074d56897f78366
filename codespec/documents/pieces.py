"""Cache of the tokens of pieces of a document, most of them lines.

A piece that moves to the other side of the cursor, comes back by an undo, or stands there twice is
not tokenised again. A call of the tokenizer costs as much as a hundred bytes of text, so new pieces
are tokenised together, and told apart by the bytes of their tokens.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from codespec.system import pulse
from codespec.types import Tokenizer, Tokens

MAX_PIECES = 50_000
MAX_CHARS = 1 << 23
"""Most characters of all pieces: a long line under edit is a new piece with each key."""
_FEW, MAX_TYPED, MAX_TYPED_CHARS = 8, 512, 1 << 16
"""Bounds on pieces that come `_FEW` or fewer at a time, as the lines are that one types in: each
key makes another, and hardly any is seen again."""
_MAX_TOGETHER = 1 << 16  # characters


class PieceCache:
    """Tokens by the text of a piece. Not thread-safe."""

    def __init__(self, tokenizer: Tokenizer, cuts: re.Pattern[str]) -> None:
        self._tokenizer = tokenizer
        self._cuts = cuts
        self._known: dict[str, Tokens] = {}
        self._n_chars = 0
        self._typed: deque[str] = deque()  # pieces that came a few at a time, oldest first
        self._n_typed_chars = 0
        self._n_bytes: dict[int, int] = {}

    def encode(self, pieces: Sequence[str]) -> list[Tokens]:
        """Tokens of each piece, as the tokenizer gives them for the piece alone."""
        new = [p for p in dict.fromkeys(pieces) if p not in self._known]
        fresh: dict[str, Tokens] = {}
        for group in self._groups(new):
            pulse.step()
            fresh.update(zip(group, self._encode_together(group), strict=True))
        known = self._known
        result = [known[p] if p in known else fresh[p] for p in pieces]
        n_chars = sum(map(len, fresh))
        self._n_chars += n_chars
        if len(known) + len(fresh) > MAX_PIECES or self._n_chars > MAX_CHARS:
            known.clear()
            self._typed.clear()
            self._n_chars, self._n_typed_chars = n_chars, 0
        known.update(fresh)
        if len(fresh) <= _FEW:
            self._typed.extend(fresh)
            self._n_typed_chars += n_chars
            self._forget_typed()
        return result

    def _forget_typed(self) -> None:
        while len(self._typed) > MAX_TYPED or self._n_typed_chars > MAX_TYPED_CHARS:
            piece = self._typed.popleft()
            del self._known[piece]
            self._n_chars -= len(piece)
            self._n_typed_chars -= len(piece)

    def _groups(self, pieces: Sequence[str]) -> Iterator[list[str]]:
        """Runs of pieces between which a text that consisted of them could be cut."""
        group: list[str] = []
        n_chars = 0
        for piece in pieces:
            if group and (n_chars > _MAX_TOGETHER or not self._is_cut(group[-1], piece)):
                yield group
                group, n_chars = [], 0
            group.append(piece)
            n_chars += len(piece)
        if group:
            yield group

    def _is_cut(self, before: str, after: str) -> bool:
        tail = before[-2:]
        return self._cuts.match(tail + after, len(tail)) is not None

    def _encode_together(self, group: Sequence[str]) -> list[Tokens]:
        if len(group) > 1:
            tokens = self._tokenizer.encode("".join(group))
            ends = np.cumsum([self._length(t) for t in tokens.tolist()], dtype=np.int64)
            wanted = np.cumsum([len(p.encode()) for p in group])
            at = np.searchsorted(ends, wanted) + 1
            # A tokenizer that changes the text has no such places, or has them by chance, but not
            # as many bytes; then each piece by itself.
            is_whole = len(tokens) and ends[-1] == wanted[-1]
            if is_whole and at[-1] <= len(tokens) and (ends[at - 1] == wanted).all():
                return np.split(tokens, at[:-1])
        return [self._tokenizer.encode(p) for p in group]

    def _length(self, token: int) -> int:
        n = self._n_bytes.get(token)
        if n is None:
            n = self._n_bytes[token] = len(self._tokenizer.piece(token))
        return n
