"""The loop: draft, verify in one pass, keep what was accepted, again.

With no drafter this is plain decoding, and with any drafter it emits the same tokens: only
`verify.accept` decides what is emitted, from the target's law alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from codespec.drafters.chain import DraftChain
from codespec.sampling import Sampler
from codespec.types import (
    CancelledError,
    Context,
    Draft,
    Finish,
    Source,
    SourceStats,
    TargetModel,
    Trace,
    Verdict,
)
from codespec.verify import accept

Stop = Callable[[list[int]], bool]
"""Whether the output is complete, asked after every token with all tokens so far."""


@dataclass(frozen=True, slots=True)
class Limits:
    max_tokens: int
    deadline: float = float("inf")  # on the completer's clock, in seconds
    max_width: int = 16


class Completer:
    """Decodes with one target and one chain of drafters. One thread only."""

    def __init__(
        self, target: TargetModel, chain: DraftChain, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._target = target
        self._chain = chain
        self._clock = clock

    def run(
        self,
        context: Context,
        sampler: Sampler,
        limits: Limits,
        stop: Stop = lambda emitted: False,
        cancelled: Callable[[], bool] = lambda: False,
        trace: Trace | None = None,
    ) -> tuple[list[int], Finish]:
        """(emitted tokens, without the end-of-generation token; why it ended)."""
        target, chain, clock = self._target, self._chain, self._clock
        trace = Trace() if trace is None else trace
        started = clock()
        emitted: list[int] = []

        def late() -> bool:
            return cancelled() or clock() >= limits.deadline

        try:
            chain.begin(context)
            trace.n_prompt_tokens = len(context.prompt)
            trace.n_prompt_cached = target.prefill(context.prompt, late)
            committed = context.prompt
            while True:
                if late():
                    raise CancelledError
                if len(committed) >= target.info.n_ctx:
                    return emitted, "length"
                n_max = self._room(limits, len(committed), len(emitted))
                t0 = clock()
                draft = chain.propose(np.array(emitted, np.int32), n_max)
                t1 = clock()
                rows = target.decode(committed[target.n_cached :], draft)
                verdict = accept(draft, rows, sampler, emitted, target.info.eog)
                target.keep(verdict.path)
                t2 = clock()
                if not trace.n_target_passes:
                    trace.first_token_ms = (t2 - started) * 1e3
                _count(trace, draft, verdict, t1 - t0, t2 - t1)
                finish = self._append(emitted, verdict, limits, stop, trace)
                chain.observe(np.array(emitted, np.int32), draft, verdict)
                if finish:
                    return emitted, finish
                committed = np.concatenate([committed, np.array(verdict.emitted, np.int32)])
        except CancelledError:
            return emitted, "cancelled" if cancelled() else "deadline"

    def _append(
        self, emitted: list[int], verdict: Verdict, limits: Limits, stop: Stop, trace: Trace
    ) -> Finish | None:
        """Take the verdict's tokens one by one, so that the end is where plain decoding ends."""
        for token in verdict.emitted:
            if token in self._target.info.eog:
                return "stop"
            emitted.append(token)
            trace.n_tokens += 1
            if stop(emitted):
                return "stop"
            if len(emitted) >= limits.max_tokens:
                return "length"
        return None

    def _room(self, limits: Limits, n_committed: int, n_emitted: int) -> int:
        """Most nodes worth drafting: a pass emits one token more than it accepts."""
        return min(
            limits.max_width,
            self._target.max_draft,
            limits.max_tokens - n_emitted - 1,
            self._target.info.n_ctx - n_committed - 1,
        )


def _count(trace: Trace, draft: Draft, verdict: Verdict, draft_s: float, target_s: float) -> None:
    trace.n_target_passes += 1
    trace.draft_ms += draft_s * 1e3
    trace.target_ms += target_s * 1e3
    trace.n_drafted += len(draft)
    trace.n_accepted += len(verdict.path)
    accepted = set(verdict.path)
    for i, source in enumerate(draft.sources.tolist()):
        label = Source(source).label
        stats = trace.by_source.setdefault(label, SourceStats())
        stats.n_drafted += 1
        stats.n_accepted += i in accepted
