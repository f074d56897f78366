"""A backend whose model rewrites a window: between two special tokens it reads the window, and
writes it with one word in the place of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from codespec.backends.base import KvType, TargetBackend
from codespec.backends.byte_tokens import N_BYTES, ByteTokenizer
from codespec.backends.fake import EOS, FakeModel, FakeTarget
from codespec.types import Logits, ModelInfo

WINDOW, REWRITTEN = "<window>", "<rewritten>"
TOKENIZER = ByteTokenizer(("<end>", "<prefix>", "<suffix>", "<middle>", WINDOW, REWRITTEN))
OLD, NEW = b"fetch(", b"fetch_all("
CERTAIN = 10.0
"""Logit of the next byte; that of all others is 0."""


def rewritten(context: tuple[int, ...]) -> Logits:
    """Logits of the byte that comes next in the window's new text, or of the end."""
    logits = np.zeros(TOKENIZER.n_vocab, np.float32)
    start, end = (TOKENIZER.markers[marker] for marker in (WINDOW, REWRITTEN))
    said: tuple[int, ...] = ()
    new = b""
    if end in context:
        at = len(context) - 1 - context[::-1].index(end)
        begin = at - context[at::-1].index(start)
        new = bytes(t for t in context[begin + 1 : at] if t < N_BYTES).replace(OLD, NEW)
        said = context[at + 1 :]
    is_right = bytes(t for t in said if t < N_BYTES) == new[: len(said)]
    logits[new[len(said)] if is_right and len(said) < len(new) else EOS] = CERTAIN
    return logits


class RewriterModel(FakeModel):
    """The model."""

    @property
    def info(self) -> ModelInfo:
        return self.context(n_ctx=4096).info

    @property
    def tokenizer(self) -> ByteTokenizer:
        return TOKENIZER

    @property
    def special_tokens(self) -> Mapping[str, int]:
        return TOKENIZER.markers

    def context(
        self, *, n_ctx: int, n_threads: int = 0, kv_type: KvType = "f16", max_saved_bytes: int = 0
    ) -> FakeTarget:
        target = FakeTarget(rewritten, TOKENIZER.n_vocab, order=1 << 20, n_ctx=n_ctx)
        target.info = replace(target.info, name="Rewriter", tokenizer_hash=TOKENIZER.hash)
        return target


class RewriterBackend(TargetBackend):
    """The backend `rewriter:`."""

    name = "rewriter"

    def open(
        self,
        where: str,
        *,
        n_gpu_layers: int = -1,
        mtp_head: bool = False,
        vocab_only: bool = False,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> RewriterModel:
        return RewriterModel()


BACKEND = RewriterBackend()
