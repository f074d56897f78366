"""Fits the ranking of next edits that codespec ships, on commits made again in several orders.

    python -m codespec_bench.maintainers.fit_edits gather FOLDER REPO...
    python -m codespec_bench.maintainers.fit_edits fit FOLDER codespec/edits/ranking.json

`gather` keeps examples, numbers only, in a file a repository. `fit` first leaves each group of
repositories out in turn, says how proposals fare there at several bars, with wrong ones dismissed,
and takes from them how probabilities are to be calibrated (Platt 1999). Then it fits to all. Same
files, same ranking.

Fitted to the last 100 commits of starlette and click (Python), gin and client_golang (Go), fd and
ripgrep (Rust), and to the definitions renamed in the 1,000 commits before those. Kept for
measuring, never fitted to and none of their failures read: poetry and httpx (Python), axum (Rust),
echo (Go), trpc (TypeScript), gson (Java) and fmt (C++).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from codespec.edits.ranking import RankingModel, write
from codespec.next_edit import BARS

from . import boosting, edit_examples
from .boosting import Boosting
from .edit_examples import ORDERS, Examples

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]
Score: TypeAlias = Callable[[Rows, Floats], Floats]
"""(rows, their features) -> logarithms of odds."""

N_COMMITS = 100
N_OLDER = 1000
N_GROUPS = 2
SHARE_OF_WRONG = 0.35
STRENGTH = 0.005
"""The larger, the less the regression is drawn to zero."""
LEAST_SCALE = 0.02
"""A feature that varies less is taken as it is."""
N_STEPS = 12
N_TOGETHER = 20_000
"""Candidates that are scored at once."""
DISMISSING_BAR = 0.4
"""Proposals from this chance on are dismissed where they are wrong, in the examples."""
HOW = Boosting()
_DISMISSALS = ("n_dismissed", "n_pattern_dismissed")


def played(
    examples: Examples, score: Score, bar: float, before: Floats | None = None
) -> tuple[Rows, Examples]:
    """Sessions in which the likeliest candidate is shown from a chance of `bar` on, and dismissed
    where it is wrong. before: scores of all rows while nothing is dismissed, if they are known.
    Returns: the rows shown, and the examples as they are then, without candidates that were
    dismissed."""
    count, pattern_count = (examples.names.index(name) for name in _DISMISSALS)
    features, kept = examples.features.copy(), np.ones(len(examples.right), bool)
    starts = np.searchsorted(examples.ask, np.arange(len(examples.commit) + 1))
    shown: list[int] = []
    commit, gone = -1, set[int]()
    for ask, (start, end) in enumerate(pairwise(starts)):
        if examples.commit[ask] != commit:
            commit, gone = examples.commit[ask], set[int]()
        rows = np.arange(start, end)
        if gone and len(rows):
            is_gone = np.isin(examples.edit[rows], list(gone))
            kept[rows] = ~is_gone
            features[rows, count] = np.log1p(len(gone))
            patterns, numbers = np.unique(examples.pattern[rows], return_inverse=True)
            n_gone = np.bincount(numbers, is_gone, len(patterns))
            features[rows, pattern_count] = np.log1p(n_gone[numbers])
            rows = rows[~is_gone]
        if not len(rows):
            continue
        if gone or before is None:
            chances = chances_of(score(rows, features[rows].astype(np.float64)))
        else:
            chances = chances_of(before[rows])
        best = int(chances.argmax())
        if chances[best] >= bar:
            shown.append(int(rows[best]))
            if not examples.right[rows[best]]:
                gone.add(int(examples.edit[rows[best]]))
    return np.array(shown, np.int64), replace(examples, features=features).of_rows(kept)


def figures(examples: Examples, shown: Rows, order: int) -> dict[str, float]:
    """How proposals fare in one order of hunks."""
    of_order = examples.order == order
    shown = shown[of_order[examples.ask[shown]]]
    ask, right = examples.ask[shown], examples.right[shown]
    is_repeatable = examples.is_repeatable & of_order
    n_quiet = max(1, int((~examples.is_active & of_order).sum()))
    n_shown = np.bincount(examples.commit[ask])
    precisions = np.bincount(examples.commit[ask], right)[n_shown > 0] / n_shown[n_shown > 0]
    return {
        "shown": len(shown),
        "precision": float(right.mean()) if len(shown) else 0.0,
        "recall": float(right.sum() / (examples.is_active & of_order).sum()),
        "recall_repeatable": float(right[is_repeatable[ask]].sum() / is_repeatable.sum()),
        "quiet_rate": 1 - float((~examples.is_active[ask]).sum()) / n_quiet,
        "precision_by_commit": float(precisions.mean()) if len(shown) else 0.0,
        "wrong_per_commit": float((~right).sum() / len(np.unique(examples.commit[of_order]))),
    }


def weights(examples: Examples) -> Floats:
    """Weight of each candidate: a commit weighs like the square root of its asks, an ask like that
    of its candidates."""
    n_asks = np.bincount(examples.commit)
    n_candidates = np.bincount(examples.ask, minlength=len(examples.commit))
    of_ask = 1 / np.sqrt(n_asks[examples.commit] * np.maximum(1, n_candidates))
    return of_ask[examples.ask]


def thinned(examples: Examples) -> tuple[Examples, Floats]:
    """All right candidates and a share of the others, and what each weighs."""
    rng = np.random.default_rng(0)
    kept = examples.right | (rng.random(len(examples.right)) < SHARE_OF_WRONG)
    weight = weights(examples) * np.where(examples.right, 1.0, 1 / SHARE_OF_WRONG)
    return examples.of_rows(kept), weight[kept]


def regression(examples: Examples, weight: Floats) -> RankingModel:
    """Logistic regression on standardised features, drawn to zero (Hoerl and Kennard 1970), by
    Newton's method with steps that get shorter while they lead up."""
    x = examples.features.astype(np.float64)
    weight = weight * (len(x) / weight.sum())
    mean = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=weight))
    scale[scale < LEAST_SCALE] = 1.0
    x = np.hstack([(x - mean) / scale, np.ones((len(x), 1))])
    penalty = np.full(x.shape[1], 1 / STRENGTH)
    penalty[-1] = 0.0

    def loss(found: Floats) -> float:
        odds = x @ found
        return float(
            weight @ (np.logaddexp(0, odds) - odds * examples.right) + penalty @ found**2 / 2
        )

    share = float(np.average(examples.right, weights=weight))
    found = np.zeros(x.shape[1])
    found[-1] = np.log(share / (1 - share))
    for _ in range(N_STEPS):
        p = chances_of(x @ found)
        slope = x.T @ (weight * (examples.right - p)) - penalty * found
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(penalty + 1e-6)
        step, before = np.linalg.solve(curvature, slope), loss(found)
        while loss(found + step) > before and np.abs(step).max() > 1e-6:
            step /= 2
        found = found + step
    slopes = found[:-1] / scale
    none = np.zeros((0, 1))
    return RankingModel(float(found[-1] - slopes @ mean), slopes, none.astype(np.int64), none, none)


