"""True text with the passes of a real model, on the clock: what it says is replaced with the text.

So a model of random weights, which agrees with no draft, shows what drafting brings with real
passes, real cliffs, and everything that goes on between two of them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from codespec.backends.llama import LlamaTarget
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.combined import CombinedDrafter
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import Context, SamplingParams, Tokenizer, Tokens, Trace
from codespec.verify.sampling import Sampler

from ..replay import WITH_DRAFT, ForcedTarget, Replay, cost_of
from ..replay_draft import ReplayDraftModel
from ..replay_trees import Tree
from ..results import Row

CONFIGS = "plain", "codespec", "codespec-edits", WITH_DRAFT


class ClockReplay(Replay):
    """`Replay` by the clock. curve: is refined by what passes take. draft: a draft model. n_prompt:
    tokens before a hunk that the model reads."""

    def __init__(
        self,
        root: Path,
        tokenizer: Tokenizer,
        target: LlamaTarget,
        curve: CostCurve,
        draft: ReplayDraftModel | None = None,
        n_prompt: int = 512,
    ) -> None:
        super().__init__(root, tokenizer, curve, draft=draft, max_leaves=target.can.max_leaves)
        self._real = ForcedTarget(target)
        self._n_prompt = n_prompt
        self.results = {name: self.results[name] for name in CONFIGS if name in self.results}
        self._predicted: dict[str, float] = dict.fromkeys(self.results, 0.0)

    def _replay(self, context: Context, truth: Tokens, tree: Tree) -> None:
        context = dataclasses.replace(context, prompt=context.prompt[-self._n_prompt :])
        self._real.truth = truth
        self._decode(context, self._drafter("plain", truth, tree), 1)  # reads the prompt
        for name, result in self.results.items():
            drafter = self._drafter(name, truth, tree)
            if (draft := self._draft_of(name)) is not None:
                draft.begin(context)
            trace = self._decode(context, drafter, len(truth))
            result.add(trace, trace.target_ms + trace.draft_ms)
            self._predicted[name] += cost_of(trace.pass_width, self._curve) + trace.draft_ms

    def _decode(self, context: Context, drafter: CombinedDrafter, n_tokens: int) -> Trace:
        trace = Trace()
        limits = OutputLimits(n_tokens, max_width=self._width)
        Completer(self._real, drafter, time.perf_counter, self._observe).run(
            context, Sampler(SamplingParams()), limits, trace=trace
        )
        return trace

    def _observe(self, widths: Sequence[int], ms: Sequence[float]) -> None:
        for n, took_ms in zip(widths, ms, strict=True):
            if n <= 1 + self._width:
                self._curve.observe(n, took_ms)

    def clock_rows(self) -> list[Row]:
        plain = self.results["plain"]
        by_parts = self._predicted["plain"]
        return [
            {
                "config": name,
                "n_hunks": self.n_hunks,
                "n_tokens": result.n_tokens,
                "mat": result.n_tokens / result.n_passes,
                "drafted_per_pass": result.n_drafted / result.n_passes,
                "ms_per_token": result.cost / result.n_tokens,
                "speedup": plain.cost / result.cost,
                "predicted_speedup": by_parts / self._predicted[name],
                **({"draft_model": draft.name} if (draft := self._draft_of(name)) else {}),
            }
            for name, result in self.results.items()
        ]
