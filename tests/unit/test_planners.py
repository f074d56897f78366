"""Planner: known and learned acceptance, its file, and damage to it."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.documents.sources import BUFFERS, PREFIX, REPOSITORY, SUFFIX
from codespec.drafters import token_kinds
from codespec.drafters.planner_weights import (
    PlannerWeights,
    read_weights,
    source_names,
    write_weights,
)
from codespec.drafters.planners import (
    MAX_KEPT,
    MAX_WORKSPACES,
    SAVE_EVERY,
    Planners,
    prior,
)
from codespec.native import Planner, Sources, SuffixAutomaton
from codespec.types import NO_TOKENS, Source

KINDS = token_kinds.token_kinds(ByteTokenizer())
FLAT = np.ones(17)
NOTHING = (NO_TOKENS,) * 5


def proposal(text: bytes, context: bytes, n: int = 8):
    automaton = SuffixAutomaton()
    automaton.extend(np.frombuffer(text, np.uint8).astype(np.int32))
    return automaton.draft(np.frombuffer(context, np.uint8).astype(np.int32), n)


def offered(*offers) -> Sources:
    """Sources with these offers: (source, distance, columns, path) each."""
    sources = Sources(NO_TOKENS)
    for i, (source, distance, columns, path) in enumerate(offers):
        sources.add_automata(int(source), [], is_after=distance >= 0)
        sources.offer(i, distance, columns, path)
    return sources


def plan(planner, *offers, n_max=16, max_leaves=1, costs=FLAT):
    sources = offered(*((source, -1, found.columns, NO_TOKENS) for source, found in offers))
    found = planner.plan(sources, n_max, max_leaves, costs)
    return NOTHING if found is None else found


def fresh() -> Planner:
    planner = Planners(KINDS).of("")
    planner.begin(NO_TOKENS, NO_TOKENS)
    return planner


def probability(planner, found, source=PREFIX) -> float:
    return float(plan(planner, (source, found))[2][0])


def tokens(text: bytes):
    return np.frombuffer(text, np.uint8).astype(np.int32)


def test_the_prior_knows_that_long_unanimous_matches_are_right():
    planner = fresh()
    text = b"def frobnicate(argument): return argument"
    long = probability(planner, proposal(text, b"def frobnicate(arg"))
    short = probability(planner, proposal(text, b"u"))
    split = probability(planner, proposal(b"xa xb xc xd xd", b"x"))
    assert 0 < split < short < long < 1
    assert long > 0.6


def test_probabilities_follow_outcomes_and_other_sources_stay():
    planner = fresh()
    found = proposal(b"alpha beta alpha gamma", b"alpha beta alph")
    before = probability(planner, found)
    other = probability(planner, found, BUFFERS)
    for _ in range(200):
        plan(planner, (PREFIX, found))
        planner.learn([7], 0)
    low = probability(planner, found)
    for _ in range(400):
        plan(planner, (PREFIX, found))
        planner.learn(list(b"a"), 0)
    assert low < 0.5 * before
    assert probability(planner, found) > 0.9
    assert abs(probability(planner, found, BUFFERS) - other) < 0.5


def test_sources_that_agree_are_believed_more_than_rivals():
    planner = fresh()
    says_a = proposal(b"name = alpha", b"name = ")
    says_b = proposal(b"name = beta", b"name = ")
    agree = plan(planner, (PREFIX, says_a), (REPOSITORY, says_a))
    rivals = plan(planner, (PREFIX, says_a), (REPOSITORY, says_b), max_leaves=2)
    roots = rivals[1] == -1
    assert sorted(rivals[0][roots].tolist()) == sorted(b"ab")
    assert rivals[2][roots].max() < agree[2][0]
    assert rivals[2][roots].sum() <= 1.0 + 1e-6


def test_nothing_is_drafted_where_nothing_pays():
    planner = fresh()
    weak = proposal(b"xa xb xc xd xe xf xg", b"x")
    steep = np.arange(1.0, 18.0)
    assert len(plan(planner, (PREFIX, weak), costs=steep)[0]) == 0
    assert len(plan(planner, (PREFIX, weak))[0]) > 0
    assert len(plan(planner)[0]) == 0


def drafted_after_texts(n_emitted: int | None) -> int:
    """Tokens drafted of "b", a line's end and "cdef" after twenty texts of "b", a line's end and
    "c", whose end was told to be behind so many of these tokens; None: never."""
    planner, found = fresh(), proposal(b"xxab\ncdefghijk xxab\ncdefghijk", b"xxa", 6)
    costs = np.linspace(1.0, 4.2, 17)
    for _ in range(20):
        planner.begin(NO_TOKENS, NO_TOKENS)
        plan(planner, (PREFIX, found), costs=costs)
        planner.learn(list(b"b\nc"), 3)
        if n_emitted is not None:
            planner.ended(n_emitted)
        else:
            planner.learn(list(b"defg"), 4)
    planner.begin(NO_TOKENS, NO_TOKENS)
    return len(plan(planner, (PREFIX, found), costs=costs)[0])


def test_nothing_is_drafted_behind_a_line_where_texts_end():
    # The line's end itself brings nothing: what the pass says after it is not kept.
    assert drafted_after_texts(2) <= 1
    assert drafted_after_texts(None) > 3
    # Ends that are behind the tokens which the planner was told of, or before them, are no matter.
    for n_emitted in (0, 99):
        assert drafted_after_texts(n_emitted) > 3


def best_by_force(nodes, costs, max_leaves):
    """The best rate of all subtrees, from the definition."""
    best = 1 / costs[0]
    n = len(nodes)
    for chosen in range(1, 1 << n):
        kept = [i for i in range(n) if chosen >> i & 1]
        if any(nodes[i][0] >= 0 and not chosen >> nodes[i][0] & 1 for i in kept):
            continue
        inner = {nodes[i][0] for i in kept}
        if sum(i not in inner for i in kept) > max_leaves:
            continue
        best = max(best, (1 + sum(nodes[i][1] for i in kept)) / costs[len(kept)])
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_tree_is_the_best_there_is(seed):
    rng = np.random.default_rng(seed)
    planner = fresh()
    offers = []
    for source in (PREFIX, SUFFIX, REPOSITORY):
        text = bytes(rng.choice(list(b"ab"), 40).tolist())
        offers.append((source, proposal(text, text[:3], 3)))
    costs = np.cumsum(rng.random(11) + 0.05)
    everything = plan(planner, *offers, n_max=10, max_leaves=99, costs=np.full(40, 1.0))
    paths: list[float] = []
    for prob, parent in zip(everything[2], everything[1], strict=True):
        paths.append(float(prob) * (1.0 if parent < 0 else paths[parent]))
    nodes = list(zip(everything[1].tolist(), paths, strict=True))
    chosen = plan(planner, *offers, n_max=10, max_leaves=99, costs=costs)
    mine: list[float] = []
    for prob, parent in zip(chosen[2], chosen[1], strict=True):
        mine.append(float(prob) * (1.0 if parent < 0 else mine[parent]))
    rate = (1 + sum(mine)) / costs[len(mine)]
    assert rate == pytest.approx(best_by_force(nodes, costs, 99), rel=1e-5)


@pytest.mark.parametrize(("again", "n_tail"), [(0.2, 1), (0.2, 6), (1.0, 1)])
def test_a_chain_is_the_best_of_its_width_where_tokens_are_read_again(again, n_tail):
    planner = fresh()
    offer = (PREFIX, proposal(b"for key in keys: for key in keys:", b"for k"))
    probs = plan(planner, offer, costs=np.full(40, 1.0))[2]
    costs = np.cumsum(np.full(len(probs) + 1, 0.3)) + 1.0
    path = np.concatenate([[1.0], np.cumprod(probs)])
    rates = [
        path[: k + 1].sum()
        / (costs[k] + again * ((path[:k] - path[1 : k + 1]) * (n_tail + np.arange(k))).sum())
        for k in range(len(probs) + 1)
    ]
    args = 16, 1, costs, again, n_tail
    found = planner.plan(offered((offer[0], -1, offer[1].columns, NO_TOKENS)), *args)
    n_drafted = 0 if found is None else len(found[0])
    assert rates[n_drafted] == pytest.approx(max(rates))
    with pytest.raises(ValueError, match="again"):
        planner.plan(offered(), *args[:-2], -1.0, 1)


def test_offers_go_on_where_their_path_leads():
    planner = fresh()
    ab, cd = tokens(b"ab"), tokens(b"cd")
    first = proposal(b"xab xab", b"x", 2)
    then = proposal(b"abcd abcd", b"ab", 2)
    rows = [(0, -1, first.columns, NO_TOKENS), (0, -1, then.columns, ab)]
    nowhere = (1, -1, then.columns, cd)  # no offer before it holds that path
    found = planner.plan(offered(*rows, nowhere), 8, 4, FLAT)
    assert found is not None
    assert found[0].tolist() == list(b"abcd")
    assert found[1].tolist() == [-1, 0, 1, 2]
    assert found[4].tolist() == [0, 0, 0, 1]


def test_leaves_are_bounded():
    planner = fresh()
    text = b"".join(b"key%c " % c for c in b"abcdefgh") * 2
    offers = [(s, proposal(text, text[i : i + 3])) for i, s in enumerate(Source.all()[:3])]
    for max_leaves in (1, 2, 3):
        found = plan(planner, *offers, max_leaves=max_leaves)
        assert len(set(range(len(found[0]))) - set(found[1].tolist())) <= max_leaves


def assert_starts_with(state, start: PlannerWeights) -> None:
    """A planner's state is what it began with, nothing learned yet."""
    np.testing.assert_array_equal(state, start.state(source_names()))


