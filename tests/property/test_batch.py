"""Input and output of a pass, against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.native import Batch, Rows

TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=9)


def cells(n: int):
    return np.full(n, -7, np.int32), np.full(n, -7, np.int32), np.full(n, -7, np.int8)


@given(committed=TOKENS, chain=TOKENS, start=st.integers(0, 2**31 - 100), want=st.booleans())
def test_a_batch_holds_what_was_laid(
    committed: list[int], chain: list[int], start: int, want: bool
) -> None:
    tokens, positions, wanted = cells(24)
    Batch(tokens, positions, wanted).lay(
        np.array(committed, np.int32), np.array(chain, np.int32), start, want
    )
    n = len(committed) + len(chain)
    assert tokens[:n].tolist() == committed + chain
    assert positions[:n].tolist() == list(range(start, start + n))
    first = max(len(committed) - 1, 0)
    assert wanted[:n].tolist() == [0] * min(first, n) + [int(want)] * (n - first)
    for array in (tokens, positions, wanted):
        assert (array[n:] == -7).all()


def test_a_batch_refuses_what_does_not_fit() -> None:
    batch = Batch(*cells(3))
    two = np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="cells"):
        batch.lay(two, two, 0, True)
    for start in (-1, 2**31 - 1):
        with pytest.raises(ValueError, match="position"):
            batch.lay(two, two[:0], start, True)
    with pytest.raises(TypeError):
        Batch(np.zeros(3, np.int64), *cells(3)[1:])  # pyright: ignore[reportArgumentType]


FLOATS = st.floats(width=32, allow_nan=False)


@given(
    size=st.integers(1, 3000),
    marks=st.dictionaries(st.integers(0, 2999), st.floats(-1.0, 4.0, width=32), max_size=8),
    rest=st.sampled_from([0.0, -math.inf, math.nan]),
)
def test_a_long_row_is_no_different(size: int, marks: dict[int, float], rest: float) -> None:
    row = np.full(size, rest, np.float32)
    for i, x in marks.items():
        row[i % size] = x
    known = np.where(np.isnan(row), -math.inf, row)
    expected = int(known.argmax())
    if known[expected] == -math.inf:  # nothing is above what is no number
        expected = int(np.argmax(row == -math.inf))
    assert Rows(row[None]).argmax(0) == expected


@given(row=st.lists(FLOATS, min_size=1, max_size=70), at=st.integers(0, 2))
def test_the_largest_logit_is_the_first_of_equals(row: list[float], at: int) -> None:
    logits = np.zeros((3, len(row)), np.float32)
    logits[at] = row
    rows = Rows(logits)
    assert rows.argmax(at) == int(logits[at].argmax())
    assert rows.row(at).tolist() == row
    with pytest.raises(IndexError):
        rows.argmax(3)


def test_a_row_outlives_its_rows_and_is_not_written_to() -> None:
    row = Rows(np.arange(8, dtype=np.float32).reshape(2, 4)).row(1)
    assert row.tolist() == [4, 5, 6, 7]
    assert not row.flags.writeable


def test_numbers_that_are_none_are_never_the_largest() -> None:
    logits = np.full((1, 40), np.nan, np.float32)
    assert Rows(logits).argmax(0) == 0
    logits[0, [19, 33]] = -5, -6
    assert Rows(logits).argmax(0) == 19
