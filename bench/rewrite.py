"""`codespec bench rewrite`: how fast would the windows around a history's edits be rewritten?

A next-edit model reads a window of a file and writes it anew with the next change in it. The true
text stands in for what it writes, so no model is needed: a pass over k drafted tokens costs
T(k + 1) on a given curve, as in `replay`. Or a real model makes the passes, on the clock, and what
it says is replaced with the true text. Loop and drafters are the product's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from codespec.backends.base import Target
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.documents.live import LiveDocument
from codespec.drafters.aligned import AlignedDrafter
from codespec.drafters.base import Drafter
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.lookup import LookupDrafter
from codespec.drafters.planners import Planners
from codespec.drafters.token_kinds import token_kinds
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.engine.passes import WIDER
from codespec.syntax.text import safe_cuts
from codespec.types import Context, SamplingParams, Tokenizer, Trace
from codespec.verify.sampling import Sampler

from .acceptance import by_source
from .history import History
from .replay import MAX_TREE, ForcedTarget, Result, TextTarget, cost_of
from .replay_trees import CommitTrees, Tree
from .results import Row
from .rewrite_windows import FixedLookup, IdealRewrite, LastNgrams, Window, windows

NGRAMS, DRAFTS = (2, 3, 4), (4, 6, 8, 12, 16, 24, 32)
LOOKUPS = {f"prompt-lookup-{n}-{k}": (n, k) for n in NGRAMS for k in DRAFTS}
OURS = {"codespec-lookup": False, "codespec": True}
"""Our configurations: True where the old text is drafted from, beside lookups."""
CONFIGS = ("plain", *LOOKUPS, *OURS, "ideal")
TIMED = ("plain", *(name for name, (_, k) in LOOKUPS.items() if k in (4, 8, 16)), *OURS, "ideal")
"""Configurations that take turns on the clock."""
MAX_LEAVES = 1
"""Targets whose passes give the same logits at every width draft chains alone."""
WIDTH = 16
"""The setting `drafting.max_width`, as it is by default."""


class OurDrafters:
    """The product's drafters for one target, with weights that start from the shipped ones."""

    def __init__(self, tokenizer: Tokenizer, curve: CostCurve, max_leaves: int) -> None:
        kinds = token_kinds(tokenizer)
        self._n_vocab, self._curve, self._max_leaves = tokenizer.n_vocab, curve, max_leaves
        self._document = LiveDocument(tokenizer, safe_cuts(tokenizer))
        self._tree: Tree | None = None
        self._lookup = LookupDrafter(
            lambda path: self._document,
            Planners(kinds).of,
            lambda workspace: self._tree,
            curve=curve,
            max_leaves=max_leaves,
        )
        self._aligned = AlignedDrafter(curve, max_leaves, Planners(kinds))

    def of(self, tree: Tree | None, *, is_aligned: bool) -> CombinedDrafter:
        """The drafters for a window of the file that the tree leaves out."""
        self._document.update("", "")
        self._tree = tree
        return CombinedDrafter(
            [self._lookup, *([self._aligned] if is_aligned else [])],
            self._n_vocab,
            self._max_leaves,
            self._curve,
            pads=True,
            policy=GuardPolicy.RAISE,
        )


class Rewrite:
    """Rewrites the windows of a history under every configuration.

    curves: by name. Each of our configurations learns on its own curve, from the shipped weights
        on.
    """

    def __init__(
        self,
        root: Path,
        tokenizer: Tokenizer,
        curves: Mapping[str, CostCurve],
        glob: str = "*.py",
    ) -> None:
        self._history = History(root, glob, min_lines=0)
        self._tokenizer = tokenizer
        self._curves = curves
        self._trees = CommitTrees(self._history, tokenizer)
        self._ours = {
            (name, curve): OurDrafters(tokenizer, cost, MAX_LEAVES)
            for name in OURS
            for curve, cost in curves.items()
        }
        self.results = {(name, curve): Result(name, curve) for curve in curves for name in CONFIGS}
        self.n_windows = 0

    def run(
        self,
        n_commits: int,
        progress: Callable[[int, int], None] = lambda i, n: None,
        until: str = "HEAD",
    ) -> None:
        for commit in self._history.each(n_commits, until, progress):
            for window in windows(commit.hunks, self._tokenizer):
                self._rewrite(window, self._trees.of(commit, window.path))
                self.n_windows += 1

    def _rewrite(self, window: Window, tree: Tree) -> None:
        known = LastNgrams(window.prompt)
        for name, (n, k) in LOOKUPS.items():
            # It drafts the same whatever a pass costs.
            trace = self._decode(window, _alone(FixedLookup(known, n, k), self._tokenizer), k)
            for curve, cost in self._curves.items():
                self.results[name, curve].add(trace, cost_of(trace.pass_width, cost))
        for curve, cost in self._curves.items():
            trace = self._decode(window, CombinedDrafter([], self._tokenizer.n_vocab), 0)
            self.results["plain", curve].add(trace, cost_of(trace.pass_width, cost))
            for name, is_aligned in OURS.items():
                drafter = self._ours[name, curve].of(tree, is_aligned=is_aligned)
                trace = self._decode(window, drafter, WIDTH * WIDER, cost)
                self.results[name, curve].add(trace, cost_of(trace.pass_width, cost))
            self.results["ideal", curve].add(*self._ideal(window, cost))

    def _ideal(self, window: Window, curve: CostCurve) -> tuple[Trace, float]:
        """Its passes and their cost, padded to the width that is best for this window."""
        found: list[tuple[Trace, float]] = []
        for width in (1, *curve.steady):
            trace = self._decode(
                window, _alone(IdealRewrite(window, curve, width), self._tokenizer), MAX_TREE
            )
            widths = [max(n, width) for n in trace.pass_width]
            found.append((trace, cost_of(widths, curve)))
        return min(found, key=lambda one: one[1])

    def _decode(
        self, window: Window, drafter: CombinedDrafter, width: int, curve: CostCurve = FLAT
    ) -> Trace:
        target = TextTarget(self._tokenizer.n_vocab, MAX_TREE, rolls_back=curve.rolls_back)
        target.truth = window.new
        return decode(window, target, drafter, width)

    def rows(self) -> list[Row]:
        """One row a configuration and curve, as the benchmark reports it."""
        return [
            row_of(
                result,
                self.results["plain", curve],
                self.results["ideal", curve],
                self.n_windows,
            )
            for (_, curve), result in self.results.items()
        ]