def test_learning_survives_in_the_cache_folder(tmp_path):
    planners = Planners(KINDS, "model", tmp_path)
    learned = planners.of("/w")
    found = proposal(b"alpha alpha", b"alph")
    learned.begin(NO_TOKENS, NO_TOKENS)
    for _ in range(50):
        plan(learned, (PREFIX, found))
        learned.learn([7], 1)
    planners.save()
    again = Planners(KINDS, "model", tmp_path).of("/w")
    np.testing.assert_array_equal(again.state(), learned.state())
    # A new workspace starts from there, another model as shipped.
    new = Planners(KINDS, "model", tmp_path).of("/v")
    np.testing.assert_array_equal(new.state(), learned.state())
    for start in (None, prior(1_000_000)):
        state = Planners(KINDS, "other", tmp_path, start).of("/w").state()
        assert_starts_with(state, prior() if start is None else start)
    assert not any(b"/w" in f.read_bytes() for f in tmp_path.iterdir())


def test_a_workspace_keeps_its_own(tmp_path):
    planners = Planners(KINDS, "model", tmp_path)
    first, found = planners.of("/v"), proposal(b"alpha alpha", b"alph")
    planners.save()
    second = planners.of("/w")
    for planner in (first, second):
        planner.begin(NO_TOKENS, NO_TOKENS)
    plan(second, (PREFIX, found))
    second.learn([7], 1)
    planners.save()
    again = Planners(KINDS, "model", tmp_path)
    np.testing.assert_array_equal(again.of("/v").state(), first.state())
    np.testing.assert_array_equal(again.of("/w").state(), second.state())
    assert (first.state() != second.state()).any()


