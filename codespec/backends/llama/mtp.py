"""A target's MTP head (multi-token prediction): the layer that predicts the token after next, as a
draft model for the target.

Source: Gloeckle et al. 2024; DeepSeek-AI 2024 (DeepSeek-V3), section 2.2.

The head reads a token together with the target's hidden state of the token before it. It predicts
the next token, with a hidden state of its own that the next step can continue from. So it needs the
hidden states of all tokens that the target reads. They are kept, prompts included, until other
tokens take their places: the head reads lazily, and after an edit it starts at a token whose
predecessor the target does not read again. Memory grows with them, 4 bytes a number.

Position p of the head's KV cache belongs to token p and the hidden state of token p - 1; zeros
stand in before the first. Hidden states are unknown where a saved state was restored into the
target's KV cache: a few such positions get zeros; behind many the head starts anew.
"""

from __future__ import annotations

import ctypes
import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from codespec.backends.base import CancelledError, Capabilities, KvType, MtpHead
from codespec.backends.kv import CommittedTokens
from codespec.backends.llama.batch import MAIN, Batch
from codespec.backends.llama.context import FloatRows, LlamaContext, LogitsView, context_params
from codespec.backends.llama.loader import LoadedModel, forget_causes, last_cause, lib
from codespec.backends.llama.nextn import OF_WANTED_ONLY, enable_hidden_states, hidden_states_at
from codespec.backends.llama.target import LlamaTarget
from codespec.errors import ModelError
from codespec.native import Rows, common_prefix
from codespec.types import NO_DRAFT, Draft, ModelInfo, Tokens

Hidden = npt.NDArray[np.float32]

_FEW, _SHARE = 4, 8
"""Most unknown hidden states that get zeros: `_FEW`, or one in `_SHARE` of the tokens before
them."""

_N_MEASURED = 32
"""Most tokens beyond one of passes that the cost curve is measured with."""


class HiddenStates:
    """Hidden states of one text, of its tokens `first` to `end` - 1 without a gap.

    rows: (n_ctx, width) float32, row i of token i.
    """

    def __init__(self, n_ctx: int, width: int) -> None:
        self._tokens = np.zeros(n_ctx, np.int32)
        self.rows: Hidden = np.empty((n_ctx, width), np.float32)  # the system gives pages on use
        self._first = self._end = 0

    def note(self, before: Tokens, tokens: Tokens, rows: Hidden) -> None:
        """Store the hidden states `rows` (n, width) of `tokens`, which follow the tokens
        `before`."""
        start, end = len(before), len(before) + len(tokens)
        n_same = common_prefix(self._tokens[: self._end], before)
        self._first = start if n_same < start else min(self._first, start)
        self._tokens[:start] = before
        self._tokens[start:end] = tokens
        self.rows[start:end] = rows
        self._end = end

    def known(self, tokens: Tokens) -> tuple[int, int]:
        """Range (first, end) of the tokens of a text whose hidden states are known; empty: first ==
        end."""
        end = common_prefix(self._tokens[: self._end], tokens)
        return min(self._first, end), end


