"""Operations on drafts as trees. Pure, and used on both sides of verification."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.types import Draft


def leaves(draft: Draft) -> list[int]:
    """Nodes of a draft without children, ascending."""
    inner = set(draft.parents.tolist())
    return [i for i in range(len(draft)) if i not in inner]


def leaf_sets(draft: Draft) -> tuple[list[int], list[list[int]]]:
    """(leaves, for every node the indices into `leaves` of the leaves below it)."""
    ends = leaves(draft)
    below: list[list[int]] = [[] for _ in range(len(draft))]
    for s, node in enumerate(ends):
        while node >= 0:
            below[node].append(s)
            node = int(draft.parents[node])
    return ends, below


def depths(draft: Draft) -> list[int]:
    """Distance of every node from the last committed token, from 1."""
    out: list[int] = []
    for parent in draft.parents.tolist():
        out.append(1 if parent < 0 else out[parent] + 1)
    return out


def path_probs(draft: Draft) -> list[float]:
    """Estimated P(node accepted) of every node, its whole path included."""
    out: list[float] = []
    for prob, parent in zip(draft.probs.tolist(), draft.parents.tolist(), strict=True):
        out.append(prob * (1.0 if parent < 0 else out[parent]))
    return out


def prefix(draft: Draft, n: int) -> Draft:
    """The first `n` nodes. Parents come before children, so the rest is still a tree."""
    if n >= len(draft):
        return draft
    return Draft(draft.tokens[:n], draft.parents[:n], draft.probs[:n], draft.sources[:n])


def limit_leaves(draft: Draft, n_leaves: int) -> Draft:
    """Only the nodes on the way to the `n_leaves` likeliest leaves."""
    ends, below = leaf_sets(draft)
    if len(ends) <= n_leaves:
        return draft
    at_ends = np.array(path_probs(draft))[ends]
    best = set(np.argsort(-at_ends, kind="stable")[:n_leaves].tolist())
    kept = [i for i in range(len(draft)) if best.intersection(below[i])]
    new_index = {-1: -1} | {old: new for new, old in enumerate(kept)}
    parents = np.array([new_index[int(draft.parents[i])] for i in kept], np.int32)
    return Draft(draft.tokens[kept], parents, draft.probs[kept], draft.sources[kept])


def followed(draft: Draft, emitted: Sequence[int]) -> list[int]:
    """Nodes of a draft that these tokens follow, root first. The draft need not be the one that
    was verified: drafters whose proposal lost learn from the outcome, too."""
    nodes = zip(draft.parents.tolist(), draft.tokens.tolist(), strict=True)
    child = {node: i for i, node in enumerate(nodes)}
    path: list[int] = []
    node = -1
    for token in emitted:
        node = child.get((node, token), -1)
        if node < 0:
            break
        path.append(node)
    return path
