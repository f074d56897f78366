"""The model's own tokenizer, as llama.cpp implements it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from codespec.backends.llama.loader import LoadedModel, encoder, lib
from codespec.errors import ModelError
from codespec.types import Tokens

_MARK = b"\x01"  # no tokenizer merges it with other bytes


def _room() -> ctypes.Array[ctypes.c_char]:
    """Buffer for the bytes of a token."""
    return ctypes.create_string_buffer(1024)


class LlamaTokenizer:
    """`Tokenizer` over a loaded vocabulary. Thread-safe. Cost: about 3 MB of source a second."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model  # keeps the vocabulary alive
        self._vocab = model.vocab
        self.n_vocab = model.n_vocab
        self._pieces: list[bytes] | None = None
        self.encoder = encoder(self._vocab)
        """Native form of `encode`, valid while the tokenizer lives."""
        # SentencePiece models put a blank before each text: the mark takes it, and both are
        # dropped.
        tokens = self.encode("x").tolist()
        if tokens and self._piece(tokens[0], _room()).startswith(b" "):
            self.encoder = encoder(self._vocab, _MARK, len(self.encode(_MARK)))

    @property
    def hash(self) -> str:
        return self._model.info.tokenizer_hash

    def encode(self, text: str | bytes) -> Tokens:
        """See `types.Tokenizer`. Raises: ModelError where llama.cpp fails, as for a byte without a
        token."""
        raw = text.encode() if isinstance(text, str) else text
        try:
            return self.encoder(raw)
        except (IndexError, RuntimeError, ValueError) as e:  # C++ exceptions
            raise ModelError(
                f"the model's tokenizer fails: {e}", "Choose another model: codespec models"
            ) from e

    @property
    def pieces(self) -> list[bytes]:
        """The bytes of every token, by id."""
        if self._pieces is None:
            room = _room()
            self._pieces = [self._piece(token, room) for token in range(self.n_vocab)]
        return self._pieces

    def _piece(self, token: int, room: ctypes.Array[ctypes.c_char]) -> bytes:
        # special=False: control tokens have no text in a document.
        n = lib.llama_token_to_piece(self._vocab, token, room, len(room), 0, False)
        return room.raw[:n] if n > 0 else b""

    def piece(self, token: int) -> bytes:
        # llama.cpp aborts the process on an id out of range, so the table answers.
        return self.pieces[token] if 0 <= token < self.n_vocab else b""

    def decode(self, tokens: Tokens | Sequence[int]) -> bytes:
        return b"".join(self.piece(int(t)) for t in tokens)
