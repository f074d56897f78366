"""A byte-level BPE vocabulary from a Hugging Face `tokenizer.json`: the model itself is the
engine's."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from codespec.backends.remote.json_vocabulary import bytes_of, hash_of
from codespec.context.families import family_in
from codespec.drafters.token_kinds import kind_of
from codespec.errors import ModelError
from codespec.types import FimTokens

FILE_NAME = "tokenizer.json"


class TokenizerFile:
    """Pieces, kinds and markers of a vocabulary.

    folder:   of the model, with a `tokenizer.json`.
    n_vocab:  size of the model's vocabulary, which may be larger than the tokenizer's.
    splitting: name that llama.cpp has for its pre-tokenisation, a part of its hash.

    Raises: ModelError.
    """

    def __init__(self, folder: Path, n_vocab: int, splitting: str = "qwen2") -> None:
        path = folder / FILE_NAME
        try:
            data: dict[str, Any] = msgspec.json.decode(path.read_bytes())
            special = {str(t["content"]): int(t["id"]) for t in data["added_tokens"]}
            ids = {**{str(t): int(i) for t, i in data["model"]["vocab"].items()}, **special}
            kind = data["model"]["type"]
        except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError) as e:
            raise ModelError(
                f"{path}: not a tokenizer that can be read: {e}",
                "Give the folder of the model, with its tokenizer.json.",
            ) from e
        if kind != "BPE" or not all(0 <= i < n_vocab for i in ids.values()):
            raise ModelError(
                f"{path}: not a byte-level BPE of at most {n_vocab:,} tokens",
                "Drafting for an engine needs such a model, as Qwen2.5-Coder is.",
            )
        self.n_vocab = n_vocab
        self._ids = ids
        self._special = special
        self._splitting = splitting

    @cached_property
    def pieces(self) -> list[bytes]:
        """The bytes of every token, by id; b"" for special tokens and ids without one."""
        pieces = [b""] * self.n_vocab
        for text, token in self._ids.items():
            if text not in self._special:
                pieces[token] = bytes_of(text)
        return pieces

    @cached_property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """(n_vocab,) lexical kind of each token, see `drafters.token_kinds`."""
        return np.fromiter(map(kind_of, self.pieces), np.uint8, self.n_vocab)

    @cached_property
    def hash(self) -> str:
        """Identity of the vocabulary: that of the same model as a GGUF file, so that indexes made
        for one serve the other."""
        # GGUF files name ids that the tokenizer lacks, as where a vocabulary is rounded up.
        texts = [f"[PAD{i}]" for i in range(self.n_vocab)]
        for text, token in self._ids.items():
            texts[token] = text
        digest = hashlib.blake2b(digest_size=10)
        for key in ("gpt2", self._splitting, *texts):
            digest.update(key.encode() + b"\0")
        return digest.hexdigest()

    @cached_property
    def json_hash(self) -> str:
        """Identity of the vocabulary for those who read the same file, see `JsonVocabulary`."""
        texts = [""] * (1 + max(self._ids.values()))
        for text, token in self._ids.items():
            texts[token] = text
        return hash_of(texts)

    @cached_property
    def fim(self) -> FimTokens | None:
        """The markers of a fill-in-the-middle prompt; None for a model without them."""
        family = family_in(self._ids, "")
        return None if family is None else family.tokens(self._ids)
