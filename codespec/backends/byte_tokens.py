"""Text-only generators, whose tokenizer is unknown here: one token a byte stands in for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.backends.generators import Generator
from codespec.context.families import Family
from codespec.types import ModelInfo, Tokens

N_BYTES = 256
BYTES_A_TOKEN = 4
"""Bytes of source code a token of usual models, roughly; window sizes count tokens."""

_END = "<end>"


class ByteTokenizer:
    """`Tokenizer` with one token a byte, and ids from 256 on for markers, which stand for no bytes.

    markers: spellings of the markers, for prompts in text.
    """

    def __init__(self, markers: Sequence[str] = (_END, "<prefix>", "<suffix>", "<middle>")) -> None:
        self.markers = {text: N_BYTES + i for i, text in enumerate(markers)}
        self.n_vocab = N_BYTES + len(markers)
        self.hash = f"bytes-{self.n_vocab}"

    def encode(self, text: str | bytes) -> Tokens:
        raw = text.encode() if isinstance(text, str) else text
        return np.frombuffer(raw, np.uint8).astype(np.int32)

    def piece(self, token: int) -> bytes:
        return bytes([token]) if 0 <= token < N_BYTES else b""

    def decode(self, tokens: Tokens | Sequence[int]) -> bytes:
        return b"".join(self.piece(int(t)) for t in tokens)


class TextGenerator(Generator):
    """`Generator` of text. A subclass needs `stream`, whose pieces are bytes.

    name:   name of the model, for status and statistics. backend: name of the backend.
    n_ctx:  context window in tokens of the model. n_params: its parameters, 0 where unknown.
    family: its fill-in-the-middle format; None: prompts hold the text before the cursor alone.
            Markers are sent as text, so a document that spells them looks like a prompt.
    """

    n_units = BYTES_A_TOKEN
    heals = False

    def __init__(
        self,
        name: str,
        backend: str,
        n_ctx: int = 2048,
        n_params: int = 0,
        family: Family | None = None,
    ) -> None:
        markers = family.texts if family is not None else ()
        self._bytes = self.tokenizer = ByteTokenizer((_END, *markers))
        ids = self._bytes.markers
        self.info = ModelInfo(
            name=name,
            path="",
            architecture="",
            n_vocab=self._bytes.n_vocab,
            n_ctx=n_ctx * self.n_units,
            n_params=n_params,
            file_bytes=0,
            fim=None if family is None else family.tokens(ids),
            eog=frozenset({ids[_END]}),
            bos=None,
            tokenizer_hash=self._bytes.hash,
            backend=backend,
        )

    def text(self, tokens: Tokens) -> str:
        spelled = {token: text.encode() for text, token in self._bytes.markers.items()}
        parts = (spelled.get(t) or self._bytes.piece(t) for t in tokens.tolist())
        return b"".join(parts).decode("utf-8", "replace")
