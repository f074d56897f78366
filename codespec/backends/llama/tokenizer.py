"""The model's own tokenizer, as llama.cpp implements it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence

import numpy as np

from codespec.backends.llama.loader import LoadedModel, lib, tokenize
from codespec.types import Tokens

_SHORT = 1024  # tokens
_MARK = b"\x01"  # merges with nothing


class _Room(threading.local):
    """Where llama.cpp writes, while other threads run: of each thread its own."""

    def __init__(self) -> None:
        self.tokens = np.empty(_SHORT, np.int32)
        self.address = int(self.tokens.ctypes.data)
        self.piece = ctypes.create_string_buffer(1024)


_room = _Room()


class LlamaTokenizer:
    """`Tokenizer` over a loaded vocabulary. Thread-safe. Cost: about 3 MB of source a second."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model  # keeps the vocabulary alive
        self._vocab = model.vocab
        self.n_vocab = model.n_vocab
        self._pieces: list[bytes] | None = None
        # SentencePiece models put a blank before each text: before this, which is dropped with it.
        self._mark, self._n_mark = b"", 0
        tokens = self.encode("x").tolist()
        if tokens and self._piece(tokens[0]).startswith(b" "):
            self._n_mark = len(self.encode(_MARK))
            self._mark = _MARK

    @property
    def hash(self) -> str:
        return self._model.info.tokenizer_hash

    def encode(self, text: str | bytes) -> Tokens:
        raw = self._mark + (text.encode() if isinstance(text, str) else text)
        # A token is at least one byte, save a few markers; a byte that is no part of a character
        # is taken for U+FFFD, which has three.
        capacity = (1 if isinstance(text, str) else 3) * len(raw) + 8
        buffer, address = _room.tokens, _room.address
        if capacity > _SHORT:
            buffer = np.empty(capacity, np.int32)
            address = buffer.ctypes.data
        n = int(tokenize(self._vocab, raw, len(raw), address, capacity, False, False))
        assert n >= 0, "the buffer holds whatever is made of these bytes"
        return buffer[self._n_mark : n].copy()

    @property
    def pieces(self) -> list[bytes]:
        """The bytes of every token, by id."""
        if self._pieces is None:
            self._pieces = [self._piece(token) for token in range(self.n_vocab)]
        return self._pieces

    def _piece(self, token: int) -> bytes:
        # special=False: control tokens have no text in a document.
        room = _room.piece
        n = lib.llama_token_to_piece(self._vocab, token, room, len(room), 0, False)
        return room.raw[:n] if n > 0 else b""

    def piece(self, token: int) -> bytes:
        # llama.cpp aborts the process on an id out of range, so the table answers.
        return self.pieces[token] if 0 <= token < self.n_vocab else b""

    def decode(self, tokens: Tokens | Sequence[int]) -> bytes:
        return b"".join(self.piece(int(t)) for t in tokens)
