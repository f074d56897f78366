"""Drafts for rows of an engine: from where, for whom, and what they leave out."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.documents.sources import PREFIX, REPOSITORY, SUFFIX
from codespec.drafters.planner_weights import source_names
from codespec.drafters.planners import prior
from codespec.drafters.token_kinds import token_kinds
from codespec.native import Calibration, DraftedRequest, RowThreads, Sources, SuffixAutomaton
from codespec.serving.batch_cost import BatchCost
from codespec.serving.counters import RowCounters
from codespec.serving.lookup_rows import LookupRows
from codespec.serving.prompt_document import document_in
from codespec.serving.rows import RequestPlace, RowFeed, RowState
from codespec.serving.served_workspaces import ServedWorkspaces
from codespec.types import NO_TOKENS, FimTokens
from tests.index_support import Workspace, isolate

TOKENIZER = ByteTokenizer()
KINDS = token_kinds(TOKENIZER)
FLAT_COST = BatchCost(FLAT, learns=False)


class Rows:
    """An engine's rows of texts, and a drafter for them."""

    def __init__(self, roots: dict[str, str] | None = None, cost: BatchCost = FLAT_COST) -> None:
        self.counters = RowCounters()
        self.workspaces = ServedWorkspaces(roots or {}, KINDS, TOKENIZER.hash, 10**9)
        self.drafter = LookupRows(None, self.workspaces, cost, self.counters, 2)
        self.feed = RowFeed()

    def draft(
        self, *rows: tuple[str, str, str], place: RequestPlace | None = None, n: int = 16
    ) -> list[str]:
        """Drafts for rows of (key, prompt, output so far)."""
        states: list[RowState] = []
        for key, prompt, said in rows:
            ids = TOKENIZER.encode(prompt + said)
            n_prompt = len(TOKENIZER.encode(prompt))
            states.append(RowState(key, ids, len(ids), n_prompt, n, place or RequestPlace()))
        steps, ended = self.feed.steps(states, ())
        found = self.drafter.draft(steps, ended, 1e6)
        return [TOKENIZER.decode(chain).decode() for chain in found]


def test_each_row_drafts_from_its_own_text():
    rows = Rows()
    said = ("alpha(beta, gamma)\nalpha(", "one two three\none ")
    assert rows.draft(("a", said[0], "b"), ("b", said[1], "t")) == [
        "eta, gamma)\nalph",
        "wo three\none two",
    ]
    assert rows.draft(("a", said[0], "beta"), ("b", said[1], "two"))[0].startswith(", gamma)")
    assert rows.counters.n_begun == 2


def test_rows_move_and_end():
    rows = Rows()
    rows.draft(("a", "xy zw xy ", "z"), ("b", "kl mn kl ", "m"))
    assert rows.draft(("b", "kl mn kl ", "mn"), n=2) == [" k"]
    assert rows.draft(("a", "xy zw xy ", "zw"), n=2) == [" x"]
    assert rows.counters.n_begun == 3


def test_accepted_tokens_are_counted():
    rows = Rows()
    (draft,) = rows.draft(("a", "alpha beta alpha b", "e"), n=4)
    assert draft == "ta a"
    rows.draft(("a", "alpha beta alpha b", "eta x"))
    rows.draft()
    prefix = rows.counters.by_source["prefix"]
    assert prefix.n_accepted == 3


@pytest.fixture
def repositories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Workspace]:
    isolate(monkeypatch, tmp_path)
    made: dict[str, Workspace] = {}
    for name in ("red", "blue"):
        made[name] = Workspace(tmp_path / name)
        lines = (f"{name}_value_{i} = compute_{name}(input_{i}, scale={i * 7})" for i in range(60))
        made[name].write("own.py", "\n".join(lines) + "\n")
        made[name].write("other.py", f"def shared(client):\n    return client.{name}_only(42)\n")
        made[name].build()
    return made


def roots_of(repositories: dict[str, Workspace]) -> dict[str, str]:
    return {name: str(workspace.root) for name, workspace in repositories.items()}


