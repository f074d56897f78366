"""The probability that a candidate is right, by a model that was fitted to histories.

A regression and gradient-boosted trees (Friedman 2001) over `features`, whose logarithms of odds
add up: numbers and names of features, no text. Fitted by `bench/maintainers/fit_edits.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

_FILE = Path(__file__).with_name("ranking.json")


@dataclass(frozen=True, slots=True)
class RankingModel:
    """weights: (n_features,), of a regression.

    Trees of one depth: features, thresholds of each inner node, (n_trees, 2**depth - 1), level by
    level: a value above the threshold goes right. leaves: (n_trees, 2**depth), from left to right.
    """

    bias: float
    weights: NDArray[np.float64]
    features: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    leaves: NDArray[np.float64]

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithms of odds, (n,). values: (n, n_features)."""
        trees = np.arange(len(self.leaves))
        rows = np.arange(len(values))[:, None]
        at = np.zeros((len(values), len(trees)), np.int64)
        n_inner = self.features.shape[1]
        while at.size and at[0, 0] < n_inner:
            is_right = values[rows, self.features[trees, at]] > self.thresholds[trees, at]
            at = 2 * at + 1 + is_right
        return self.bias + values @ self.weights + self.leaves[trees, at - n_inner].sum(axis=1)

    def scaled(self, factor: float, addend: float = 0.0) -> RankingModel:
        """The model whose scores are these times `factor`, and `addend`."""
        return replace(
            self,
            bias=factor * self.bias + addend,
            weights=factor * self.weights,
            leaves=factor * self.leaves,
        )


class _RankingFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model as it is kept. weights: by name of the feature. names: of the features that trees
    ask for, by number."""

    bias: float
    weights: dict[str, float]
    names: list[str]
    features: list[list[int]]
    thresholds: list[list[float]]
    leaves: list[list[float]]


class Ranking:
    """Gives candidates probabilities."""

    def __init__(self, names: Sequence[str], model: RankingModel) -> None:
        """names: of the features, by their numbers in the model."""
        self._names = tuple(names)
        self._model = model

    def chances(self, rows: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
        """Probabilities, 0 to 1, shape (n_rows,). rows: features by name. Raises: KeyError."""
        values = np.array([[*map(row.__getitem__, self._names)] for row in rows], np.float64)
        scores = self._model.scores(values.reshape(len(rows), len(self._names)))
        return 1 / (1 + np.exp(-np.clip(scores, -30, 30)))


def write(path: Path, names: Sequence[str], model: RankingModel) -> None:
    """Keep a model, with the names of the features that it asks for. Raises: OSError."""
    asked = [int(number) for number in np.unique(model.features)]
    file = _RankingFile(
        bias=round(model.bias, 4),
        weights={
            name: round(weight, 4)
            for name, weight in zip(names, model.weights.tolist(), strict=True)
            if round(weight, 4)
        },
        names=[names[number] for number in asked],
        features=np.searchsorted(asked, model.features).tolist(),
        thresholds=model.thresholds.round(4).tolist(),
        leaves=model.leaves.round(4).tolist(),
    )
    path.write_bytes(msgspec.json.format(msgspec.json.encode(file), indent=0) + b"\n")


def read(path: Path) -> Ranking:
    """The ranking that `write` kept. Raises: OSError, msgspec.DecodeError."""
    file = msgspec.json.decode(path.read_bytes(), type=_RankingFile)
    names = list(dict.fromkeys([*file.names, *file.weights]))
    model = RankingModel(
        file.bias,
        np.array([file.weights.get(name, 0.0) for name in names]),
        np.array(file.features),
        np.array(file.thresholds),
        np.array(file.leaves),
    )
    return Ranking(names, model)


@cache
def shipped() -> Ranking:
    """The ranking that comes with codespec."""
    return read(_FILE)
