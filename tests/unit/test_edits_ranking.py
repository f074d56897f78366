"""The ranking of next edits: trees as they are read, and how they are fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codespec.documents.edit_history import EditHistory
from codespec.edits import ranking
from codespec.edits.base import CursorLine
from codespec.edits.ranking import Ranking, RankingModel
from codespec.edits.repeats import Repeats
from codespec_bench.maintainers import boosting, edit_examples, fit_edits
from codespec_bench.maintainers.boosting import Boosting
from codespec_bench.maintainers.edit_examples import Examples

MODEL = RankingModel(
    bias=-1.0,
    weights=np.array([0.0, 0.0, 0.5]),
    features=np.array([[0, 2, 2], [2, 0, 0]]),
    thresholds=np.array([[0.5, 1.5, 2.5], [2.0, 1e9, 1e9]]),
    leaves=np.array([[1.0, 2.0, 3.0, 4.0], [0.25, 0.5, 0.75, 1.0]]),
)
NAMES = ("a", "b", "c")


@pytest.mark.parametrize(
    ("a", "c", "score"),
    [
        (0.0, 0.0, -1 + 1 + 0.25),
        (0.5, 2.0, -1 + 2 + 0.25 + 0.5 * 2),  # at a threshold is left of it
        (1.0, 2.1, -1 + 3 + 0.75 + 0.5 * 2.1),
        (1.0, 9.0, -1 + 4 + 0.75 + 0.5 * 9),
    ],
)
def test_the_answers_of_trees_and_regression_add_up(a, c, score):
    assert MODEL.scores(np.array([[0.0, 0, 0], [a, 7, c]]))[1] == pytest.approx(score)
    (chance,) = Ranking(NAMES, MODEL).chances([{"c": c, "a": a, "b": 0, "other": 3}])
    assert chance == pytest.approx(1 / (1 + np.exp(-score)))


def test_no_candidates_have_no_chances():
    assert Ranking(NAMES, MODEL).chances([]).shape == (0,)


def test_a_kept_model_asks_for_what_it_needs_alone(tmp_path):
    ranking.write(tmp_path / "r.json", NAMES, MODEL)
    again = ranking.read(tmp_path / "r.json")
    rows = [{"a": a, "c": c} for a in (0, 1) for c in (0, 2, 3)]  # no feature "b" any more
    given = Ranking(NAMES, MODEL).chances([{**row, "b": 1.0} for row in rows])
    assert again.chances(rows) == pytest.approx(given, abs=1e-4)


def test_the_shipped_ranking_asks_for_features_that_there_are(first_candidates):
    chances = ranking.shipped().chances([row for _, row in first_candidates])
    assert ((chances > 0) & (chances < 1)).all()


class OneText:
    """A workspace of one open document."""

    def __init__(self, text: str) -> None:
        self.open = {"/a.py": text}

    def holding(self, words, n_most):
        return []


@pytest.fixture
def first_candidates():
    text = "old_name(1)\nold_name(2)\nold_name(3)\n"
    after = text.replace("old_name(1)", "new_name(1)")
    history = EditHistory()
    history.changed("/a.py", text, after)
    found = Repeats().candidates(history.changes(), OneText(after), CursorLine("/a.py", 0))
    assert found
    return found


def test_boosting_finds_what_two_features_say_together():
    rng = np.random.default_rng(0)
    x = rng.random((4000, 3)).astype(np.float32)
    is_right = (x[:, 0] > 0.5) != (x[:, 2] > 0.3)
    how = Boosting(n_trees=40, depth=3, rate=0.3)
    trees = boosting.fit(x[:3000], is_right[:3000], np.ones(3000), how)
    said = trees.scores(x[3000:].astype(np.float64)) > 0
    assert (said == is_right[3000:]).mean() > 0.95
    again = boosting.fit(x[:3000], is_right[:3000], np.ones(3000), how)
    assert (again.leaves == trees.leaves).all()


def test_what_weighs_more_counts_more():
    x = np.zeros((1000, 1), np.float32)
    is_right = np.arange(1000) < 500
    trees = boosting.fit(x, is_right, np.where(is_right, 3.0, 1.0), Boosting(n_trees=3))
    (score,) = trees.scores(np.zeros((1, 1)))
    assert 1 / (1 + np.exp(-score)) == pytest.approx(0.75, abs=0.01)


def test_a_regression_finds_weights_that_are_drawn_to_zero():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (4000, 2)).astype(np.float32)
    is_right = rng.random(4000) < 1 / (1 + np.exp(-(1.5 * x[:, 0] - 1)))
    given = replace(EXAMPLES, features=x, right=is_right)
    model = fit_edits.regression(given, np.ones(4000))
    assert 0.8 < model.weights[0] < 1.4
    assert abs(model.weights[1]) < 0.1
    assert model.bias == pytest.approx(-1, abs=0.25)


def test_calibration_finds_the_true_odds():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 2, 20_000)
    is_right = rng.random(20_000) < 1 / (1 + np.exp(-(0.5 * scores - 1)))
    factor, addend = fit_edits.platt(scores, is_right, np.ones(20_000))
    assert (factor, addend) == (pytest.approx(0.5, abs=0.03), pytest.approx(-1, abs=0.05))


EXAMPLES = Examples(
    names=["likely", "n_dismissed", "n_pattern_dismissed"],
    repositories=["one", "two"],
    features=np.array([[1, 0, 0], [0.5, 0, 0]] * 4, np.float32),
    right=np.array([False, True] * 3 + [False, False]),
    ask=np.array([0, 0, 1, 1, 2, 2, 3, 3]),
    edit=np.array([7, 8, 7, 8, 7, 8, 7, 9]),
    pattern=np.array([1, 1, 1, 2, 1, 1, 1, 1]),
    commit=np.array([0, 0, 1, 1]),
    repository=np.array([0, 0, 1, 1]),
    order=np.array([0, 0, 0, 0]),
    is_active=np.array([True, True, True, False]),
    is_repeatable=np.array([True, False, True, False]),
)
"""Two commits of two asks, the last of them with nothing outstanding; each ask has a likely
candidate that is wrong, and an unlikely one, which is right where something is outstanding."""


def score(rows, features):
    return np.where(features[:, 0] == 1, 3.0, 1.0)


def test_a_session_shows_the_likeliest_and_forgets_what_was_wrong():
    shown, lived = fit_edits.played(EXAMPLES, score, 0.5)
    assert shown.tolist() == [0, 3, 4, 7]
    assert lived.edit.tolist() == [7, 8, 8, 7, 8, 9]
    assert lived.ask.tolist() == [0, 0, 1, 2, 2, 3]
    log2 = pytest.approx(np.log(2))
    assert lived.features[2].tolist() == [0.5, log2, 0.0]  # another pattern than what was wrong
    assert lived.features[5].tolist() == [0.5, log2, log2]
    found = fit_edits.figures(EXAMPLES, shown, 0)
    assert (found["shown"], found["precision"], found["quiet_rate"]) == (4, 0.25, 0.0)
    assert (found["recall"], found["recall_repeatable"]) == (pytest.approx(1 / 3), 0.0)
    assert (found["precision_by_commit"], found["wrong_per_commit"]) == (0.25, 1.5)


def test_nothing_is_shown_below_the_bar():
    shown, lived = fit_edits.played(EXAMPLES, score, 0.96)
    assert len(shown) == 0
    assert len(lived.right) == 8


def test_examples_are_joined_kept_and_chosen(tmp_path):
    both = edit_examples.joined([EXAMPLES, replace(EXAMPLES, repositories=["one", "three"])])
    assert both.repositories == ["one", "two", "three"]
    assert both.repository.tolist() == [0, 0, 1, 1, 0, 0, 2, 2]
    assert both.commit.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert both.ask.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
    edit_examples.save(tmp_path / "e.npz", both)
    again = edit_examples.load(tmp_path / "e.npz")
    assert (again.names, again.repositories) == (both.names, both.repositories)
    part = again.of_asks(again.repository == 2)
    assert part.ask.tolist() == [0, 0, 1, 1]
    assert part.features.tolist() == EXAMPLES.features[4:].tolist()
    assert part.is_active.tolist() == [True, False]