class HiddenStateTarget(LlamaTarget):
    """A target that keeps hidden states once `keep_hidden_states` was called."""

    hidden: HiddenStates | None = None
    _n_read_last = 0

    def keep_hidden_states(self) -> HiddenStates:
        """Keep the hidden states of all tokens that are read from now on."""
        self.can = dataclasses.replace(self.can, has_stretches=False)
        width = int(lib.llama_model_n_embd_out(self._model.handle))
        enable_hidden_states(self._ctx, wanted_only=False)
        self._hidden_rows = FloatRows(self._n_batch, width)
        self.hidden = HiddenStates(self.n_ctx, width)
        return self.hidden

    def _read(self, part: Tokens, cancelled: Callable[[], bool]) -> None:
        before = self._kv.tokens
        super()._read(part, cancelled)
        self._note(before, part, range(len(part)))

    def decode(self, tokens: Tokens, draft: Draft) -> Rows:
        before = self._kv.tokens
        rows = super().decode(tokens, draft)
        self._n_read_last = len(tokens)
        self._note(before, tokens, range(len(tokens)))
        return rows

    def keep(self, path: Sequence[int]) -> None:
        # Also where the target recomputes them: the head may draft before that.
        if path:
            kept = self._draft.tokens[list(path)]
            self._note(self._kv.tokens, kept, [self._n_read_last + node for node in path])
        super().keep(path)

    def _note(self, before: Tokens, tokens: Tokens, at: Sequence[int]) -> None:
        """Store the last pass's hidden states. at: places of `tokens` in that pass."""
        rows = (
            self._hidden_rows.at(hidden_states_at(self._ctx)) if self.hidden is not None else None
        )
        if rows is not None and self.hidden is not None:
            is_start = isinstance(at, range)
            self.hidden.note(before, tokens, rows[: len(at)] if is_start else rows[list(at)])


