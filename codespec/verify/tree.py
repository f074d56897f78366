"""Operations on draft trees (SpecInfer, Miao et al. 2024; Medusa, Cai et al. 2024). Pure functions,
used by drafters and by verification."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.types import Draft


def leaves(draft: Draft) -> list[int]:
    """Indices of the nodes without children, ascending."""
    inner = set(draft.parents.tolist())
    return [i for i in range(len(draft)) if i not in inner]


def leaf_sets(draft: Draft) -> tuple[list[int], list[list[int]]]:
    """(leaves, for every node the indices into that list of the leaves below it)."""
    ends = leaves(draft)
    below: list[list[int]] = [[] for _ in range(len(draft))]
    for s, node in enumerate(ends):
        while node >= 0:
            below[node].append(s)
            node = int(draft.parents[node])
    return ends, below


def depths(draft: Draft) -> list[int]:
    """Depth of every node: its distance from the last committed token, 1 or more."""
    out: list[int] = []
    for parent in draft.parents.tolist():
        out.append(1 if parent < 0 else out[parent] + 1)
    return out


def path_probs(draft: Draft) -> list[float]:
    """Estimated P(node and its whole path accepted) of every node."""
    out: list[float] = []
    for prob, parent in zip(draft.probs.tolist(), draft.parents.tolist(), strict=True):
        out.append(prob * (1.0 if parent < 0 else out[parent]))
    return out


def prefix(draft: Draft, n: int) -> Draft:
    """The first `n` nodes of a draft: a draft again, as parents come before children."""
    if n >= len(draft):
        return draft
    return Draft(draft.tokens[:n], draft.parents[:n], draft.probs[:n], draft.sources[:n])


def limit_leaves(draft: Draft, n_leaves: int) -> Draft:
    """The draft without branches that do not lead to one of the `n_leaves` likeliest leaves."""
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
    """Indices of the draft's nodes along these tokens, root first, up to the first that it lacks.
    The
    draft need not be the verified one: drafters whose proposal lost learn from the verdict, too."""
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
