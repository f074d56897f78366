"""True text with the passes of a real model, on the clock: what it says is replaced with the text.

So a model of random weights, which agrees with no draft, shows what drafting brings with real
passes, real cliffs, and everything that goes on between two of them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codespec.backends.base import Target
from codespec.backends.llama import LlamaTarget
from codespec.drafters.chain import DraftChain
from codespec.drafters.cost import CostCurve
from codespec.engine.completer import Completer
from codespec.engine.output import Limits
from codespec.sampling import Sampler
from codespec.types import (
    NO_TOKENS,
    Context,
    Draft,
    SamplingParams,
    Tokenizer,
    Tokens,
    Trace,
)

from ..replay import WITH_DRAFT, Replay, TextRows, cost_of
from ..replay_draft import DraftModel
from ..replay_trees import Tree
from ..results import Row

CONFIGS = "plain", "codespec", "codespec-edits", WITH_DRAFT


class ForcedTarget(Target):
    """`Target` whose passes are another's, and whose words are `truth`."""

    def __init__(self, target: LlamaTarget) -> None:
        self._target = target
        self.info, self.can = target.info, target.can
        self.truth = NO_TOKENS
        self._n_said = 0

    @property
    def n_cached(self) -> int:
        return self._target.n_cached

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        self._n_said = 0
        return self._target.prefill(tokens, cancelled)

    def decode(self, tokens: Tokens, draft: Draft) -> TextRows:
        rows = self._target.decode(tokens, draft)
        rows.argmax(0)  # what the loop would look at, and by then the pass is over
        return TextRows(self.truth, draft, self._n_said)

    def keep(self, path: Sequence[int]) -> None:
        self._target.keep(path)
        self._n_said += len(path) + 1


class ClockReplay(Replay):
    """`Replay` by the clock. curve: is refined by what passes take. draft: a draft model. n_prompt:
    tokens before a hunk that the model reads."""

    def __init__(
        self,
        root: Path,
        tokenizer: Tokenizer,
        target: LlamaTarget,
        curve: CostCurve,
        draft: DraftModel | None = None,
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
        self._decode(context, self._chain("plain", truth, tree), 1)  # reads the prompt
        for name, result in self.results.items():
            chain = self._chain(name, truth, tree)
            if (draft := self._draft_of(name)) is not None:
                draft.begin(context)
            trace = self._decode(context, chain, len(truth))
            result.add(trace, trace.target_ms + trace.draft_ms)
            self._predicted[name] += cost_of(trace.pass_width, self._curve) + trace.draft_ms

    def _decode(self, context: Context, chain: DraftChain, n_tokens: int) -> Trace:
        trace = Trace()
        limits = Limits(n_tokens, max_width=self._width)
        Completer(self._real, chain, time.perf_counter, self._observe).run(
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
