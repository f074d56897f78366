"""A target's own layer drafts for it: tiny models, with weights for which its answers are known, and
with random ones, whose answers must not depend on what came before."""

from __future__ import annotations

import logging
import re
import sysconfig
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codespec.backends.llama import LlamaTokenizer, load_model, nextn
from codespec.backends.llama.mtp import HiddenStates, OpenTarget, OwnLayer
from codespec.config import load_settings
from codespec.drafters.cost import CostCurve
from codespec.engine.local import LocalEngine
from codespec.engine.pace import Pace
from codespec.models.registry import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest
from codespec.types import NO_DRAFT, Draft, SamplingParams
from tests import zoo
from tests.zoo.parts import WIDTH

N_CTX = 256
NAMES = ("argparse.py", "tarfile.py")
TEXTS = [(Path(sysconfig.get_paths()["stdlib"]) / name).read_text() for name in NAMES]


def never():
    return False


def answering(half):
    """Weights with which what follows depends on the last token alone: layers add nothing. The own
    layer looks at half of what it is given: "token", so that it says what the target will say; or
    "state", so that it says what the target said before that token."""

    def weights(name, values):
        if re.search(r"attn_output|ssm_out|ffn_down", name):
            return np.zeros_like(values)
        if name.endswith("nextn.eh_proj.weight"):
            eye, nothing = np.eye(WIDTH), np.zeros((WIDTH, WIDTH))
            halves = [eye, nothing] if half == "token" else [nothing, eye]
            return np.concatenate(halves, axis=1).astype(np.float32)
        if re.search(r"output_norm|enorm|hnorm|head_norm", name):
            return np.ones_like(values)
        return values

    return weights


class Pair:
    """A target and its own layer."""

    def __init__(self, file, kind=OwnLayer):
        self.model = load_model(file, n_gpu_layers=0, own_layer=True)
        assert self.model.has_own_layer
        self.target = OpenTarget(self.model, n_ctx=N_CTX, n_threads=1)
        self.layer = kind(self.model, self.target)
        tokenizer = LlamaTokenizer(self.model)
        self.documents = [tokenizer.encode(text[:1500])[:180] for text in TEXTS]

    def close(self):
        self.layer.close()
        self.target.close()
        self.model.close()

    def read(self, tokens, draft=NO_DRAFT, path=()):
        """By the target. Returns: logits after the last."""
        self.target.prefill(tokens, never)
        row = self.target.decode(tokens[self.target.n_cached :], draft).row(0).copy()
        self.target.keep(path)
        return row

    def drafted(self, tokens):
        """Logits of the layer."""
        assert self.layer.knows(tokens)
        self.layer.prefill(tokens, never)
        return self.layer.decode(tokens[self.layer.n_cached :], NO_DRAFT).row(0).copy()