def test_a_row_drafts_from_its_own_workspace_alone(repositories):
    rows = Rows(roots_of(repositories))
    ask = "# a note\nresult = client."
    for name in ("red", "blue"):
        (draft,) = rows.draft((name, ask, name[0]), place=RequestPlace(name))
        assert draft.startswith(f"{name}_only(42)"[1:])
    for other in ("", "green", "../red", str(repositories["red"].root)):
        assert "only" not in rows.draft((f"x{other}", ask, "r"), place=RequestPlace(other))[0]


@pytest.mark.parametrize("path", ["", "own.py", "elsewhere.py"])
def test_the_stored_copy_of_the_file_at_hand_does_not_draft(repositories, path):
    """With its path, and where none, or an unknown one, is told: by the text that it shares."""
    rows = Rows(roots_of(repositories))
    text = (repositories["red"].root / "own.py").read_text()
    at = text.index("input_41")
    before = text[:at]
    (draft,) = rows.draft(("a", before, "i"), place=RequestPlace("red", path))
    assert "41" not in draft
    # A short question of another file still drafts from it.
    (draft,) = rows.draft(
        ("b", "# new\nred_value_41 = compute_red(inpu", "t"), place=RequestPlace("red")
    )
    assert draft.startswith("_41, scale=")


def test_a_copy_that_was_edited_is_known_again(repositories):
    rows = Rows(roots_of(repositories))
    lines = (repositories["red"].root / "own.py").read_text().splitlines(keepends=True)
    for i in (3, 19, 33):
        lines[i] = f"changed_{i} = None\n"
    at = 45
    before = "".join(lines[:at]) + "red_value_45 = compute_red("
    (draft,) = rows.draft(("a", before, "i"), place=RequestPlace("red"))
    assert "45" not in draft


def test_what_many_files_share_is_no_copy(tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path)
    workspace = Workspace(tmp_path / "w")
    head = "# Permission is granted to anyone to use this for any purpose whatever it may be.\n"
    for i in range(12):
        workspace.write(f"f{i}.py", f"{head}def function_{i}():\n    return special_name({i})\n")
    workspace.build()
    rows = Rows({"w": str(workspace.root)})
    (draft,) = rows.draft(
        ("a", f"{head}def function_x():\n    return spec", "i"), place=RequestPlace("w")
    )
    assert draft.startswith("al_name(")


def test_nothing_is_drafted_for_who_does_not_want_it():
    rows = Rows()
    assert rows.draft(("a", "xyxyxyxy", "x"), place=RequestPlace(drafts=False)) == [""]
    assert rows.draft(("a", "xyxyxyxy", "xy"), place=RequestPlace(drafts=False)) == [""]


def test_what_one_client_sends_is_no_loss_of_others(repositories):
    rows = Rows(roots_of(repositories))
    ids = TOKENIZER.encode("alpha beta alpha b")
    places = [RequestPlace("red", "a\0b"), RequestPlace("red", "own.py")]
    states = [RowState(str(i), ids, len(ids), 4, 4, place) for i, place in enumerate(places)]
    steps, ended = rows.feed.steps(states, ())
    first, second = rows.drafter.draft(steps, ended, 1e6)
    assert first == []
    assert TOKENIZER.decode(second) == b"eta "
    assert rows.counters.n_failed == 1


def test_a_batch_narrows_drafts_where_tokens_cost():
    steep = BatchCost(CostCurve({1: 1.0, 8: 1.0, 16: 2.0, 32: 4.0, 64: 8.0}), learns=False)
    (alone,) = Rows(cost=steep).draft(("a", "value = other\nvalu", "e"), n=4)
    texts = [(str(i), "value = other\nvalu", "e") for i in range(8)]
    together = Rows(cost=steep).draft(*texts, n=4)
    assert len(alone) > max(map(len, together))


def test_costs_follow_the_engine():
    cost = BatchCost(CostCurve({1: 1.0, 64: 2.0}, is_prior=True), learns=True)
    for _ in range(300):
        cost.observe(2, 10.0)
        cost.observe(64, 80.0)
    costs = cost.costs(8, 7)
    assert costs.shape == (8,)
    assert costs[7] > 5 * cost.costs(2, 0)[0]


