"""The cost of leaving out a part of drafting, by the clock, with a real model.

One engine for the product and one for each way without a part complete the same edits of a
history, in turns, on one thread. The clock is the processor time of the process, which is that of
the wall where nobody else works, and the least of a place's repeats counts: what neighbours take is
no part of it. The median of the places' ratios counts, with a bootstrap interval (Efron 1979,
percentile method).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from codespec.config import Settings
from codespec.engine.local import LocalEngine
from codespec.engine.turns import in_one_turn
from codespec.requests import CompletionRequest

from ..history import History, Hunk
from ..replay import MIN_TOKENS
from ..replay_trees import CommitTrees, Tree
from .mechanisms import PRODUCT, Mechanisms

N_REPEATS = 5
N_RESAMPLES = 2000


@dataclass
class Timed:
    """One way at all places: milliseconds of whole completions; microseconds of own work a pass,
    which is all but passes of models."""

    ms: list[float] = field(default_factory=list[float])
    own_us: list[float] = field(default_factory=list[float])


class Clocked:
    """Completes the edits of histories in several ways. Raises: ModelError."""

    def __init__(self, settings: Settings, ways: Mapping[str, Mechanisms]) -> None:
        self._settings = settings
        self._tree: Tree | None = None
        self._stack = ExitStack()
        self._engines: dict[str, LocalEngine] = {}
        for name, chosen in {"": PRODUCT, **ways}.items():
            engine = LocalEngine(settings, repository=lambda workspace: self._tree)
            if not chosen.stretches:
                engine.passes.stretches = None
            if not chosen.refinement:
                engine.passes.models.tuners.freeze()
            self._stack.enter_context(closing(engine))
            engine.settle()
            engine.remembers = False
            self._engines[name] = engine
        self.timed = {name: Timed() for name in self._engines}

    def run(
        self,
        root: Path,
        n_places: int,
        glob: str = "*.py",
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """The last places of a history at which the model has something to say."""
        history = History(root, glob)
        tokenizer = self._engines[""].tokenizer
        trees = CommitTrees(history, tokenizer)
        done = 0
        for commit in reversed(history.commits(10 * n_places)):
            for hunk in commit.hunks:
                if done == n_places:
                    return
                if len(tokenizer.encode(hunk.text)) < MIN_TOKENS:
                    continue
                progress(done, n_places)
                self._tree = trees.of(commit, hunk.path)
                done += self._complete(self._request(root, hunk))

    def close(self) -> None:
        self._stack.close()

    def _complete(self, request: CompletionRequest) -> bool:
        """True if the model says anything there."""
        for engine in self._engines.values():
            in_one_turn(engine.prefetching(request))
            if not engine.generate(request).tokens:
                return False
            engine.complete(request)
        ms: dict[str, list[float]] = {name: [] for name in self._engines}
        own_us: dict[str, list[float]] = {name: [] for name in self._engines}
        for turn in range(N_REPEATS):
            # Nobody always follows the same other one, whose traces are in the caches.
            names = list(self._engines)
            for name in names if turn % 2 else names[::-1]:
                engine = self._engines[name]
                engine.settle()
                start = time.process_time()
                trace = engine.complete(request).trace
                ms[name].append((time.process_time() - start) * 1e3)
                own_us[name].append((trace.ms - trace.model_ms) * 1e3 / trace.n_target_passes)
        for name, timed in self.timed.items():
            timed.ms.append(min(ms[name]))
            timed.own_us.append(min(own_us[name]))
        return True

    def _request(self, root: Path, hunk: Hunk) -> CompletionRequest:
        return CompletionRequest(
            hunk.prefix,
            hunk.suffix,
            path=str(root / hunk.path),
            workspace=str(root),
            max_tokens=self._settings.completion.max_tokens,
        )


def median_ratio(on: list[float], off: list[float]) -> tuple[float, float, float]:
    """Median of on / off over the places, and its 95 % bootstrap interval."""
    ratios = np.array(on) / np.array(off)
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(ratios, (N_RESAMPLES, len(ratios))), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)