class ClockRewrite:
    """Rewrites windows with a real model's passes, by the clock; the true text takes the place of
    what it says. Configurations take turns. curve: of the target, as measured."""

    def __init__(
        self, root: Path, tokenizer: Tokenizer, target: Target, curve: CostCurve, glob: str
    ) -> None:
        self._history = History(root, glob, min_lines=0)
        self._tokenizer = tokenizer
        self._target = ForcedTarget(target)
        self._curve = curve
        self._trees = CommitTrees(self._history, tokenizer)
        self._ours = {name: OurDrafters(tokenizer, curve, target.can.max_leaves) for name in OURS}
        self._n_ctx = target.info.n_ctx
        self._results = {name: Result(name, "measured") for name in TIMED}
        self.n_windows = 0

    def run(
        self,
        n_commits: int,
        progress: Callable[[int, int], None] = lambda i, n: None,
        until: str = "HEAD",
    ) -> None:
        for commit in self._history.each(n_commits, until, progress):
            for window in windows(commit.hunks, self._tokenizer):
                room = self._n_ctx - len(window.new) - MAX_TREE
                if len(window.old) < room:
                    window = replace(window, prompt=window.prompt[-room:])
                    self._rewrite(window, self._trees.of(commit, window.path))
                    self.n_windows += 1

    def _rewrite(self, window: Window, tree: Tree) -> None:
        self._target.truth = window.new
        plain = CombinedDrafter([], self._tokenizer.n_vocab)
        decode(window, self._target, plain, 0)  # reads the prompt
        known, curve = LastNgrams(window.prompt), self._curve
        for name, result in self._results.items():
            drafter, width = plain, 0
            if name in LOOKUPS:
                n, width = LOOKUPS[name]
                drafter = _alone(FixedLookup(known, n, width), self._tokenizer)
            elif name == "ideal":
                drafter, width = _alone(IdealRewrite(window, curve), self._tokenizer), MAX_TREE
            elif name in OURS:
                drafter = self._ours[name].of(tree, is_aligned=OURS[name])
                width = WIDTH * WIDER
            trace = decode(window, self._target, drafter, width, self._observe)
            result.add(trace, trace.target_ms + trace.draft_ms)

    def _observe(self, widths: Sequence[int], ms: Sequence[float]) -> None:
        for n, took_ms in zip(widths, ms, strict=True):
            self._curve.observe(n, took_ms)

    def rows(self) -> list[Row]:
        """One row a configuration, as the benchmark reports it."""
        known = self._results
        return [
            {
                **row_of(result, known["plain"], known["ideal"], self.n_windows),
                "ms_per_token": result.cost / result.n_tokens,
            }
            for result in known.values()
        ]


def _alone(drafter: Drafter, tokenizer: Tokenizer) -> CombinedDrafter:
    return CombinedDrafter([drafter], tokenizer.n_vocab, policy=GuardPolicy.RAISE)


def decode(
    window: Window,
    target: Target,
    drafter: CombinedDrafter,
    width: int,
    observe: Callable[[Sequence[int], Sequence[float]], None] = lambda n_tokens, ms: None,
) -> Trace:
    """The trace of one window's decoding. width: most drafted tokens a pass."""
    context = Context(
        window.prompt, window.prompt, path=window.path, workspace="rewrite", old=window.old
    )
    trace = Trace()
    limits = OutputLimits(len(window.new), max_width=width)
    emitted, _ = Completer(target, drafter, time.perf_counter, observe).run(
        context, Sampler(SamplingParams()), limits, trace=trace
    )
    assert emitted == window.new.tolist(), "verification emitted something else"
    return trace


def row_of(result: Result, plain: Result, ideal: Result, n_windows: int) -> Row:
    return {
        "config": result.config,
        "curve": result.curve,
        "n_windows": n_windows,
        "n_tokens": result.n_tokens,
        "mat": result.n_tokens / result.n_passes,
        "drafted_per_pass": result.n_drafted / result.n_passes,
        "n_drafted": result.n_drafted,
        "accepted": result.n_accepted,
        "speedup": plain.cost / result.cost,
        "share_of_ideal": ideal.cost / result.cost,
        "by_source": by_source(result.traces),
    }