def model_of(examples: Examples) -> RankingModel:
    """The mean of a regression and trees."""
    some, weight = thinned(examples)
    line = regression(some, weight).scaled(0.5)
    trees = boosting.fit(some.features, some.right, weight, HOW).scaled(0.5)
    return replace(trees, bias=trees.bias + line.bias, weights=line.weights)


def chances_of(scores: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(scores, -30, 30)))


class LeftOut:
    """Models for each group of repositories, fitted to all others."""

    def __init__(self, examples: Examples) -> None:
        group = examples.repository % N_GROUPS
        self._group_of_ask = group
        self._models = {
            int(left_out): model_of(examples.of_asks(group != left_out))
            for left_out in np.unique(group)
        }

    def scores(self, asks: Rows, features: npt.NDArray[np.floating]) -> Floats:
        """Logarithms of odds of candidates. asks: of each."""
        found = np.zeros(len(features))
        groups = self._group_of_ask[asks]
        for group in np.unique(groups):
            rows = np.flatnonzero(groups == group)
            for some in np.array_split(rows, 1 + len(rows) // N_TOGETHER):
                values = features[some].astype(np.float64)
                found[some] = self._models[int(group)].scores(values)
        return found


def platt(scores: Floats, right: npt.NDArray[np.bool_], weight: Floats) -> tuple[float, float]:
    """(factor, addend) for logarithms of odds, fitted by Newton's method."""
    x = np.stack([scores, np.ones(len(scores))], axis=1)
    found = np.array([1.0, 0.0])
    for _ in range(30):
        p = chances_of(x @ found)
        slope = x.T @ (weight * (right - p))
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(2)
        found = found + np.linalg.solve(curvature, slope)
    return float(found[0]), float(found[1])


def likeliest(examples: Examples, scores: Floats) -> Rows:
    """The likeliest candidate of each ask that has any."""
    order = np.lexsort((-scores, examples.ask))
    return order[np.unique(examples.ask[order], return_index=True)[1]]


def fit(examples: Examples, say: Callable[[str], None]) -> RankingModel:
    """The model for codespec. say: told how such ones fare at repositories that they were not
    fitted to."""
    left_out = LeftOut(examples)
    before = left_out.scores(examples.ask, examples.features)
    _, lived = played(
        examples, lambda rows, x: left_out.scores(examples.ask[rows], x), DISMISSING_BAR, before
    )
    scores = left_out.scores(lived.ask, lived.features)
    best = likeliest(lived, scores)
    weight = 1 / np.sqrt(np.bincount(lived.commit))[lived.commit[lived.ask[best]]]
    factor, addend = platt(scores[best], lived.right[best], weight)
    say(f"calibration of the likeliest: {factor:.3f} times the score, and {addend:+.3f}")

    def score(rows: Rows, x: Floats) -> Floats:
        return factor * left_out.scores(examples.ask[rows], x) + addend

    for bar in BARS.values():
        shown, _ = played(examples, score, bar, factor * before + addend)
        for order, name in enumerate(ORDERS):
            told = (f"{key} {value:.3f}" for key, value in figures(examples, shown, order).items())
            say(f"{bar:.1f} {name}: {', '.join(told)}")
    return model_of(lived).scaled(factor, addend)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fits the ranking of next edits.")
    commands = parser.add_subparsers(dest="what", required=True)
    gathering = commands.add_parser("gather", help="keep examples of repositories")
    gathering.add_argument("folder", type=Path)
    gathering.add_argument("repositories", nargs="+", type=Path)
    gathering.add_argument("--commits", type=int, default=N_COMMITS)
    gathering.add_argument(
        "--older", type=int, default=N_OLDER, help="commits before, for renamed definitions alone"
    )
    fitting = commands.add_parser("fit", help="fit to kept examples")
    fitting.add_argument("folder", type=Path)
    fitting.add_argument("output", type=Path)
    told = parser.parse_args()
    if told.what == "gather":
        for root in told.repositories:
            examples = edit_examples.gather(root, told.commits, told.older)
            edit_examples.save(told.folder / f"{root.name}.npz", examples)
            print(f"{root.name}: {len(examples.commit)} asks, {len(examples.right)} candidates")
        return
    files = sorted(told.folder.glob("*.npz"))
    examples = edit_examples.joined([edit_examples.load(file) for file in files])
    write(told.output, examples.names, fit(examples, print))


if __name__ == "__main__":
    main()
