"""A deterministic target over bytes, the backend `fake:`: for tests of everything above a model.

Logits are a hash of the last few tokens, so any next-token distribution can be checked exactly, and
the KV cache is a plain list whose use (positions, commits, rollbacks) assertions check.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from codespec.backends.base import (
    CancelledError,
    Capabilities,
    KvType,
    Model,
    Target,
    TargetBackend,
)
from codespec.backends.byte_tokens import N_BYTES, ByteTokenizer
from codespec.types import NO_DRAFT, Draft, FimTokens, Logits, ModelInfo, Tokens
from codespec.verify.tree import leaves

EOS, FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE = 256, 257, 258, 259


LogitsFunction = Callable[[tuple[int, ...]], Logits]
"""The last tokens (at most `FakeTarget.order`) -> (n_vocab,) logits."""


def hashed_logits(n_vocab: int, scale: float = 2.0) -> LogitsFunction:
    """Logits that look random but depend on the context alone."""

    @functools.lru_cache(4096)
    def drawn(context: tuple[int, ...]) -> Logits:
        digest = hashlib.blake2b(np.asarray(context, np.int32).tobytes(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "little"))
        return (rng.standard_normal(n_vocab) * scale).astype(np.float32)

    def logits(context: tuple[int, ...]) -> Logits:
        return drawn(context).copy()

    return logits


class FakeRows:
    """`LogitsRows` by a function of the context; counts rows that were read."""

    def __init__(self, contexts: list[tuple[int, ...]], logits: LogitsFunction) -> None:
        self._contexts = contexts
        self._logits = logits
        self.n_read = 0

    def row(self, i: int) -> Logits:
        self.n_read += 1
        return self._logits(self._contexts[i])

    def argmax(self, i: int) -> int:
        return int(self.row(i).argmax())


class FakeTarget(Target):
    """`Target` whose logits are a function of the last `order` tokens."""

    def __init__(
        self,
        logits: LogitsFunction | None = None,
        n_vocab: int = N_BYTES + 4,
        order: int = 3,
        eog: frozenset[int] = frozenset({EOS}),
        n_ctx: int = 4096,
        max_draft: int = 64,
        max_leaves: int = 8,
        rolls_back: bool = True,
    ) -> None:
        fim = FimTokens(FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE) if n_vocab > FIM_MIDDLE else None
        self.info = ModelInfo(
            name="fake",
            path="",
            architecture="fake",
            n_vocab=n_vocab,
            n_ctx=n_ctx,
            n_params=0,
            file_bytes=0,
            fim=fim,
            eog=eog,
            bos=None,
            tokenizer_hash=ByteTokenizer().hash,
            backend="fake",
        )
        self.can = Capabilities(max_draft, max_leaves, rolls_back=rolls_back)
        self._n_before = 0  # cached before the last pass
        self.order = order
        self.n_passes = 0
        self._logits = logits or hashed_logits(n_vocab)
        self._kv: list[int] = []
        self._draft = NO_DRAFT

    @property
    def n_cached(self) -> int:
        return len(self._kv)

    @property
    def cached(self) -> list[int]:
        """The committed tokens in the KV cache."""
        return list(self._kv)

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        assert len(self._draft) == 0, "keep() must follow decode()"
        if cancelled():
            raise CancelledError
        wanted = tokens.tolist()
        n = 0
        while n < min(len(self._kv), len(wanted) - 1) and self._kv[n] == wanted[n]:
            n += 1
        self._kv = wanted[: max(n, len(wanted) - 8)]
        return n

    def decode(self, tokens: Tokens, draft: Draft) -> FakeRows:
        assert len(self._draft) == 0, "keep() must follow decode()"
        assert len(tokens) >= 1
        assert len(draft) <= self.can.max_draft
        assert len(leaves(draft)) <= self.can.max_leaves
        assert len(self._kv) + len(tokens) + len(draft) <= self.info.n_ctx
        self.n_passes += 1
        self._n_before = len(self._kv)
        self._kv += tokens.tolist()
        self._draft = draft
        contexts = [tuple(self._kv[-self.order :])]
        for i in range(len(draft)):
            parent = contexts[int(draft.parents[i]) + 1]
            contexts.append((*parent, int(draft.tokens[i]))[-self.order :])
        return FakeRows(contexts, self._logits)

    def keep(self, path: Sequence[int]) -> None:
        parent = -1
        for node in path:
            assert self._draft.parents[node] == parent, "path must descend from the root"
            self._kv.append(int(self._draft.tokens[node]))
            parent = node
        if not self.can.rolls_back and len(path) < len(self._draft):
            del self._kv[self._n_before :]
        self._draft = NO_DRAFT


class FakeModel(Model):
    """`Model` whose contexts are `FakeTarget`s."""

    @property
    def info(self) -> ModelInfo:
        return FakeTarget().info

    @property
    def tokenizer(self) -> ByteTokenizer:
        return ByteTokenizer()

    @property
    def special_tokens(self) -> Mapping[str, int]:
        return self.tokenizer.markers

    def context(
        self, *, n_ctx: int, n_threads: int = 0, kv_type: KvType = "f16", max_saved_bytes: int = 0
    ) -> FakeTarget:
        return FakeTarget(n_ctx=n_ctx)


class FakeBackend(TargetBackend):
    """The backend `fake:`."""

    name = "fake"

    def open(
        self,
        where: str,
        *,
        n_gpu_layers: int = -1,
        mtp_head: bool = False,
        vocab_only: bool = False,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> FakeModel:
        return FakeModel()


BACKEND = FakeBackend()
