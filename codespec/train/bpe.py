"""The tokenizer both bundled models share: byte-level BPE that llama.cpp and Hugging Face
tokenizers read alike.

It cuts text as Qwen2.5-Coder's does, see `codespec.training.qwen2`.

Source: Sennrich et al. 2016 (byte-pair encoding), Radford et al. 2019 (on bytes).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from codespec.errors import InputError
from codespec.train.corpus import Corpus
from codespec.training.qwen2 import SPECIAL, with_qwen2_splits

N_VOCAB = 8192
SAMPLE_BYTES = 24_000_000


def train(texts: Iterable[str], n_vocab: int = N_VOCAB) -> Tokenizer:
    """Learns the merges. Cost: about a minute for 24 MB on two cores. Deterministic for the same
    texts in order.
    """
    tokenizer = with_qwen2_splits(Tokenizer(models.BPE()))
    trainer = trainers.BpeTrainer(
        vocab_size=n_vocab,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=32,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """Raises: InputError if the tokenizer has no such token."""
    found = tokenizer.token_to_id(token)
    if found is None:
        raise InputError(f"the tokenizer lacks {token}", "Train it again with this package.")
    return found


def as_text(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer reading special tokens' texts as text: documents may contain them."""
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    content["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(content))


def sample(corpus: Corpus, n_bytes: int = SAMPLE_BYTES, seed: int = 0) -> Iterable[str]:
    """Training documents in random order until n_bytes, in the corpus's own mixture."""
    total = 0
    for document in np.random.default_rng(seed).permutation(corpus.documents("train")):
        text = corpus.text(int(document))
        yield text
        total += len(text)
        if total >= n_bytes:
            return


def load(path: Path) -> Tokenizer:
    """Reads tokenizer.json. Raises: InputError if it is none or lacks a special token."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise InputError(f"{path} is no tokenizer: {error}", "Train one first.") from error
    for token in SPECIAL:
        token_id(tokenizer, token)
    return tokenizer
