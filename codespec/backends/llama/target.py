"""A llama.cpp context as a `Target`: one batch a verification, logits after its tokens alone.

Copying a sequence in the unified KV cache copies no keys and values.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from codespec.backends.base import CancelledError, Capabilities, KvType, Target
from codespec.backends.checkpoints import LEAST_HELD, Checkpoint, Checkpoints
from codespec.backends.kv import CommittedTokens
from codespec.backends.llama.batch import MAIN, MAX_LEAVES, Batch
from codespec.backends.llama.chunk_size import ChunkSize
from codespec.backends.llama.context import LlamaContext, LogitsView, context_params
from codespec.backends.llama.interrupts import interrupts_noted
from codespec.backends.llama.loader import (
    LoadedModel,
    context_calls,
    forget_causes,
    last_cause,
    lib,
    not_generative,
    wants_memory,
)
from codespec.backends.llama.memory import out_of_memory
from codespec.backends.llama.rollback import n_sequences, rollback_of
from codespec.backends.llama.states import States
from codespec.errors import ModelError
from codespec.native import Drafting, Ends, Rows, Stretch
from codespec.system import pulse
from codespec.system.processes import default_threads
from codespec.types import NO_DRAFT, Draft, ModelInfo, Tokens

# A pass over fewer tokens than this is too short to be worth interrupting, and calling back into
# Python for every node of its graph would cost more than it could save.
MIN_ABORTABLE = 32

# States of fewer tokens are not saved, and one that saves fewer than half as many is not restored.
# Saving and restoring takes as long as a pass over one or two tokens.
_WORTH_SAVING = 16
# Where the KV cache cannot roll back, a checkpoint is made at the last multiple of so many prompt
# tokens: after an edit or a rejection tokens are recomputed from there.
_CHECKPOINT_EVERY = 32

# Chunk of prefill on a CPU: faster than 512 by a tenth, and less is lost where a chunk is
# cancelled; chunks of the least size are never cancelled.
_CPU_CHUNK, _LEAST_CHUNK = 256, MIN_ABORTABLE // 2


class LlamaTarget(LlamaContext, Target):
    """`Target` over llama.cpp. One thread only.

    n_ctx:   size of the KV cache in tokens.
    n_batch: most tokens of one pass, and so of a prefill chunk between cancellation checks.
    n_threads: CPU threads; 0 for `processes.default_threads`.
    kv_type: number type of keys and values. Quantised values need flash attention.
    max_saved_bytes: memory for saved states: of documents that others replaced in the KV cache, and
        of paused generations (`checkpoint`), of which the latest stay even where they take more.

    Raises: ModelError when the context does not fit into memory, or the model lacks `kv_type`.
    """

    def __init__(
        self,
        model: LoadedModel,
        *,
        n_ctx: int = 2048,
        n_batch: int = 512,
        n_threads: int = 0,
        kv_type: KvType = "f16",
        max_saved_bytes: int = 1 << 28,
    ) -> None:
        self._model = model
        n_threads = n_threads or default_threads()
        params = context_params(model, n_ctx, n_batch, n_threads, kv_type)
        params.n_seq_max = n_sequences(model.handle)
        forget_causes()
        self._ctx = lib.llama_init_from_model(model.handle, params)
        if not self._ctx:
            if wants_memory():
                raise out_of_memory(
                    model.path, f"for a context of {n_ctx} tokens", "set model.n_ctx lower"
                )
            what = "Choose a smaller model" if kv_type == "f16" else 'Set model.kv_type = "f16"'
            raise ModelError(
                f"{model.path}: no context of {n_ctx} tokens can be made"
                f"{last_cause() or ': there may be no memory for it'}",
                f"{what}, or set model.n_ctx lower.",
            )
        self._memory = lib.llama_get_memory(self._ctx)
        if not self._memory:
            lib.llama_free(self._ctx)
            raise not_generative(model.path)
        self.n_ctx = int(lib.llama_n_ctx(self._ctx))
        self.info: ModelInfo = dataclasses.replace(model.info, n_ctx=self.n_ctx)
        self._n_batch = int(lib.llama_n_batch(self._ctx))
        most = min(self._n_batch, _CPU_CHUNK) if model.backend == "cpu" else self._n_batch
        self._chunk = ChunkSize(_LEAST_CHUNK, most)
        self._rollback = rollback_of(model.handle, self._memory)
        rolls_back = self._rollback.is_total
        self._states = States(model.handle, self._ctx)
        self._saved = Checkpoints(max_saved_bytes, can_truncate=rolls_back)
        full = self.n_ctx * model.kv_bytes_a_token(kv_type)
        self.saved_bytes = max(max_saved_bytes, LEAST_HELD * full)
        self.is_exact = model.is_exact and kv_type == "f16"
        max_draft = min(64, self._n_batch // 2)
        self.can = Capabilities(
            max_draft,
            # Chains where passes over them are exact: trees would be 1 to 3 % faster, not exact.
            max_leaves=1 if self.is_exact or not rolls_back else MAX_LEAVES,
            max_branches=min(MAX_LEAVES, 1 + max_draft) if rolls_back else 1,
            rolls_back=rolls_back,
            has_threads=model.backend == "cpu",
            has_stretches=rolls_back,
        )
        self.n_threads = n_threads
        self.busy_s = 0.0
        self.read_ms = 0.0
        self._kv = CommittedTokens(self.n_ctx)
        self._is_held = False  # the KV cache equals a held checkpoint
        self._draft = NO_DRAFT
        self._leaf_nodes: list[int] = []
        self._batch = Batch(self._n_batch)
        sizes = self.info.n_vocab, self.n_ctx
        self._calls = context_calls(self._ctx, self._memory, self._batch.raw, *sizes)
        self._n_forked = 0  # tokens of each branch after the committed ones
        self._view = LogitsView(max_draft + 1, self.info.n_vocab)
        self._cancelled: Callable[[], bool] | None = None
        self._late: Callable[[], bool] | None = None
        # llama.cpp keeps the pointer for the context's life.
        self._abort_callback = lib.ggml_abort_callback(self._should_abort)
        self.count_steps()

    @property
    def n_cached(self) -> int:
        return len(self._kv)

    @property
    def cached(self) -> Tokens:
        """(n_cached,) the committed tokens in the KV cache; read-only view."""
        return self._kv.tokens

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        if len(tokens) > self.n_ctx - 1:
            raise ModelError(
                f"{len(tokens)} tokens do not fit the context of {self.n_ctx}",
                "Set model.n_ctx higher, or completion.n_prefix_tokens lower.",
            )
        # The last token is always decoded anew, for its logits.
        known = tokens[:-1]
        self._begin(known)
        self._late = cancelled
        n_reused = len(self._kv)
        while len(tokens) - len(self._kv) > self._n_chunk:
            self._read(tokens[len(self._kv) : len(self._kv) + self._n_chunk], cancelled)
            if not self.can.rolls_back and self._chunk.is_short:
                self._put_aside()
        if not self.can.rolls_back:
            n = len(known) // _CHECKPOINT_EVERY * _CHECKPOINT_EVERY
            if n > len(self._kv):
                self._read(tokens[len(self._kv) : n], cancelled)
                self._put_aside()
        self._rollback.prompted(len(self._kv))
        return n_reused

    def _begin(self, known: Tokens) -> None:
        """Reuse the longest cached or saved prefix of `known`; roll back the rest."""
        self._recall(known)
        self._cut(self._kv.common_prefix(known))
        self._chunk.begin()

    @property
    def _n_chunk(self) -> int:
        """Tokens of a prefill chunk. The last chunk is part of the first verification pass."""
        return min(self._n_batch - self.can.max_draft, self._chunk.n)

    def read_ahead(self, tokens: Tokens, cancelled: Callable[[], bool]) -> None:
        known = tokens[:-1]
        self._begin(known)
        while len(known) - len(self._kv) > 0:
            self._read(known[len(self._kv) : len(self._kv) + self._n_chunk], cancelled)
            if not self.can.rolls_back:
                self._put_aside()

    def _read(self, part: Tokens, cancelled: Callable[[], bool]) -> None:
        if cancelled():
            raise CancelledError
        self._batch.lay(part, NO_DRAFT, len(self._kv), want_last=False)
        busy_s = self.busy_s
        self._run(cancelled)
        ms = (self.busy_s - busy_s) * 1e3 / len(part)
        self.read_ms = min(self.read_ms or ms, ms)
        self._kv.append(part)
        self._chunk.done()

    def _recall(self, tokens: Tokens) -> None:
        """Restore the saved state with the longest prefix of `tokens`, if that beats the cache."""
        n_here = self._kv.common_prefix(tokens)
        n_here = self._rollback.reach(n_here, len(self._kv))
        n_there, checkpoint = self._saved.find(tokens)
        is_better = checkpoint is not None and n_there >= n_here + _WORTH_SAVING // 2
        # Taken first: saving another state may drop this one to make room.
        state = self._saved.take(checkpoint) if checkpoint is not None and is_better else None
        if self.can.rolls_back and (is_better or 2 * n_here < len(self._kv)):
            self._put_aside()  # another document: this one may be completed again
        if state is not None and checkpoint is not None:
            self._restore(Checkpoint(checkpoint.tokens, state))

    def _put_aside(self) -> None:
        if len(self._kv) < (_CHECKPOINT_EVERY if not self.can.rolls_back else _WORTH_SAVING):
            return
        # Copied only where it can be kept: a large model's state takes as long as some passes.
        if not self._is_held and self._states.n_bytes <= self._saved.room:
            state = self._states.read()
            if len(state):
                self._saved.add(self._kv.tokens, state)

    def checkpoint(self) -> Checkpoint:
        held = self._saved.hold(self._kv.tokens, self._states.read())
        self._is_held = True
        return held

    def restore(self, held: Checkpoint) -> None:
        if not len(held.state):
            return
        if self.can.rolls_back:
            self._put_aside()
        self._restore(held)

    def release(self, held: Checkpoint) -> None:
        self._saved.release(held)

    def _restore(self, checkpoint: Checkpoint) -> None:
        self._is_held = False
        self._cut(0)
        if self._states.restore(checkpoint.state):
            self._kv.append(checkpoint.tokens)
        else:
            self._cut(0)

    def decode(self, tokens: Tokens, draft: Draft) -> Rows:
        self._leaf_nodes = self._batch.lay(tokens, draft, len(self._kv), want_last=True)
        for s in range(len(self._leaf_nodes)):
            lib.llama_memory_seq_cp(self._memory, MAIN, 1 + s, -1, -1)
        if len(draft):
            self._rollback.drafting(len(self._kv))
        # A pass over the rest of a long prompt can be cancelled, too.
        late, self._late = self._late, None
        self._run(late if len(tokens) >= MIN_ABORTABLE else None)
        self._kv.append(tokens)
        self._draft = draft
        return self._logits()

    def decode_stretch(
        self,
        drafting: Drafting | None,
        emitted: Sequence[int],
        last: int,
        ends: Ends,
        n_tokens: int,
        n_passes: int,
        n_draft: int,
        ms: float,
        interrupted: Callable[[], bool],
        is_scored: bool = False,
    ) -> Stretch:
        self._batch.all_in_main()
        self._is_held = False
        at = last, len(self._kv), ends
        limits = n_tokens, n_passes, min(n_draft, self.can.max_draft), ms
        pulse.computing(self.n_threads)
        try:
            done = self._calls.stretch(drafting, emitted, *at, *limits, interrupted, is_scored)
        except BaseException:
            self._recover()
            raise
        finally:
            pulse.computing(1)
            pulse.step()
        if done.tokens:
            self._kv.extend([last, *done.tokens[:-1]])
        self.busy_s += sum(done.pass_ms) / 1e3
        if done.code:
            self._failed(done.code, 1)
        return done

    def fork(self) -> None:
        self._n_forked = 0
        if self.can.max_branches == 1:
            self._rollback.drafting(len(self._kv))
            return
        for s in range(self.can.max_branches):
            lib.llama_memory_seq_cp(self._memory, MAIN, 1 + s, -1, -1)

    def decode_branches(self, branches: Sequence[int], tokens: Sequence[int]) -> Rows:
        at = len(self._kv) + self._n_forked
        if self.can.max_branches == 1:
            self._batch.lay(np.asarray(tokens, np.int32), NO_DRAFT, at, want_last=True)
        else:
            self._batch.lay_branches(branches, tokens, at)
        self._run(None)
        self._n_forked += 1
        return self._logits()

    def join(self) -> None:
        if self.can.max_branches == 1:
            self._kv.truncate(self._rollback.cut(len(self._kv)))
            return
        for s in range(self.can.max_branches):
            lib.llama_memory_seq_rm(self._memory, 1 + s, -1, -1)

    def _logits(self) -> Rows:
        started = time.perf_counter()
        rows = self._view.of(self._ctx)
        self.busy_s += time.perf_counter() - started
        return rows

    def keep(self, path: Sequence[int]) -> None:
        draft, start = self._draft, len(self._kv)
        if draft is NO_DRAFT:
            return
        end = start + len(path)
        if self._leaf_nodes:
            self._keep_branch(path, start, end)
            self._kv.append(draft.tokens[list(path)])
        else:
            self._kv.append(draft.tokens)
            self._cut(end)
        self._draft = NO_DRAFT
        self._leaf_nodes = []

    def _keep_branch(self, path: Sequence[int], start: int, end: int) -> None:
        if path:
            node = path[-1]
            leaf = next(
                s for s, end_node in enumerate(self._leaf_nodes) if self._above(node, end_node)
            )
            lib.llama_memory_seq_cp(self._memory, 1 + leaf, MAIN, start, end)
        for s in range(len(self._leaf_nodes)):
            lib.llama_memory_seq_rm(self._memory, 1 + s, -1, -1)

    def _above(self, node: int, descendant: int) -> bool:
        while descendant > node:
            descendant = int(self._draft.parents[descendant])
        return descendant == node

    def _run(self, cancelled: Callable[[], bool] | None) -> None:
        if cancelled is None or int(self._batch.raw.n_tokens) < MIN_ABORTABLE:
            self._run_batch()
            return
        with interrupts_noted() as is_interrupted:
            self._cancelled = lambda: is_interrupted() or cancelled()
            lib.llama_set_abort_callback(self._ctx, self._abort_callback, None)
            try:
                self._run_batch()
            finally:
                self.count_steps()
                self._cancelled = None

    def _run_batch(self) -> None:
        batch = self._batch.raw
        self._is_held = False
        started = time.perf_counter()
        code = self.run_pass(batch)
        self.busy_s += time.perf_counter() - started
        if code:
            self._failed(code, int(batch.n_tokens))

    def _failed(self, code: int, n_tokens: int) -> NoReturn:
        self._recover()
        if code == 2:
            self._chunk.lost()
            raise CancelledError
        raise ModelError(
            f"llama.cpp could not decode {n_tokens} tokens (code {code}){last_cause()}",
            "This is a fault of codespec or of the model file; the request was dropped.",
        )

    def _recover(self) -> None:
        """Roll back a failed pass: drop its tokens from the KV cache, and keep the committed ones
        where that is possible."""
        self._leaf_nodes = []
        if self.can.rolls_back:
            for s in range(1, 1 + MAX_LEAVES):
                lib.llama_memory_seq_rm(self._memory, s, -1, -1)
        self._kv.truncate(self._rollback.cut(len(self._kv)))

    def _should_abort(self, _data: object) -> bool:
        pulse.step()
        return self._cancelled is not None and self._cancelled()

    def _cut(self, n: int) -> None:
        """Roll the KV cache back to the first `n` committed tokens, or fewer."""
        if n < len(self._kv) or not n:
            self._kv.truncate(self._rollback.cut(n))
