"""Fits the weights of `codespec.suggest.eagerness` to suggestions at places of repositories:

    python -m codespec_bench.maintainers.eagerness REPO... [--places N]

prints `codespec/suggest/eagerness_weights.py`, and the bars that keep given shares of the exact
characters. Logistic regression by Newton's method, with a ridge (Hoerl and Kennard 1970).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from codespec.config import load_settings
from codespec.suggest.eagerness import LineScore, features
from codespec.usage.suppression import PlaceKind

from ..eager_places import ASKED, Lines, lines_at_places
from ..eager_report import by_chance, figures
from ..places import places_in

Matrix = npt.NDArray[np.float64]
BARS = (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4)
RIDGE = 1.0
"""A kind of place without examples stays near the mean of the others."""


def fitted(found: Sequence[Lines], *, by_log_probs: bool) -> dict[str, float]:
    """Weights by kind of place and input, of lines with their log-probabilities or without."""
    rows: list[list[float]] = []
    right: list[float] = []
    kinds = [kind.value for kind in PlaceKind]
    names = list(_features(LineScore(1, 1, 1), by_log_probs))
    for lines in found:
        for score, n_chars, is_right in zip(lines.scores, lines.n_chars, lines.right, strict=True):
            if n_chars and score.n_tokens:
                values = _features(score, by_log_probs)
                place = [float(lines.kind == kind) for kind in kinds]
                rows.append([1.0, *place, *(values[name] for name in names)])
                right.append(float(is_right))
    constant, *weights = _regression(np.asarray(rows), np.asarray(right)).tolist()
    by_name = dict(zip([*kinds, *names], weights, strict=True))
    return {name: w + constant if name in kinds else w for name, w in by_name.items()}


def _features(score: LineScore, by_log_probs: bool) -> dict[str, float]:
    known = score if by_log_probs else LineScore(score.n_chars, score.n_lines)
    return features(known)


def _regression(x: Matrix, y: Matrix) -> Matrix:
    weights = np.zeros(x.shape[1])
    ridge = np.diag([1e-6, *[RIDGE] * (x.shape[1] - 1)])
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(-x @ weights))
        slope = x.T @ (y - p) - ridge @ weights
        step = np.linalg.solve((x.T * (p * (1.0 - p))) @ x + ridge, slope)
        weights += step
        if np.abs(step).max() < 1e-9:
            break
    return weights


@click.command()
@click.argument("repos", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--places", default=100, show_default=True, help="Of each kind and language.")
def main(repos: tuple[Path, ...], places: int) -> None:
    """Fit the weights to REPOS."""
    asked = [p for repo in repos for p in places_in(repo.resolve(), places, ASKED, per_file=6)]
    _, found = lines_at_places(asked, load_settings())
    for name, by_log_probs in (("BY_LOG_PROBS", True), ("BY_LENGTH", False)):
        click.echo(f"{name} = {fitted(found, by_log_probs=by_log_probs)}")
    for bar in BARS:
        click.echo(f"{bar}: {figures(found, by_chance(bar))}")


if __name__ == "__main__":
    main()
