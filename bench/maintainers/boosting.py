"""Gradient-boosted trees of one depth for probabilities (Friedman 2001; second-order gains as in
Chen and Guestrin 2016), on features in bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from codespec.edits.ranking import RankingModel

Floats = npt.NDArray[np.float64]

N_BINS = 48
SHARE_OF_FEATURES, SHARE_OF_ROWS = 0.5, 0.6
_NEVER = 1e9
"""A threshold that no feature is above."""
PENALTY = 5.0
"""Weight that each leaf's value is drawn to zero with."""


@dataclass(frozen=True, slots=True)
class Boosting:
    """How trees are fitted. rate: share of each tree's answer that is taken. least: sum of weights
    that a leaf holds, at least, of 100,000 in all."""

    n_trees: int = 120
    depth: int = 4
    rate: float = 0.1
    least: float = 20.0
    seed: int = 0


def edges_of(features: npt.NDArray[np.float32]) -> list[Floats]:
    """The values between which bins of each feature lie: halfway between quantiles."""
    found: list[Floats] = []
    for column in features.T:
        at = np.unique(np.quantile(column, np.linspace(0, 1, N_BINS)))
        found.append((at[1:] + at[:-1]) / 2)
    return found


def fit(
    features: npt.NDArray[np.float32], right: npt.NDArray[np.bool_], weights: Floats, how: Boosting
) -> RankingModel:
    """features: (n, n_features). right: (n,). weights: (n,), any scale."""
    rng = np.random.default_rng(how.seed)
    edges = edges_of(features)
    binned = np.stack(
        [np.searchsorted(e, column) for e, column in zip(edges, features.T, strict=True)]
    ).astype(np.uint8)  # (n_features, n): a column is read at a time
    weights = weights * (100_000 / weights.sum())
    share = float(weights @ right / weights.sum())
    bias = float(np.log(share / (1 - share)))
    score = np.full(len(right), bias)
    n_inner = 2**how.depth - 1
    chosen = np.zeros((how.n_trees, n_inner), np.int64)
    thresholds = np.full((how.n_trees, n_inner), _NEVER)
    leaves = np.zeros((how.n_trees, n_inner + 1))
    for tree in range(how.n_trees):
        p = 1 / (1 + np.exp(-score))
        gradient, curvature = weights * (right - p), weights * p * (1 - p)
        rows = np.flatnonzero(rng.random(len(right)) < SHARE_OF_ROWS)
        columns = np.flatnonzero(rng.random(len(edges)) < SHARE_OF_FEATURES)
        node, node_all = np.zeros(len(rows), np.int64), np.zeros(len(right), np.int64)
        for level in range(how.depth):
            n_nodes = 2**level
            splits = _splits(
                binned[:, rows], gradient[rows], curvature[rows], node, n_nodes, columns, how.least
            )
            for at, (column, bin_) in enumerate(splits):
                if column < 0:
                    continue
                inner = n_nodes - 1 + at
                chosen[tree, inner], thresholds[tree, inner] = column, edges[column][bin_]
            bins = np.array([bin_ for _, bin_ in splits])
            of_node = np.array([max(0, column) for column, _ in splits])
            node_all = 2 * node_all + (
                binned[of_node[node_all], np.arange(len(right))] > bins[node_all]
            )
            node = node_all[rows]
        up = np.bincount(node, gradient[rows], n_inner + 1)
        down = np.bincount(node, curvature[rows], n_inner + 1) + PENALTY
        leaves[tree] = how.rate * up / down
        score += leaves[tree][node_all]
    return RankingModel(bias, np.zeros(len(edges)), chosen, thresholds, leaves)


def _splits(
    binned: npt.NDArray[np.uint8],
    gradient: Floats,
    curvature: Floats,
    node: npt.NDArray[np.int64],
    n_nodes: int,
    columns: npt.NDArray[np.int64],
    least: float,
) -> list[tuple[int, int]]:
    """(feature, last bin that goes left) of each node's best split; (-1, N_BINS) for none, which
    sends all left."""
    best = np.zeros(n_nodes)
    found = [(-1, N_BINS)] * n_nodes
    base = node * N_BINS
    for column in columns:
        at = base + binned[column]
        up = np.bincount(at, gradient, n_nodes * N_BINS).reshape(n_nodes, N_BINS).cumsum(axis=1)
        down = np.bincount(at, curvature, n_nodes * N_BINS).reshape(n_nodes, N_BINS).cumsum(axis=1)
        all_up, all_down = up[:, -1:], down[:, -1:]
        gain = (
            up**2 / (down + PENALTY)
            + (all_up - up) ** 2 / (all_down - down + PENALTY)
            - all_up**2 / (all_down + PENALTY)
        )
        gain[(down < least) | (all_down - down < least)] = 0
        for i, bin_ in enumerate(gain.argmax(axis=1)):
            if gain[i, bin_] > best[i]:
                best[i], found[i] = gain[i, bin_], (int(column), int(bin_))
    return found
