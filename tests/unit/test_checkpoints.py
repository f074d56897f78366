"""States put aside are found by their tokens, and never outgrow their budget."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from codespec.backends.checkpoints import LEAST_HELD, MOST_KEPT, Checkpoints
from codespec.native import common_prefix


def tokens(*ids):
    return np.array(ids, np.int32)


def state(n=100, fill=0):
    return np.full(n, fill, np.uint8)


def test_the_longest_common_prefix_wins():
    saved = Checkpoints(10_000, can_truncate=True)
    saved.add(tokens(1, 2, 3, 4), state(fill=1))
    saved.add(tokens(1, 9, 9, 9, 9, 9), state(fill=2))
    n, found = saved.find(tokens(1, 2, 3, 7, 7))
    assert found is not None
    assert (n, found.state[0]) == (3, 1)
    assert saved.find(tokens(5))[1] is None
    # It moves into the cache: no memory is held twice.
    assert saved.take(found)[0] == 1
    assert len(saved) == 1


def test_a_state_that_cannot_be_cut_must_be_wanted_whole():
    saved = Checkpoints(10_000, can_truncate=False)
    saved.add(tokens(1, 2, 3, 4), state())
    saved.add(tokens(1, 2), state())
    n, found = saved.find(tokens(1, 2, 3, 9))
    assert n == 2
    assert found is not None
    saved.take(found)
    assert len(saved) == 2  # kept: the next edit may need it again
    assert saved.find(tokens(1, 2, 3, 4, 5))[0] == 4


def test_a_later_state_of_a_document_replaces_the_earlier():
    saved = Checkpoints(10_000, can_truncate=True)
    saved.add(tokens(*range(100)), state())
    saved.add(tokens(*range(90), 7, 7), state())
    assert [len(c.tokens) for c in saved] == [92]


def test_of_many_short_texts_the_latest_are_kept():
    """Each is compared with each prompt, so there is a limit beside that of memory."""
    saved = Checkpoints(1 << 30, can_truncate=True)
    for i in range(MOST_KEPT + 5):
        saved.add(tokens(i, i), state())
    assert [c.tokens[0] for c in saved] == list(range(5, MOST_KEPT + 5))


def test_what_is_held_stays_and_others_make_room():
    saved = Checkpoints(1000, can_truncate=True)
    saved.add(tokens(1), state(400))
    saved.add(tokens(2), state(400))
    held = saved.hold(tokens(3), state(500, fill=3))
    assert [c.tokens[0] for c in saved] == [2]
    assert saved.n_bytes == 404 + 504
    assert saved.find(tokens(3))[1] is None
    saved.add(tokens(4), state(600))  # no room beside it: what is kept is kept
    assert [c.tokens[0] for c in saved] == [2]
    large = saved.hold(tokens(5), state(2000))
    assert len(saved) == 0
    assert (held.state[0], saved.n_bytes) == (3, 504 + 2004)
    for _ in range(2):
        saved.release(large)
        saved.release(held)
    assert saved.n_bytes == 0
    saved.add(tokens(4), state(600))
    assert len(saved) == 1


def test_of_many_that_are_held_the_latest_stay():
    saved = Checkpoints(1000, can_truncate=True)
    small = [saved.hold(tokens(i), state(100)) for i in range(9)]
    assert all(len(held.state) for held in small)
    large = [saved.hold(tokens(i), state(2000)) for i in range(LEAST_HELD)]
    assert not any(len(held.state) for held in small)
    assert saved.n_bytes == LEAST_HELD * 2004
    for held in (*small, *large):
        saved.release(held)
    assert saved.n_bytes == 0


budgets = st.integers(0, 2000)
steps = st.tuples(
    st.sampled_from(["add", "hold", "let go"]),
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
)


@given(budgets, st.lists(steps, max_size=30), st.booleans())
def test_the_budget_holds(budget, taken, can_truncate):
    saved = Checkpoints(budget, can_truncate=can_truncate)
    held = []
    for step, ids in taken:
        if step == "hold":
            held.append(saved.hold(tokens(*ids), state(20 * len(ids))))
        elif step == "let go" and held:
            saved.release(held.pop(len(ids) % len(held)))
        n_held = sum(one.n_bytes for one in held)
        latest = sum(one.n_bytes for one in held[-LEAST_HELD:])
        assert saved.n_bytes <= max(budget, latest)
        if step == "add":
            saved.add(tokens(*ids), state(20 * len(ids)))
            assert saved.n_bytes <= max(budget, n_held)
            n, found = saved.find(tokens(*ids))
            assert n == (common_prefix(found.tokens, tokens(*ids)) if found else 0)
            if saved and len(ids) * 24 + n_held <= budget:
                assert n == len(ids)  # the newest is never the one to go