def test_small_models_have_a_prior_of_their_own():
    small, large = prior(10_000_000), prior(7_000_000_000)
    assert small.weights.keys() == large.weights.keys()
    assert (small.shared != large.shared).any()
    assert large is prior(7_000_000_000)
    np.testing.assert_array_equal(large.shared, prior().shared)


def test_it_is_saved_now_and_then_and_on_the_way_out(tmp_path):
    planners = Planners(KINDS, "", tmp_path)
    for _ in range(SAVE_EVERY):
        planners.of("/w")
    assert len(list(tmp_path.iterdir())) == 2  # the workspace's, and the last one's
    for i in range(MAX_WORKSPACES + 3):
        planners.of(f"/{i}")
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text", "nan", "huge", "short"])
def test_damage_gives_the_prior(tmp_path, damage):
    planners = Planners(KINDS, "", tmp_path)
    planners.of("/w")
    planners.save()
    file, last = tmp_path.iterdir()
    last.unlink()
    stored = file.read_bytes()
    sound = read_weights(file)
    assert sound is not None
    if damage == "cut":
        file.write_bytes(stored[:-9])
    elif damage == "flip":
        file.write_bytes(stored[:99] + bytes([stored[99] ^ 4]) + stored[100:])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "text":
        file.write_text("not weights")
    elif damage == "short":
        write_weights(file, PlannerWeights(sound.shared[:7], sound.weights))
    else:
        sound.shared[5] = math.nan if damage == "nan" else 1e30
        write_weights(file, sound)
    assert_starts_with(Planners(KINDS, "", tmp_path).of("/w").state(), prior())


