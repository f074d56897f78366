"""Learned weights of drafts is kept by the names of sources, and read from older files as well."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from codespec.drafters.planner_weights import (
    PlannerWeights,
    parse_weights,
    read_weights,
    source_names,
    weights_of,
    write_weights,
)
from codespec.drafters.planners import Planners, prior
from codespec.native import Planner
from codespec.types import NO_TOKENS, Source
from tests.unit.test_planners import KINDS, fresh, plan, proposal

KEPT = Path(__file__).parents[1] / "golden" / "learned"
"""acceptance-1.bin: what version 0.1.0 wrote, with eight sources told by number.
acceptance-1.json: what it then expected of a first token, by source, at each of `PLACES`."""

PLACES = (
    (b"alpha beta alpha gamma alpha", b" alpha"),
    (b"f(a, b)\nf(a, c)\n", b"f(a, "),
    (b"one two three one two four", b"one two "),
)


def first_tokens(
    learned: PlannerWeights, source: Source
) -> Iterator[tuple[float, npt.NDArray[np.uint16]]]:
    """(probability, table entries) of the first token that a source proposes, at each place."""
    for text, context in PLACES:
        planner = fresh()
        planner.load(learned.state(source_names()))
        plan(planner, (source, proposal(text, context)))
        planner.learn([0, 0], 0)
        _, _, probs, _, entries = planner.outcomes()
        yield float(probs[0]), entries[: Planner.n_features]


def test_a_file_of_the_version_before_says_the_same():
    """Its weights are what the version before had; that corrected by twenty steps of the sum how
    much was accepted, which stands in the file and is not used any more."""
    known = read_weights(KEPT / "acceptance-1.bin")
    assert known is not None
    said = json.loads((KEPT / "acceptance-1.json").read_text())
    assert set(said) == set(known.weights)
    steps = np.frombuffer(
        (KEPT / "acceptance-1.bin").read_bytes()[-len(said) * 20 * 3 * 4 :], "<f4"
    )
    weights = known.state(source_names())
    for name, of_source in zip(known.weights, steps.reshape(-1, 20, 3), strict=True):
        rows = [row[0] for row in said[name]]
        assert len(set(rows)) == len(PLACES)
        found = first_tokens(known, Source.register(name))
        for row, (prob, entries) in zip(rows, found, strict=True):
            total = float(weights[entries].sum())
            assert prob == pytest.approx(1 / (1 + math.exp(-total)), abs=1e-5)
            n, n_accepted, expected = of_source[int(np.clip(2 * total + 10, 0, 19))]
            assert prob + (n_accepted - expected) / (n + 16) == pytest.approx(row, abs=1e-5)


def test_corrections_in_older_files_are_left_aside(tmp_path):
    known = prior()
    write_weights(tmp_path / "state", known)
    body = (tmp_path / "state").read_bytes()[12:]
    for n, is_read in ((60, True), (0, True), (59, False)):
        more = body + np.ones(n * len(known.weights), "<f4").tobytes()
        kept = parse_weights(b"CSACC002" + zlib.crc32(more).to_bytes(4, "little") + more)
        assert (kept is not None) == is_read
        if kept is not None:
            np.testing.assert_array_equal(kept.state(source_names()), known.state(source_names()))


def test_it_is_used_and_written_anew_by_name(tmp_path):
    planners = Planners(KINDS, "model", tmp_path)
    planners.of("/w")
    planners.save()
    for file in tmp_path.iterdir():
        file.write_bytes((KEPT / "acceptance-1.bin").read_bytes())
    known = read_weights(KEPT / "acceptance-1.bin")
    assert known is not None
    again = Planners(KINDS, "model", tmp_path)
    np.testing.assert_array_equal(again.of("/w").state(), known.state(source_names()))
    again.save()
    for file in tmp_path.iterdir():
        assert file.read_bytes().startswith(b"CSACC002")
        kept = read_weights(file)
        assert kept is not None
        np.testing.assert_array_equal(kept.state(source_names()), known.state(source_names()))


def test_numbers_of_sources_do_not_matter(tmp_path):
    known = read_weights(KEPT / "acceptance-1.bin")
    assert known is not None
    names = source_names()
    turned = weights_of(known.state(names[::-1]), names[::-1])
    assert turned is not None
    write_weights(tmp_path / "state", turned)
    kept = read_weights(tmp_path / "state")
    assert kept is not None
    np.testing.assert_array_equal(kept.state(names), known.state(names))


def test_a_source_that_nobody_knows_is_neutral_and_learns():
    names = [*source_names(), "new"]
    planner = Planner(KINDS, len(names))
    planner.load(prior().state(names))
    new = len(names) - 1
    text, context = PLACES[0]
    before: list[float] = []
    for _ in range(60):
        planner.begin(NO_TOKENS, NO_TOKENS)
        plan(planner, (new, proposal(text, context)))
        planner.learn(list(b" "), 1)
        before.append(float(planner.outcomes()[2][0]))
    # What sources share speaks for it at first, and neither for sure.
    assert 0.05 < before[0] < 0.95
    assert before[-1] > before[0] + 0.1 or before[-1] > 0.95
    known = weights_of(planner.state(), names)
    assert known is not None
    assert known.weights["new"].any()


@pytest.mark.parametrize("damage", [b"", b"CSACC002", b"CSACC001" + bytes(99), b"x" * 40])
def test_anything_else_is_nothing(damage):
    assert parse_weights(damage) is None
