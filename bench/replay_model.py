"""`codespec bench replay --model`: the edits of a Git history completed by a real model, timed.

The model writes its own continuation at each place, once with plain decoding and once with
drafting: whole completions by the product's own engine, on the wall clock. The speed predicted is
that of the same passes at what they cost when measured apart, with our own work as in a run that
does not count. The ideal is computed:
the same output, decoded with the ideal width for the reference trie's candidates, at what passes
cost here by the curve measured just before. It is of passes alone; `ideal-whole` has the rest of a
completion beside them, as plain decoding does: the context, what ends and mends the text.

Once before anything of a hunk is written, or, where keys are given, as an editor asks while they
are typed. Only then is anything drafted from what was said before.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from codespec.config import Settings
from codespec.drafters.combined import CombinedDrafter
from codespec.engine.completer import Completer
from codespec.engine.local import LocalEngine
from codespec.engine.measures import measures
from codespec.engine.output import OutputLimits
from codespec.engine.turns import in_one_turn
from codespec.requests import Completion, CompletionRequest
from codespec.syntax.text import encode, safe_cuts
from codespec.types import Context, SamplingParams, Tokens, Trace
from codespec.verify.sampling import Sampler

from .acceptance import by_position, by_source
from .history import Commit, History, Hunk
from .keystrokes import type_along
from .predicted import PAUSE_S, PassTimer, Run
from .reference import Ideal, Sources
from .replay import MAX_TOKENS, MIN_TOKENS, TextTarget, cost_of
from .replay_trees import CommitTrees, Tree
from .results import Row

IDEAL_WIDTH = 24
N_REPEATS = 3
"""Repeats of each completion, ways in turn; the median time counts."""


@dataclass
class _Sums:
    """One way of decoding, summed over all completions; times in milliseconds."""

    ms: float = 0.0
    decoding_ms: float = 0.0
    passes_ms: float = 0.0
    first_token_ms: list[float] = field(default_factory=list[float])
    token_ms: list[float] = field(default_factory=list[float])
    n_tokens: int = 0
    n_passes: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    runs: list[Run] = field(default_factory=list[Run])
    traces: list[Trace] = field(default_factory=list[Trace])

    def add(self, traces: Sequence[Trace], ms: Sequence[float], run: Run) -> None:
        """The repeats of one completion."""
        trace = traces[0]
        self.runs.append(run)
        self.ms += statistics.median(ms)
        self.decoding_ms += statistics.median(map(_decoding_ms, traces))
        self.passes_ms += statistics.median(trace.target_ms for trace in traces)
        self.n_tokens += trace.n_tokens
        self.n_passes += trace.n_target_passes
        self.n_drafted += trace.n_drafted
        self.n_accepted += trace.n_accepted
        self.first_token_ms.append(trace.first_token_ms)
        if trace.n_tokens > 1:
            self.token_ms.append(measures(trace).time_per_token)
        self.traces.append(trace)


class ModelReplay:
    """Replays the last commits of a history with a real model. n_keys: of each hunk, see
    `type_along`; 0: none is typed."""

    def __init__(self, root: Path, settings: Settings, glob: str = "*.py", n_keys: int = 0) -> None:
        self._root = root
        self._history = History(root, glob)
        self._tree: Tree | None = None
        self._engine = LocalEngine(settings, repository=lambda workspace: self._tree)
        self._engine.settle()
        self._engine.remembers = False
        self._n_keys = n_keys
        self._passes = PassTimer(self._engine.target)
        self._max_tokens = settings.completion.max_tokens
        self._cuts = safe_cuts(self._engine.tokenizer)
        self._trees = CommitTrees(self._history, self._engine.tokenizer)
        self.plain, self.drafted = _Sums(), _Sums()
        self.n_hunks = self.n_equal = 0
        self._ideal_cost = self._plain_cost = 0.0
        self._n_ideal_passes = self._n_ideal_tokens = 0

    def run(
        self,
        n_commits: int,
        progress: Callable[[int, int], None] = lambda i, n: None,
        until: str = "HEAD",
    ) -> None:
        commits = self._history.commits(n_commits, until)
        for i, commit in enumerate(commits):
            progress(i, len(commits))
            for hunk in commit.hunks:
                self._passes.round(i / len(commits))
                n = len(self._engine.tokenizer.encode(hunk.text))
                if not MIN_TOKENS <= n <= MAX_TOKENS:
                    continue
                if self._n_keys:
                    self._type(commit, hunk)
                else:
                    self._replay(commit, hunk)

    def close(self) -> None:
        self._engine.close()

    def _type(self, commit: Commit, hunk: Hunk) -> None:
        def suggest(prefix: str) -> str:
            at = replace(hunk, prefix=prefix, suffix="\n" + hunk.suffix)
            self._replay(commit, at)
            self._engine.remembers = True
            completion = self._engine.complete(self._request(at, None))
            self._engine.remembers = False
            return completion.text

        type_along(hunk, self._n_keys, suggest)

    def _replay(self, commit: Commit, hunk: Hunk) -> None:
        self._tree = tree = self._trees.of(commit, hunk.path)
        # As after a key at a place that was come to before: all models have read the prompt.
        in_one_turn(self._engine.prefetching(self._request(hunk, None)))
        warm = self._engine.generate(self._request(hunk, ()))
        if not warm.tokens:
            return
        for way in ((), None):
            self._engine.complete(self._request(hunk, way))
        ways: dict[tuple[str, ...] | None, list[Trace]] = {(): [], None: []}
        took: dict[tuple[str, ...] | None, list[float]] = {(): [], None: []}
        texts: list[str] = []
        for _ in range(N_REPEATS):
            for drafters, traces in ways.items():
                completion, ms, _ = self._timed(hunk, drafters)
                took[drafters].append(ms)
                traces.append(completion.trace)
                texts.append(completion.text)
        own_ms = {way: self._timed(hunk, way)[2] for way in ways}
        self.n_hunks += 1
        self.n_equal += len(set(texts)) == 1
        for sums, way in ((self.plain, ()), (self.drafted, None)):
            traces = ways[way]
            # Drafts differ between repeats, since drafters learn: those of the one that counts.
            seen = sorted(traces, key=lambda trace: trace.ms)[len(traces) // 2]
            n_context = len(warm.context.prompt) + seen.n_tokens // 2
            run = Run(seen.pass_width, n_context, own_ms[way])
            sums.add(traces, took[way], run)
        self._ideal(warm.context, np.array(warm.tokens, np.int32), hunk, tree)

    def _timed(
        self, hunk: Hunk, drafters: tuple[str, ...] | None
    ) -> tuple[Completion, float, float]:
        """A completion, and the milliseconds that it took, all and without passes of the target."""
        self._engine.settle()  # what is done while nobody waits
        time.sleep(PAUSE_S)
        start, busy_s = time.perf_counter(), self._engine.target.busy_s
        completion = self._engine.complete(self._request(hunk, drafters))
        ms, passes_s = (time.perf_counter() - start) * 1e3, self._engine.target.busy_s - busy_s
        return completion, ms, ms - passes_s * 1e3

    def _request(self, hunk: Hunk, drafters: tuple[str, ...] | None) -> CompletionRequest:
        return CompletionRequest(
            hunk.prefix,
            hunk.suffix,
            path=str(self._root / hunk.path),
            workspace=str(self._root),
            max_tokens=self._max_tokens,
            drafters=drafters,
        )

    def _ideal(self, context: Context, truth: Tokens, hunk: Hunk, tree: Tree) -> None:
        tokenizer = self._engine.tokenizer
        target = TextTarget(tokenizer.n_vocab, 64)
        target.truth = truth
        drafter = CombinedDrafter([Ideal(Sources(tree.trie), lambda: truth)], tokenizer.n_vocab)
        right = encode(hunk.suffix, tokenizer, self._cuts)
        asked = Context(context.prompt, context.left, right, path=hunk.path, workspace="replay")
        limits, trace = OutputLimits(len(truth), max_width=IDEAL_WIDTH), Trace()
        Completer(target, drafter).run(asked, Sampler(SamplingParams()), limits, trace=trace)
        # The curve knows by now what passes take behind a prompt of this length.
        self._ideal_cost += cost_of(trace.pass_width, self._engine.curve)
        self._plain_cost += cost_of([1] * len(truth), self._engine.curve)
        self._n_ideal_passes += len(trace.pass_width)
        self._n_ideal_tokens += len(truth)

    def rows(self) -> list[Row]:
        """One line each for plain decoding, codespec, and the ideal without and with other work."""
        info = self._engine.info
        ideal = self._plain_cost / self._ideal_cost
        saved_ms = self.plain.passes_ms * (1 - 1 / ideal)
        ideal_whole = self.plain.ms / (self.plain.ms - saved_ms)
        shared: Row = {
            "model": info.name,
            "backend": info.backend,
            "n_threads": self._engine.target.n_threads,
            "n_hunks": self.n_hunks,
        }
        rows: list[Row] = []
        costs = self._passes.costs()
        plainly, predicted = (costs.predicted_ms(sums.runs) for sums in (self.plain, self.drafted))
        for name, sums in (("plain", self.plain), ("codespec", self.drafted)):
            speedup = self.plain.ms / sums.ms
            rows.append(
                {
                    "config": name,
                    **shared,
                    "n_tokens": sums.n_tokens,
                    "mat": sums.n_tokens / sums.n_passes,
                    "drafted_per_pass": sums.n_drafted / sums.n_passes,
                    "n_drafted": sums.n_drafted,
                    "accepted": sums.n_accepted,
                    "ms": sums.ms,
                    "first_token_ms": statistics.median(sums.first_token_ms),
                    "token_ms": statistics.median(sums.token_ms) if sums.token_ms else 0.0,
                    "speedup": speedup,
                    "decoding_speedup": self.plain.decoding_ms / sums.decoding_ms,
                    "predicted_speedup": plainly / predicted if name != "plain" else 1.0,
                    "share_of_ideal": speedup / ideal,
                    "share_of_ideal_whole": speedup / ideal_whole,
                    "equal_texts": self.n_equal / self.n_hunks,
                    "by_source": by_source(sums.traces),
                    "by_position": by_position(sums.traces),
                }
            )
        for name, speedup in (("ideal", ideal), ("ideal-whole", ideal_whole)):
            rows.append(
                {
                    "config": name,
                    **shared,
                    "n_tokens": self._n_ideal_tokens,
                    "mat": self._n_ideal_tokens / self._n_ideal_passes,
                    "speedup": speedup,
                    "share_of_ideal": speedup / ideal,
                    "share_of_ideal_whole": speedup / ideal_whole,
                }
            )
        return rows


def _decoding_ms(trace: Trace) -> float:
    """Without what happens before the first pass and after the last."""
    return trace.ms - trace.context_ms - trace.finish_ms
