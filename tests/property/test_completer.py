"""Whatever is drafted, the output is the plain output, and the KV cache holds what it should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.fake import FakeRows, FakeTarget, hashed_logits
from codespec.drafters.guard import GuardPolicy
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import Context, Draft, SamplingParams, Source, Tokens
from codespec.verify.sampling import Sampler
from tests.drafters import OracleDrafter, ScriptedDrafter, combined, tree

N_VOCAB = 12
EOG = frozenset({11})

params = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 3]),
    top_p=st.sampled_from([1.0, 0.9, 0.3]),
    min_p=st.sampled_from([0.0, 0.1]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    frequency_penalty=st.sampled_from([0.0, 0.7]),
    presence_penalty=st.sampled_from([0.0, -0.4]),
    seed=st.integers(0, 2**63),
)


class CheckedTarget(FakeTarget):
    """Records what the cache holds, with the tokens to decode, at every pass."""

    def __init__(self, eog: frozenset[int] = EOG, **options: Any) -> None:
        super().__init__(hashed_logits(N_VOCAB, 3.0), N_VOCAB, eog=eog, **options)
        self.committed: list[list[int]] = []
        self.tails: list[int] = []

    def decode(self, tokens: Tokens, draft: Draft) -> FakeRows:
        rows = super().decode(tokens, draft)
        self.tails.append(len(tokens))
        self.committed.append(self.cached)
        return rows

    def keep(self, path: Sequence[int]) -> None:
        is_whole = len(path) == len(self._draft) or self.can.rolls_back
        super().keep(path)
        n_read = len(self.committed[-1]) + len(path)
        assert self.n_cached == (n_read if is_whole else self._n_before)


def run(drafters, prompt, sampling, max_tokens=24, policy=GuardPolicy.RAISE, old=(), **options):
    target = CheckedTarget(**options)
    chain = combined(drafters, N_VOCAB, target.can.max_leaves, policy=policy)
    old_text = np.array(old, np.int32)
    context = Context(np.array(prompt, np.int32), sampling=sampling, old=old_text)
    out, finish = Completer(target, chain).run(
        context, Sampler(sampling), OutputLimits(max_tokens=max_tokens)
    )
    # All that was emitted is cached but the last token, which no pass has read yet; after an
    # end-of-generation token, that one is missing instead.
    n_committed = len(prompt) + len(out)
    assert target.n_cached <= n_committed
    assert target.n_cached >= n_committed - 1 or not target.can.rolls_back
    assert target.cached == (prompt + out)[: target.n_cached]
    assert all(seen == (prompt + out)[: len(seen)] for seen in target.committed)
    return out, finish, target


prompts = st.lists(st.integers(0, N_VOCAB - 2), min_size=1, max_size=20)

nodes = st.lists(
    st.tuples(st.integers(-3, N_VOCAB + 3), st.integers(-2, 12), st.floats(0, 1)), max_size=20
)


def malicious(choices):
    """A drafter that does its worst: wrong ids, bad parents, wrong shapes and types, raising."""
    state = {"i": 0}

    def script(emitted: Tokens, n_max: int) -> Any:
        kind, drawn = choices[state["i"] % len(choices)]
        state["i"] += 1
        tokens, parents, probs = ([n[j] for n in drawn] for j in range(3))
        if kind == "tree":
            parents = [min(p, i - 1) for i, p in enumerate(parents)]
            return tree([t % N_VOCAB for t in tokens], [max(p, -1) for p in parents], probs)
        if kind == "wild":
            return tree(tokens, parents, probs)
        if kind == "endless":
            return Draft.chain([1] * (n_max + 7))
        if kind == "raise":
            raise RuntimeError("drafter bug")
        if kind == "none":
            return None
        if kind == "float":
            return Draft.chain(np.array([1.5, 2.5]))
        if kind == "shapes":
            zeros = np.zeros(3, np.float32)
            return Draft(
                np.array([1, 2], np.int32), np.array([-1], np.int32), zeros, np.zeros(1, np.int8)
            )
        if kind == "nan":
            return Draft.chain([1, 2], probs=np.array([np.nan, np.inf], np.float32))
        return Draft.chain([])

    return ScriptedDrafter(script)


kinds = ["tree", "wild", "endless", "raise", "none", "float", "shapes", "nan", "empty"]


@settings(max_examples=300, deadline=None)
@given(
    prompts,
    params,
    st.lists(st.tuples(st.sampled_from(kinds), nodes), min_size=1, max_size=6),
    st.sampled_from([{}, {"rolls_back": False, "max_leaves": 1, "max_draft": 5}]),
)
def test_no_drafter_changes_the_output(prompt, sampling, choices, options):
    plain, finish, _ = run([], prompt, sampling)
    members = [malicious(choices), malicious(choices[::-1])]
    drafted = run(members, prompt, sampling, policy=GuardPolicy.LEAVE_OUT, **options)
    assert (plain, finish) == drafted[:2]


@settings(max_examples=100, deadline=None)
@given(prompts, params, st.integers(1, 16))
def test_a_right_draft_saves_passes_and_changes_nothing(prompt, sampling, width):
    plain, finish, plain_target = run([], prompt, sampling)
    out, finish2, target = run([OracleDrafter(plain)], prompt, sampling, max_draft=width)
    assert (out, finish2) == (plain, finish)
    n_emitted = len(plain) + (finish == "stop")
    assert plain_target.n_passes == n_emitted
    # Each pass emits the draft and one token more.
    assert target.n_passes == -(-n_emitted // (width + 1))


@settings(max_examples=150, deadline=None)
@given(prompts, params, st.data())
def test_trees_with_the_right_path_anywhere(prompt, sampling, data):
    """The right path hidden among wrong branches is found, whatever the order of the nodes."""
    plain, finish, _ = run([], prompt, sampling)

    def script(emitted, n_max):
        right = plain[len(emitted) : len(emitted) + 3]
        tokens, parents, on_path = [], [], -1
        for token in right:
            siblings = data.draw(st.sets(st.integers(0, N_VOCAB - 1), max_size=2)) - {token}
            row = data.draw(st.permutations([token, *sorted(siblings)]))
            first = len(tokens)
            tokens += row
            parents += [on_path] * len(row)
            on_path = first + row.index(token)
        return tree(tokens, parents) if len(tokens) <= n_max else Draft.chain([])

    out, finish2, _ = run([ScriptedDrafter(script)], prompt, sampling, max_leaves=9)
    assert (out, finish2) == (plain, finish)


def test_ten_thousand_random_trees():
    rng = np.random.default_rng(7)

    def script(emitted, n_max):
        k = int(rng.integers(0, min(n_max, 12) + 1))
        parents = [int(rng.integers(-1, i)) for i in range(k)]
        return tree(rng.integers(0, N_VOCAB, k), parents, rng.random(k))

    n_trees = 0
    for seed in range(100):
        sampling = SamplingParams(temperature=float(seed % 2), seed=seed)
        prompt = rng.integers(0, N_VOCAB - 1, 5).tolist()
        plain, finish, _ = run([], prompt, sampling, max_tokens=150)
        drafter = ScriptedDrafter(script)
        # Some trees hold a token twice.
        out, finish2, target = run([drafter], prompt, sampling, 150, GuardPolicy.LEAVE_OUT)
        assert (out, finish2) == (plain, finish)
        n_trees += target.n_passes
    while n_trees < 10_000:
        # The rest on a target that never ends.
        prompt = rng.integers(0, N_VOCAB - 1, 5).tolist()
        sampling = SamplingParams(temperature=1.0, seed=n_trees)
        outs = []
        for drafters in ([], [ScriptedDrafter(script)]):
            target = FakeTarget(hashed_logits(N_VOCAB, 3.0), N_VOCAB, eog=frozenset())
            leaves = target.can.max_leaves
            chain = combined(drafters, N_VOCAB, leaves, policy=GuardPolicy.LEAVE_OUT)
            context = Context(np.array(prompt, np.int32), sampling=sampling)
            completer = Completer(target, chain)
            outs.append(completer.run(context, Sampler(sampling), OutputLimits(max_tokens=1500))[0])
        assert outs[0] == outs[1]
        n_trees += target.n_passes
    assert n_trees >= 10_000


class NoLaw:
    """A mask that fails once the output is this long."""

    def allowed(self, emitted: Sequence[int]) -> None:
        if len(emitted) > 3:
            raise ValueError("no law here")

    def is_done(self, emitted: Sequence[int]) -> bool:
        return False


def test_a_draft_that_could_not_be_judged_leaves_the_cache():
    long, _, _ = run([], [1, 2, 3], SamplingParams(), 24, eog=frozenset())
    target = CheckedTarget(eog=frozenset())
    completer = Completer(target, combined([OracleDrafter(long)], N_VOCAB, target.can.max_leaves))
    context = Context(np.array([1, 2, 3], np.int32))
    with pytest.raises(ValueError, match="no law here"):
        completer.run(context, Sampler(SamplingParams(), NoLaw()), OutputLimits(24))
    out, _ = completer.run(context, Sampler(SamplingParams()), OutputLimits(24))
    assert out == long


@settings(max_examples=100, deadline=None)
@given(prompts, params, st.data())
def test_what_is_read_again_changes_nothing(prompt, sampling, data):
    """Drafts that are right up to anywhere, where all of a pass goes with its first wrong token."""
    plain, finish, _ = run([], prompt, sampling)

    def script(emitted, n_max):
        n = data.draw(st.integers(0, n_max))
        n_right = data.draw(st.integers(0, n))
        right = plain[len(emitted) : len(emitted) + n_right]
        wrong = data.draw(st.lists(st.integers(0, N_VOCAB - 1), min_size=n, max_size=n))
        return Draft.chain([*right, *wrong][:n])

    options: dict[str, Any] = {"rolls_back": False, "max_leaves": 1, "max_draft": 4}
    out, finish2, target = run([ScriptedDrafter(script)], prompt, sampling, **options)
    assert (out, finish2) == (plain, finish)
    # However often that happens, what a pass reads stays short.
    assert max(target.tails) <= 2 * target.can.max_draft


@pytest.mark.parametrize("max_tokens", [1, 2, 7])
def test_limits_cut_where_plain_decoding_would(max_tokens):
    sampling = SamplingParams()
    plain, finish, _ = run([], [1, 2, 3], sampling, max_tokens)
    long, _, _ = run([], [1, 2, 3], sampling, 24)
    out, finish2, _ = run([OracleDrafter(long)], [1, 2, 3], sampling, max_tokens)
    assert (out, finish2) == (plain, finish)
    assert len(out) <= max_tokens


@pytest.mark.parametrize("n_free", [0, 1, 5])
@pytest.mark.parametrize("drafts", [False, True])
def test_tokens_that_are_free_count_for_no_limit(n_free, drafts):
    sampling = SamplingParams()
    long, _, _ = run([], [1, 2, 3], sampling, 24, eog=frozenset())
    target = CheckedTarget(eog=frozenset())
    drafters = [OracleDrafter(long)] if drafts else []
    out, finish = Completer(target, combined(drafters, N_VOCAB, target.can.max_leaves)).run(
        Context(np.array([1, 2, 3], np.int32), sampling=sampling),
        Sampler(sampling),
        OutputLimits(max_tokens=2, n_free=lambda emitted: min(len(emitted), n_free)),
    )
    assert (out, finish) == (long[: n_free + 2], "length")


@pytest.mark.parametrize("n_passes", [0, 1, 3])
@pytest.mark.parametrize("drafts", [False, True])
def test_no_pass_begins_once_a_request_is_cancelled(n_passes, drafts):
    sampling = SamplingParams()
    target = CheckedTarget(eog=frozenset())
    drafters = [ScriptedDrafter(lambda e, n: Draft.chain([1] * n))] if drafts else []
    out, finish = Completer(target, combined(drafters, N_VOCAB, target.can.max_leaves)).run(
        Context(np.array([1, 2, 3], np.int32), sampling=sampling),
        Sampler(sampling),
        OutputLimits(max_tokens=24),
        cancelled=lambda: len(target.committed) >= n_passes,
    )
    assert finish == "cancelled"
    assert len(target.committed) == n_passes
    assert n_passes <= len(out) < 24


def test_context_size_is_respected():
    sampling = SamplingParams()
    for drafters in ([], [ScriptedDrafter(lambda e, n: Draft.chain([1] * n))]):
        out, finish, target = run(drafters, [1] * 10, sampling, 24, n_ctx=16)
        assert target.n_cached <= 16
        assert finish in ("length", "stop")
        assert len(out) <= 7


def test_drafters_learn_from_every_pass():
    plain, _, _ = run([], [3, 1, 4], SamplingParams())
    winner = OracleDrafter(plain)
    loser = ScriptedDrafter(lambda emitted, n: Draft.chain([0]))
    run([winner, loser], [3, 1, 4], SamplingParams())
    assert [o[0] for o in winner.observed] == [o[0] for o in loser.observed]
    assert winner.observed[-1][0] == plain
    assert all(d.sources[0] == Source.OTHER for _, d, _ in loser.observed if len(d))
