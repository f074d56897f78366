"""The reference rules against the published implementation, where it is installed.

pip install arctic-inference      # or: CODESPEC_PEER=<its _C extension module> pytest ...
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from codespec.documents.sources import REPOSITORY
from codespec.types import NO_TOKENS, Context, PassState
from codespec_bench.peer import load_peer
from codespec_bench.reference import (
    MAX_TOKENS,
    MIN_PRODUCT,
    Sources,
    SuffixTrie,
    automaton_of,
    likeliest,
)

FILE = os.environ.get("CODESPEC_PEER")


@pytest.fixture(scope="module")
def peer():
    found = load_peer(Path(FILE) if FILE else None)
    if found is None:
        pytest.skip("arctic-inference is not installed")
    return found


def texts(seed):
    """A text that repeats itself like code, and contexts from it with something unseen before."""
    rng = np.random.default_rng(seed)
    words = [rng.integers(0, 40, rng.integers(2, 9)) for _ in range(12)]
    text = np.concatenate([words[i] for i in rng.integers(0, 12, 200)]).astype(np.int32)
    for _ in range(40):
        start = int(rng.integers(0, len(text) - 30))
        unseen = np.array([99], np.int32)
        yield text, np.concatenate([unseen, text[start : start + int(rng.integers(1, 30))]])


def test_chains_are_theirs(peer):
    n_equal = n = 0
    for seed in range(5):
        for text, context in texts(seed):
            tree = peer.tree()
            tree.extend_ndarray(0, text)
            theirs = tree.speculate_ndarray(context, MAX_TOKENS, 1.0, 0.0, MIN_PRODUCT, False)
            ours = SuffixTrie(Sources(automaton_of([text])))
            ours.begin(Context(NO_TOKENS, context[:1]))
            draft = ours.propose(PassState(context[1:]), MAX_TOKENS)
            assert len(draft) == len(theirs.token_ids)
            n_equal += draft.tokens.tolist() == list(theirs.token_ids)
            n += 1
    # Of tokens that are equally frequent, either may be followed.
    assert n_equal >= 0.8 * n


def test_trees_score_as_theirs_do(peer):
    n_equal = n = 0
    for seed in range(5):
        for text, context in texts(seed):
            tree = peer.tree()
            tree.extend_ndarray(0, text)
            theirs = tree.speculate_ndarray(context, MAX_TOKENS, 16.0, 0.0, MIN_PRODUCT, True)
            automaton = automaton_of([text])
            suffixes = [context[-k:] for k in range(1, automaton.match(context) + 1)]
            trees = [
                likeliest(automaton, np.ascontiguousarray(s), MAX_TOKENS, REPOSITORY)
                for s in suffixes
            ]
            best = max((float(draft.probs.sum()) for draft in trees), default=0.0)
            n_equal += abs(best - sum(theirs.probs)) < 1e-4
            n += 1
    # For them the end of the text counts as an occurrence, too.
    assert n_equal >= 0.95 * n
