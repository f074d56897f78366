"""The whole engine with a target whose MTP head drafts for it."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from codespec.backends.llama import load_model, nextn
from codespec.backends.llama.mtp import HiddenStateTarget
from codespec.cli.doctor.model_checks import _draft
from codespec.cli.models.facts import describe
from codespec.config import load_settings
from codespec.cost.cost_curve import CostCurve
from codespec.cost.tuner import Tuner
from codespec.drafters.model_drafter import ModelDrafter
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest
from codespec.types import SamplingParams
from tests import zoo
from tests.drafters import assume
from tests.engines import strict_engine
from tests.mtp_head import TEXTS, answering

pytestmark = pytest.mark.skipif(
    nextn._hand_out is None, reason="this build of llama.cpp hands out no hidden states"
)


@pytest.fixture
def make(monkeypatch):
    made = []
    # As if drafting cost next to nothing, whatever passes say.
    monkeypatch.setattr(Tuner, "learn", lambda self: self._seen.clear())
    monkeypatch.setattr(ModelDrafter, "_learn_cost", lambda self, token_ms: None)

    def engine(target, **model):
        settings = load_settings(
            {
                "model": {"target": str(target), "n_threads": 1, **model},
                "completion": {"n_prefix_tokens": 128, "n_suffix_tokens": 32},
                "drafting": {"adaptive": False, "drafters": ["model"]},
            },
            env={},
        )
        made.append(strict_engine(settings))
        assume(made[-1].passes.tuner, CostCurve({1: 10.0, 33: 11.0}))
        own = made[-1].passes.models._running[0].own
        if own is not None:
            assume(own.tuner, CostCurve({1: 0.01, 33: 0.02}))
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


def test_a_layer_that_says_what_the_target_will_is_always_right(mtp_family, tmp_path, make):
    path = tmp_path / "known.gguf"
    zoo.write(path, mtp_family, mtp_head=True, quantised=False, weights=answering("token"))
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


def test_whatever_it_drafts_the_output_is_the_same(mtp_file, make):
    engine = make(mtp_file)
    own = engine.passes.models._running[0].own
    assert len(engine.passes.models._running) == 1  # the bundled draft model is not loaded
    for request in REQUESTS:
        for sampling in SamplingParams(), SamplingParams(temperature=0.8, seed=3):
            request = replace(request, sampling=sampling)
            plain = engine.generate(replace(request, drafters=())).tokens
            for drafters in ("model",), ("lookup", "model"):
                assert engine.generate(replace(request, drafters=drafters)).tokens == plain
    assert own.context.n_cached > 0


def test_where_it_does_not_pay_it_is_not_asked(mtp_file, make):
    engine = make(mtp_file)
    own = engine.passes.models._running[0].own
    assume(own.tuner, CostCurve({1: 11.0, 33: 12.0}))
    for request in REQUESTS:
        assert engine.generate(request).trace.n_drafted == 0
    assert own.context.n_cached == 0


def test_with_a_quantised_cache(mtp_file, make):
    engine = make(mtp_file, kv_type="q8_0")
    assert engine.generate(REQUEST).trace.n_drafted > 0


def test_samples_may_come_from_it(mtp_file, make):
    engine = make(mtp_file)
    sampling = SamplingParams(temperature=0.8, any_seed=True)
    made = engine.generate(replace(REQUEST, sampling=sampling))
    assert made.trace.n_drafted > 0


def test_it_is_left_off_and_read_ahead(mtp_file, make):
    engine = make(mtp_file)
    own = engine.passes.models._running[0].own
    plain = engine.generate(replace(REQUEST, drafters=())).tokens
    for _ in engine.prefetching(REQUESTS[3]):
        pass
    assert own.context.n_cached > 0
    asked = iter(range(3))
    turns = engine.completing(REQUEST, paused=lambda moved: moved and next(asked, None) is not None)
    n_turns = 0

    def to_the_end():
        made = yield from turns
        assert made.trace.n_tokens == len(plain)

    for _ in to_the_end():
        n_turns += 1
        engine.generate(REQUESTS[3])
    assert n_turns > 0
    assert engine.generate(REQUEST).tokens == plain


def test_its_cost_is_measured(mtp_file, make):
    engine = make(mtp_file)
    own = engine.passes.models._running[0].own
    assert not own.tuner.is_measured
    while engine.idle():
        pass
    assert own.tuner.is_measured
    plain = engine.generate(replace(REQUEST, drafters=())).tokens
    assert engine.generate(REQUEST).tokens == plain


def test_who_has_none_costs_nothing_new(tmp_path, make):
    """Neither loaded nor handed out: a file without one, and where the setting says otherwise."""
    bare = make(bundled(BUNDLED_TARGET))
    assert not isinstance(bare.target, HiddenStateTarget)
    assert bare.passes.models._running[0].own is None
    file = zoo.write(tmp_path / "qwen35.gguf", "qwen35", mtp_head=True)
    for draft in "", str(bundled(BUNDLED_DRAFT)):
        engine = make(file, draft=draft)
        assert not isinstance(engine.target, HiddenStateTarget)
        assert len(engine.passes.models._running) == 1 + bool(draft)


def test_a_build_without_the_functions_has_none(tmp_path, monkeypatch, make):
    file = zoo.write(tmp_path / "qwen35.gguf", "qwen35", mtp_head=True)
    assert nextn.has_mtp_layer(file)
    monkeypatch.setattr(nextn, "_hand_out", None)
    assert not nextn.has_mtp_layer(file)
    assert len(make(file).passes.models._running) == 2  # the bundled draft model


def nothing_in(name, values):
    return values * np.nan if "nextn.eh_proj" in name else values


def test_one_that_is_damaged_is_left_alone(tmp_path, make, caplog):
    file = tmp_path / "qwen35.gguf"
    zoo.write(file, "qwen35", mtp_head=True, quantised=False, weights=nothing_in)
    with caplog.at_level(logging.WARNING):
        engine = make(file)
    assert engine.passes.models._running[0].own is None
    assert len(engine.passes.models._running) == 2
    assert engine.generate(REQUEST).tokens == engine.generate(replace(REQUEST, drafters=())).tokens


def test_files_that_say_they_have_one_and_do_not(tmp_path):
    """Made without it, of another kind, or of more than one."""
    said = zoo.write(tmp_path / "said.gguf", "qwen35", nextn_predict_layers=1, block_count=5)
    many = zoo.write(tmp_path / "many.gguf", "qwen35", mtp_head=True, nextn_predict_layers=2)
    other = zoo.write(tmp_path / "other.gguf", "llama")
    assert not any(map(nextn.has_mtp_layer, (said, many, other, tmp_path / "none.gguf")))


def test_people_are_told(tmp_path):
    file = zoo.write(tmp_path / "qwen35.gguf", "qwen35", mtp_head=True)
    for path, drafts in (file, True), (bundled(BUNDLED_TARGET), False):
        settings = load_settings({"model": {"target": str(path)}}, env={})
        assert describe(str(path), settings, measure=False)["drafts_for_itself"] is drafts
        with closing(load_model(path, vocab_only=True)) as model:
            (finding,) = _draft(settings, model.info)
        assert ("MTP head" in finding.message) is drafts