FAMILIES = sorted(nextn.FAMILIES)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def file(family, tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / f"{family}.gguf"
    return zoo.write(path, family, own_layer=True)


def test_each_family_is_in_the_zoo():
    assert nextn.FAMILIES >= nextn.OF_WANTED_ONLY
    assert all(zoo.ANIMALS[name].own for name in nextn.FAMILIES)


class Late(OwnLayer):
    """Gives each token the state of one that is further back."""

    def _give(self, start, tokens):
        n_sure = super()._give(start, tokens)
        if start >= 2:
            first = self._hidden.rows[start - 2 : start - 1]
            given = self._given[: len(tokens)]
            given[:] = np.concatenate([first, given[:-1]])
        return n_sure


def states_answer(file, kind):
    """Of how many steps the layer says the last token again, and of how many in all."""
    with closing(Pair(file, kind)) as pair:
        tokens = pair.documents[0][:60]
        n_right, n = 0, 24
        for _ in range(n):
            tokens = np.append(tokens, np.int32(pair.read(tokens).argmax()))
            n_right += int(pair.drafted(tokens).argmax()) == tokens[-1]
        assert len(set(tokens[-n:].tolist())) > n // 2
        return n_right, n


def test_a_token_is_read_with_the_state_of_the_one_before(family, tmp_path):
    path = tmp_path / "known.gguf"
    zoo.write(path, family, own_layer=True, quantised=False, weights=answering("state"))
    n_right, n = states_answer(path, OwnLayer)
    assert n_right == n
    n_right, n = states_answer(path, Late)
    assert n_right <= 1


def test_what_was_read_before_does_not_matter(file):
    """Typing, edits, rejected and accepted drafts, other texts, and its own drafts."""
    rng = np.random.default_rng(5)
    with closing(Pair(file)) as pair, closing(Pair(file)) as fresh:
        tokens = pair.documents[0][:100]
        for _ in range(24):
            match int(rng.integers(6)):
                case 0:  # typed on
                    tokens = np.concatenate([tokens, pair.documents[1][: int(rng.integers(1, 20))]])
                case 1:  # edited further up
                    tokens = tokens.copy()
                    tokens[int(rng.integers(40, len(tokens)))] = rng.integers(10, 4000)
                case 2:  # deleted
                    tokens = tokens[: -int(rng.integers(1, 20))]
                case 3:
                    tokens = pair.documents[int(rng.integers(2))][: int(rng.integers(60, 150))]
                case 4:  # a draft, of which some is right
                    chain = rng.integers(10, 4000, 5).astype(np.int32)
                    n = int(rng.integers(0, 6))
                    pair.read(tokens, Draft.chain(chain), range(n))
                    tokens = np.concatenate([tokens, chain[:n], [77]]).astype(np.int32)
                    row = pair.drafted(tokens)  # before the rest is read again
                    fresh.target.prefill(np.array([1, 1], np.int32), never)
                    fresh.layer.prefill(np.array([1, 1], np.int32), never)
                    fresh.read(tokens)
                    compare(pair, row, fresh.drafted(tokens))
                case _:
                    pass
            tokens = tokens[: N_CTX - 20]
            row = pair.read(tokens)
            said = np.append(tokens, np.int32(row.argmax()))
            row = pair.drafted(said)
            for _ in range(int(rng.integers(4))):
                pair.layer.decode(rng.integers(10, 4000, 1).astype(np.int32), NO_DRAFT)
            fresh.target.prefill(np.array([1, 1], np.int32), never)
            fresh.layer.prefill(np.array([1, 1], np.int32), never)
            fresh.read(tokens)
            compare(pair, row, fresh.drafted(said))


def compare(pair, row, expected):
    assert np.isfinite(row).all()
    if pair.target.is_exact:
        np.testing.assert_array_equal(row, expected)
    else:
        assert np.abs(row - expected).max() < 0.5 * expected.std()


def test_a_state_that_was_put_back_is_no_reason_to_guess(file):
    """Nothing is known of what was not read. After the next pass there is, and the layer goes on
    behind the gap."""
    with closing(Pair(file)) as pair:
        first, second = pair.documents
        pair.read(first)
        held = pair.target.hold()
        pair.read(second)
        pair.drafted(np.append(second, np.int32(5)))
        pair.target.take_back(held)
        more = np.concatenate([first, second[:30]])
        assert not pair.layer.knows(more[: len(first) + 1])
        row = pair.read(more)
        assert pair.layer.knows(np.append(more, np.int32(row.argmax())))
        assert np.isfinite(pair.drafted(np.append(more, np.int32(row.argmax())))).all()
        assert pair.layer._first > 0
        other = second[::-1].copy()  # which is read from its beginning
        pair.read(other)
        assert np.isfinite(pair.drafted(np.append(other, np.int32(5)))).all()
        assert pair.layer._first == 0


def test_hidden_states_are_of_one_text():
    states = HiddenStates(16, 2)
    tokens = np.arange(10, dtype=np.int32)

    def rows(n, of):
        return np.full((n, 2), of, np.float32)

    states.note(tokens[:0], tokens[:4], rows(4, 1))
    states.note(tokens[:4], tokens[4:6], rows(2, 2))
    assert states.known(tokens) == (0, 6)
    assert states.known(tokens[:5]) == (0, 5)
    assert states.known(tokens[1:]) == (0, 0)
    states.note(tokens[:3], np.array([9], np.int32), rows(1, 3))  # typed over
    assert states.known(tokens) == (0, 3)
    assert states.rows[:4, 0].tolist() == [1, 1, 1, 3]
    states.note(tokens[:7], tokens[7:9], rows(2, 4))  # what is before came from elsewhere
    assert states.known(tokens) == (7, 9)
    states.note(tokens[:5], tokens[5:7], rows(2, 5))
    assert states.known(tokens) == (5, 7)


# The whole engine.


@pytest.fixture
def make(monkeypatch):
    made = []
    # As if drafting cost next to nothing, whatever passes say.
    monkeypatch.setattr(Pace, "learn", lambda self: self._seen.clear())

    def engine(target, **model):
        settings = load_settings(
            {
                "model": {"target": str(target), "n_threads": 1, **model},
                "completion": {"n_prefix_tokens": 128, "n_suffix_tokens": 32},
                "drafting": {"adaptive": False, "drafters": ["model"]},
            },
            env={},
        )
        made.append(LocalEngine(settings))
        made[-1].curve.become(CostCurve({1: 10.0, 33: 11.0}))
        own = made[-1]._models._running[0].own
        if own is not None:
            own.pace.curve.become(CostCurve({1: 0.01, 33: 0.02}))
        return made[-1]

    yield engine
    for one in made:
        one.close()


TEXT = TEXTS[0][1000:1600]
REQUEST = CompletionRequest(TEXT, TEXTS[0][2100:2300], max_tokens=24, verbatim=True)
EDITED = replace(REQUEST, prefix=TEXT[:300] + "x = 1" + TEXT[310:])
REQUESTS = [
    REQUEST,
    replace(REQUEST, prefix=TEXT + "a"),
    replace(REQUEST, prefix=TEXT + "ab = 3"),
    EDITED,
    replace(EDITED, suffix=""),
    REQUEST,
    replace(REQUEST, prefix=TEXTS[1][:900], path="/elsewhere.py"),
    REQUEST,
]


def test_a_layer_that_says_what_the_target_will_is_always_right(family, tmp_path, make):
    path = tmp_path / "known.gguf"
    zoo.write(path, family, own_layer=True, quantised=False, weights=answering("token"))
    engine = make(path)
    drafted = passes = tokens = 0
    for request in REQUESTS:
        plain = engine.generate(replace(request, drafters=())).tokens
        made = engine.generate(request)
        assert made.tokens == plain
        assert len(set(plain)) > 4
        for i, n_right in enumerate(made.trace.pass_accepted):
            n_said = i + sum(made.trace.pass_accepted[:i])
            # What is held back restricts the first ones, and the end is not a part of the text.
            is_bound = bool(made.context.healed) and n_said <= made.trace.n_repeated
            is_last = made.finish == "stop" and i == made.trace.n_target_passes - 1
            assert n_right == made.trace.pass_depth[i] or is_bound or is_last
        assert set(made.trace.by_source) <= {"draft-model"}
        drafted += made.trace.n_drafted
        passes += made.trace.n_target_passes
        tokens += made.trace.n_tokens
    assert drafted > tokens // 2
    assert tokens > 3 * passes


def test_whatever_it_drafts_the_output_is_the_same(file, make):
    engine = make(file)
    own = engine._models._running[0].own
    assert len(engine._models._running) == 1  # the bundled draft model is not loaded
    for request in REQUESTS:
        for sampling in SamplingParams(), SamplingParams(temperature=0.8, seed=3):
            request = replace(request, sampling=sampling)
            plain = engine.generate(replace(request, drafters=())).tokens
            for drafters in ("model",), ("lookup", "model"):
                assert engine.generate(replace(request, drafters=drafters)).tokens == plain
    assert own.context.n_cached > 0


def test_samples_may_come_from_it(file, make):
    engine = make(file)
    sampling = SamplingParams(temperature=0.8, any_seed=True)
    made = engine.generate(replace(REQUEST, sampling=sampling))
    assert made.trace.n_drafted > 0


def test_it_is_left_off_and_read_ahead(file, make):
    engine = make(file)
    own = engine._models._running[0].own
    plain = engine.generate(replace(REQUEST, drafters=())).tokens
    for _ in engine.prefetching(REQUESTS[3]):
        pass
    assert own.context.n_cached > 0
    asked = iter(range(3))
    turns = engine.completing(REQUEST, paused=lambda moved: moved and next(asked, None) is not None)
    n_turns = 0
    while True:
        try:
            next(turns)
            n_turns += 1
            engine.generate(REQUESTS[3])
        except StopIteration as end:
            assert end.value.trace.n_tokens == len(plain)
            break
    assert n_turns > 0
    assert engine.generate(REQUEST).tokens == plain


def test_its_cost_is_measured(file, make):
    engine = make(file)
    own = engine._models._running[0].own
    assert not own.pace.is_measured
    while engine.idle():
        pass
    assert own.pace.is_measured
    plain = engine.generate(replace(REQUEST, drafters=())).tokens
    assert engine.generate(REQUEST).tokens == plain


def test_who_has_none_costs_nothing_new(tmp_path, make):
    """Neither loaded nor handed out: a file without one, and where the setting says otherwise."""
    bare = make(bundled(BUNDLED_TARGET))
    assert not isinstance(bare.target, OpenTarget)
    assert bare._models._running[0].own is None
    file = zoo.write(tmp_path / "qwen35.gguf", "qwen35", own_layer=True)
    for draft in "", str(bundled(BUNDLED_DRAFT)):
        engine = make(file, draft=draft)
        assert not isinstance(engine.target, OpenTarget)
        assert len(engine._models._running) == 1 + bool(draft)


def test_a_build_without_the_functions_has_none(tmp_path, monkeypatch, make):
    file = zoo.write(tmp_path / "qwen35.gguf", "qwen35", own_layer=True)
    assert nextn.layer_in(file)
    monkeypatch.setattr(nextn, "_hand_out", None)
    assert not nextn.layer_in(file)
    assert len(make(file)._models._running) == 2  # the bundled draft model


def nothing_in(name, values):
    return values * np.nan if "nextn.eh_proj" in name else values


def test_one_that_is_damaged_is_left_alone(tmp_path, make, caplog):
    file = tmp_path / "qwen35.gguf"
    zoo.write(file, "qwen35", own_layer=True, quantised=False, weights=nothing_in)
    with caplog.at_level(logging.WARNING):
        engine = make(file)
    assert engine._models._running[0].own is None
    assert len(engine._models._running) == 2
    assert engine.generate(REQUEST).tokens == engine.generate(replace(REQUEST, drafters=())).tokens


def test_files_that_say_they_have_one_and_do_not(tmp_path):
    """Made without it, of another kind, or of more than one."""
    said = zoo.write(tmp_path / "said.gguf", "qwen35", nextn_predict_layers=1, block_count=5)
    many = zoo.write(tmp_path / "many.gguf", "qwen35", own_layer=True, nextn_predict_layers=2)
    other = zoo.write(tmp_path / "other.gguf", "llama")
    assert not any(map(nextn.layer_in, (said, many, other, tmp_path / "none.gguf")))