@pytest.mark.parametrize(
    ("prompt", "before", "after"),
    [
        ([8, 9], [8, 9], []),
        ([1, 8, 2, 5, 6, 3], [8], [5, 6]),
        ([1, 8, 2, 5, 3, 9, 9], [8, 9, 9], [5]),
        ([1, 2, 5, 6, 3, 8, 9], [8, 9], [5, 6]),
        ([2, 5, 6, 1, 8, 3, 9], [8, 9], [5, 6]),
        ([7, 1, 4, 2, 4, 3, 4, 1, 8, 2, 5, 3], [8], [5]),
        ([1, 8, 2, 5], [1, 8, 2, 5], []),
    ],
)
def test_the_document_in_a_prompt(prompt, before, after):
    found = document_in(np.array(prompt, np.int32), FimTokens(1, 2, 3))
    assert [part.tolist() for part in found] == [before, after]


# ---- the native call


def calibration() -> Calibration:
    return Calibration(KINDS, len(source_names()), prior().state(source_names()))


def request_of(known: Calibration, before: str, after: str = "") -> DraftedRequest:
    left, right = TOKENIZER.encode(before), TOKENIZER.encode(after)
    sources = Sources(left)
    sources.add_before(PREFIX, SuffixAutomaton())
    behind = SuffixAutomaton()
    behind.extend(right)
    sources.add_automata(SUFFIX, [behind], True)
    return DraftedRequest(known, sources, left, right)


COSTS = np.ones(9)


def test_many_threads_draft_what_one_does():
    rng = random.Random(7)
    texts = ["".join(rng.choice("ab(x)\n ") for _ in range(400)) for _ in range(64)]
    outputs = [["".join(rng.choice("ab(x)\n ") for _ in range(3)) for _ in range(6)] for _ in texts]
    found: list[list[list[int]]] = []
    for n_threads in (1, 8):
        threads, known = RowThreads(n_threads), calibration()
        assert len(threads) == n_threads
        requests = [request_of(known, text, text[::-1]) for text in texts]
        all_chains: list[list[int]] = []
        for i in range(6):
            fresh = [TOKENIZER.encode(output[i]).tolist() for output in outputs]
            chains, n_late, n_failed = threads.draft(requests, fresh, [8] * 64, COSTS, 1e6)
            assert (n_late, n_failed) == (0, 0)
            all_chains += chains
        found.append(all_chains)
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 500


def test_a_late_row_reads_and_does_not_draft():
    threads = RowThreads(1)
    request = request_of(calibration(), "alpha beta alpha b")
    assert threads.draft([request], [[ord("e")]], [8], COSTS, 0.0) == ([[]], 1, 0)
    chains, _, _ = threads.draft([request], [[ord("t")]], [4], COSTS, 1e6)
    assert chains == [list(b"a al")]


def test_two_calls_at_once_harm_nothing():
    """The same requests, from threads that do not know of one another."""
    threads, known = RowThreads(4), calibration()
    requests = [request_of(known, f"alpha beta {i} alpha b") for i in range(16)]

    def ask() -> None:
        for _ in range(40):
            threads.draft(requests + requests, [[101]] * 32, [8] * 32, COSTS, 1e6)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for thread in askers:
        thread.start()
    for thread in askers:
        thread.join()
    for request in requests:
        request.end()
        request.end()
    assert known.n_open == 0
    assert threads.draft(requests[:1], [[101]], [8], COSTS, 1e6)[0] == [[]]


def test_wrong_arguments_are_refused():
    threads, request = RowThreads(1), request_of(calibration(), "x")
    for fresh, n_max, costs in (
        ([], [8], COSTS),
        ([[1]], [8, 8], COSTS),
        ([[1]], [8], np.zeros(0)),
        ([[1]], [8], np.array([1.0, np.nan])),
    ):
        with pytest.raises(ValueError, match=r".+"):
            threads.draft([request], fresh, n_max, costs, 1.0)
    with pytest.raises(TypeError):
        threads.draft([None], [[1]], [8], COSTS, 1.0)  # pyright: ignore[reportArgumentType]
    for n in (0, 65):
        with pytest.raises(ValueError, match="1 to 64"):
            RowThreads(n)
    few = Calibration(KINDS, 1, prior().state(source_names()[:1]))
    sources = Sources(NO_TOKENS)
    sources.add_segments(REPOSITORY, [])
    with pytest.raises(ValueError, match="fewer sources"):
        DraftedRequest(few, sources, NO_TOKENS, NO_TOKENS)