class LlamaMtpHead(LlamaContext, MtpHead):
    """`MtpHead` over a llama.cpp context of the head. A chain in `decode` serves to measure the
    cost curve alone. One thread only.

    Raises: ModelError where no context can be made, or its logits are NaN or infinite.
    """

    _hidden: HiddenStates | None = None

    def __init__(
        self,
        model: LoadedModel,
        target: HiddenStateTarget,
        *,
        n_batch: int = 512,
        kv_type: KvType = "f16",
    ) -> None:
        params = context_params(model, target.n_ctx, n_batch, target.n_threads, kv_type)
        params.n_seq_max = 1
        params.ctx_type = lib.LLAMA_CONTEXT_TYPE_MTP
        forget_causes()
        self._ctx = lib.llama_init_from_model(model.handle, params)
        if not self._ctx:
            raise ModelError(f"{model.path}: its MTP head cannot draft{last_cause()}")
        self._memory = lib.llama_get_memory(self._ctx)
        self._wanted_only = model.info.architecture in OF_WANTED_ONLY
        enable_hidden_states(self._ctx, wanted_only=self._wanted_only)
        n_batch = int(lib.llama_n_batch(self._ctx))
        width = int(lib.llama_model_n_embd_out(model.handle))
        self._batch = Batch(n_batch)
        self._given: Hidden = np.zeros((n_batch, width), np.float32)
        floats = ctypes.POINTER(ctypes.c_float)
        self._batch.raw.embd = self._given.ctypes.data_as(floats)
        self.info: ModelInfo = _info_of(model, target.n_ctx)
        self.can = Capabilities(min(_N_MEASURED, n_batch // 2), has_threads=model.backend == "cpu")
        self._n_chunk = n_batch - self.can.max_draft
        self.n_threads = target.n_threads
        self.count_steps()
        self.busy_s = 0.0
        self._kv = CommittedTokens(target.n_ctx)
        self._first = 0  # the KV cache holds no token before this one
        self._n_sure = 0  # tokens read with the target's hidden states, not with the head's
        self._logits = LogitsView(1, self.info.n_vocab)
        self._states = FloatRows(n_batch, width)
        self._own: Hidden = np.zeros(width, np.float32)
        self._own_at = -1  # index of the token that `_own` is the hidden state of
        try:
            row = self.decode(np.zeros(1, np.int32), NO_DRAFT).row(0)
            if not np.isfinite(row.max()) or not np.isfinite(self._own).all():
                raise ModelError(f"{model.path}: its MTP head computes NaN or infinite numbers")
            self._cut(0)
            self._hidden = target.keep_hidden_states()
        except ModelError:
            self.close()
            raise

    @property
    def n_cached(self) -> int:
        return len(self._kv)

    def knows(self, tokens: Tokens) -> bool:
        if self._hidden is None or not len(tokens):
            return False
        first, end = self._hidden.known(tokens)
        return len(tokens) == 1 or first < len(tokens) - 1 <= end

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        known = tokens[:-1]
        self._cut(min(self._kv.common_prefix(known), self._n_sure))
        if self._hidden is not None:
            first, end = self._hidden.known(known)
            start = first + 1 if first else 0
            n = len(self._kv)
            # The head restarts behind the gap, or before it once the gap is closed.
            if end > first and (start > n + max(_FEW, n // _SHARE) or start < self._first):
                self._cut(0)
                self._kv.append(tokens[:start])
                self._first = self._n_sure = start
        n_reused = len(self._kv)
        while len(tokens) - len(self._kv) > self._n_chunk:
            if cancelled():
                raise CancelledError
            self._pass(tokens[len(self._kv) : len(self._kv) + self._n_chunk], want_last=False)
        return n_reused

    def decode(self, tokens: Tokens, draft: Draft) -> Rows:
        n = len(self._kv) + len(tokens)
        self._pass(np.concatenate([tokens, draft.tokens]) if len(draft) else tokens, want_last=True)
        rows = self._logits.of(self._ctx)
        if len(draft):
            self._cut(n)
        return rows

    def keep(self, path: Sequence[int]) -> None:
        """No effect: `decode` rolled the chain back."""

    def _pass(self, tokens: Tokens, *, want_last: bool) -> None:
        start, n = len(self._kv), len(tokens)
        n_sure = self._give(start, tokens)
        self._batch.lay(tokens, NO_DRAFT, start, want_last=want_last)
        began = time.perf_counter()
        code = self.run_pass(self._batch.raw)
        self.busy_s += time.perf_counter() - began
        if code:
            self._cut(0)
            raise ModelError(f"{self.info.path}: its MTP head cannot read (code {code})")
        self._kv.append(tokens)
        if self._n_sure >= start:
            self._n_sure = max(self._n_sure, n_sure)
        self._own_at = -1
        states = self._states.at(hidden_states_at(self._ctx)) if want_last else None
        if states is not None:
            self._own[:] = states[0 if self._wanted_only else n - 1]
            self._own_at = start + n - 1

    def _give(self, start: int, tokens: Tokens) -> int:
        """Put the hidden states before these tokens into the batch. Returns: the index up to which
        they are the target's."""
        given = self._given[: len(tokens)]
        given[:] = 0
        if start and self._own_at == start - 1:
            given[0] = self._own
        if self._hidden is None:
            return start
        first, end = self._hidden.known(np.concatenate([self._kv.tokens, tokens]))
        # The first hidden state is that of the token before `start`.
        first, last = max(first, start - 1), min(end, start + len(tokens) - 1)
        if first < last or (not start and len(tokens) == 1):
            at = 1 - start
            given[first + at : last + at] = self._hidden.rows[first:last]
            return last + 1
        return start

    def _cut(self, n: int) -> None:
        """Roll the KV cache back to the first `n` tokens, or to none."""
        if n < len(self._kv) or not n:
            n = n if n > self._first else 0
            if not lib.llama_memory_seq_rm(self._memory, MAIN, n or -1, -1):
                lib.llama_memory_seq_rm(self._memory, MAIN, -1, -1)
                n = 0
            self._kv.truncate(n)
            self._first = self._first if n else 0
            self._own_at = -1
        self._n_sure = min(self._n_sure, n)

    def close(self) -> None:
        if self._ctx:
            self._batch.raw.embd = None  # numpy's memory, which llama.cpp must not free
        super().close()


def _info_of(model: LoadedModel, n_ctx: int) -> ModelInfo:
    """`ModelInfo` of the head: parameters and bytes are estimates, one layer and the embedding."""
    info = model.info
    n_layers = max(1, int(lib.llama_model_n_layer(model.handle)))
    n_words = info.n_vocab * int(lib.llama_model_n_embd(model.handle))
    n_params = min(info.n_params, info.n_params // n_layers + n_words)
    n_bytes = info.file_bytes * n_params // max(1, info.n_params)
    return dataclasses.replace(info, n_ctx=n_ctx, n_params=n_params, file_bytes=n_bytes)