def test_a_folder_that_cannot_be_written_to_costs_nothing_else(tmp_path):
    (tmp_path / "file").write_text("x")
    planners = Planners(KINDS, "", tmp_path / "file" / "below")
    planners.of("/w")
    planners.save()


def test_a_planner_that_was_never_told_of_a_text_may_learn():
    planner = Planner(np.ones(1_000_000, np.uint8), Source.count())
    planner.learn([999_999], 1)
    sources = offered((0, -1, proposal(b"xab xab", b"x", 2).columns, NO_TOKENS))
    assert planner.plan(sources, 8, 1, FLAT) is not None


def test_what_a_planner_refuses():
    planner = fresh()
    found = proposal(b"abab", b"ab")
    with pytest.raises(ValueError, match="source"):
        offered((Source.MOST, -1, found.columns, NO_TOKENS))
    with pytest.raises(ValueError, match="fewer sources"):
        planner.plan(offered((planner.n_sources, -1, found.columns, NO_TOKENS)), 4, 1, FLAT)
    for n_sources in (0, Source.MOST + 1):
        with pytest.raises(ValueError, match="n_sources"):
            Planner(KINDS, n_sources)
    with pytest.raises(ValueError, match="6 columns"):
        offered((0, -1, found.columns[:4], NO_TOKENS))
    for costs in (np.zeros(0), np.array([1.0, math.nan]), np.array([0.0]), np.array([math.inf])):
        with pytest.raises(ValueError, match="costs"):
            planner.plan(offered((0, -1, found.columns, NO_TOKENS)), 4, 1, costs)
    with pytest.raises(ValueError, match="n_emitted"):
        planner.learn(list(b"a"), 2)
    with pytest.raises(ValueError, match="class"):
        Planner(np.array([16], np.uint8), 1)
    for state in (np.zeros(3, np.float32), np.full(planner.n_weights, np.nan, np.float32)):
        with pytest.raises(ValueError, match="state"):
            planner.load(state)
    # And what it bears: ids of no vocabulary, offers after what nobody said, widths of any size.
    planner.begin(np.array([-5, 2**31 - 1], np.int32), np.array([-1, 2**31 - 1], np.int32))
    assert planner.plan(offered((0, -1, found.columns, tokens(b"xyz"))), 4, 1, FLAT) is None
    assert planner.plan(offered((0, -1, found.columns, NO_TOKENS)), -3, 1, FLAT) is None
    planner.plan(offered((0, 2**60, found.columns, NO_TOKENS)), 10**6, 9, FLAT)
    planner.learn([-1, 2**31 - 1], 2)


@pytest.mark.parametrize(
    ("piece", "kind"),
    [
        (b"", token_kinds.SPECIAL),
        (b"):\n", token_kinds.LINE_END),
        (b"\n        ", token_kinds.LINE_END),
        (b"    ", token_kinds.BLANK),
        (b" return", token_kinds.KEYWORD),
        (b" value", token_kinds.WORD),
        (b"alue", token_kinds.WORD_PART),
        ("é".encode(), token_kinds.WORD_PART),
        (b"42", token_kinds.NUMBER),
        (b'"', token_kinds.QUOTE),
        (b"((", token_kinds.OPENING),
        (b"])", token_kinds.CLOSING),
        (b",", token_kinds.COMMA),
        (b" .", token_kinds.DOT),
        (b"):", token_kinds.COLON),
        (b" //", token_kinds.COMMENT),
        (b" +=", token_kinds.OPERATOR),
    ],
)
def test_kinds_of_tokens(piece, kind):
    assert token_kinds.kind_of(piece) == kind


def test_workspaces_and_models_of_long_ago_are_forgotten(tmp_path):
    for i in range(MAX_KEPT):
        (tmp_path / f"{i}.bin").write_bytes(b"")
        os.utime(tmp_path / f"{i}.bin", (i, i))
    planners = Planners(KINDS, "model", tmp_path)
    planners.of("/w")
    planners.save()
    left = {f.name for f in tmp_path.iterdir()}
    assert len(left) == MAX_KEPT
    assert not {"0.bin", "1.bin"} & left
    assert f"{MAX_KEPT - 1}.bin" in left
