from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.types import Draft
from codespec.verify.tree import depths, leaf_sets, leaves, limit_leaves, path_probs, prefix
from tests.drafters import tree

FORKED = tree([7, 8, 9, 10, 11], [-1, -1, 0, 0, 2], [0.9, 0.1, 0.5, 0.4, 0.9])


def test_leaves_and_depths():
    assert leaves(FORKED) == [1, 3, 4]
    assert depths(FORKED) == [1, 1, 2, 2, 3]
    assert leaf_sets(FORKED) == ([1, 3, 4], [[1, 2], [0], [2], [1], [2]])


def test_a_path_is_as_likely_as_all_on_the_way_together():
    assert path_probs(FORKED) == pytest.approx([0.9, 0.1, 0.45, 0.36, 0.405])


def test_a_chain_has_one_leaf():
    chain = Draft.chain([1, 2, 3])
    assert leaves(chain) == [2]
    assert depths(chain) == [1, 2, 3]


def test_limit_leaves_keeps_the_likeliest_paths():
    cut = limit_leaves(FORKED, 2)  # path probabilities: .1, .36, .405
    assert cut.tokens.tolist() == [7, 9, 10, 11]
    assert cut.parents.tolist() == [-1, 0, 0, 1]
    assert limit_leaves(FORKED, 1).tokens.tolist() == [7, 9, 11]
    assert limit_leaves(FORKED, 3) is FORKED


random_trees = st.lists(st.integers(0, 30), max_size=12).map(
    lambda cut: tree(range(len(cut)), [min(c, i) - 1 for i, c in enumerate(cut)])
)


@given(random_trees, st.integers(1, 4), st.integers(0, 12))
def test_cut_trees_are_trees(draft, n_leaves, n):
    for cut in (limit_leaves(draft, n_leaves), prefix(draft, n)):
        assert (cut.parents < np.arange(len(cut))).all()
        assert len(cut.tokens) == len(cut.parents) == len(cut.probs) == len(cut.sources)
        # Every node hangs below the same token as before.
        for i, parent in enumerate(cut.parents.tolist()):
            old = int(draft.parents[cut.tokens[i]])
            assert (cut.tokens[parent] if parent >= 0 else -1) == old
    assert len(leaves(limit_leaves(draft, n_leaves))) <= n_leaves
    assert len(prefix(draft, n)) == min(n, len(draft))
