"""The model's own tokenizer, as llama.cpp implements it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from codespec.backends.llama.loader import LoadedModel, lib, tokenize
from codespec.types import Tokens

_SHORT = 1024  # tokens


class LlamaTokenizer:
    """`Tokenizer` over a loaded vocabulary. Cost: about 3 MB of source a second."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model  # keeps the vocabulary alive
        self._vocab = model.vocab
        self.n_vocab = model.n_vocab
        self._pieces: list[bytes] | None = None
        self._short = np.empty(_SHORT, np.int32)
        self._short_at = int(self._short.ctypes.data)

    @property
    def hash(self) -> str:
        return self._model.info.tokenizer_hash

    def encode(self, text: str | bytes) -> Tokens:
        raw = text.encode() if isinstance(text, str) else text
        capacity = len(raw) + 8  # a token is at least one byte, save a few markers
        buffer, address = self._short, self._short_at
        if capacity > _SHORT:
            buffer = np.empty(capacity, np.int32)
            address = buffer.ctypes.data
        n = int(tokenize(self._vocab, raw, len(raw), address, capacity, False, False))
        assert n >= 0, "the buffer holds a token a byte"
        return buffer[:n].copy()

    @property
    def pieces(self) -> list[bytes]:
        """The bytes of every token, by id."""
        if self._pieces is None:
            buffer = ctypes.create_string_buffer(1024)
            out: list[bytes] = []
            for token in range(self.n_vocab):
                # special=False: control tokens have no text in a document.
                n = lib.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
                out.append(buffer.raw[:n] if n > 0 else b"")
            self._pieces = out
        return self._pieces

    def piece(self, token: int) -> bytes:
        # llama.cpp aborts the process on an id out of range, so the table answers.
        return self.pieces[token] if 0 <= token < self.n_vocab else b""

    def decode(self, tokens: Tokens | Sequence[int]) -> bytes:
        return b"".join(self.piece(int(t)) for t in tokens)
