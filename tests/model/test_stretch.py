"""Passes in a row are the passes that would have been made one by one: a real model, real files."""

from __future__ import annotations

import dataclasses
import itertools
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codespec.backends.base import CancelledError
from codespec.config import load_settings
from codespec.cost.cost_curve import CostCurve
from codespec.cost.padding import padded_width
from codespec.cost.tuner import Tuner
from codespec.errors import ModelError
from codespec.native import ENDS_STRETCH, Ends
from codespec.requests import CompletionRequest
from codespec.types import NO_DRAFT
from tests.drafters import assume
from tests.engines import strict_engine

FILES = ("argparse.py", "tarfile.py", "json/decoder.py", "statistics.py")


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    """With stretches and without; neither learns what passes cost, so that both draft alike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tuner, "observe_all", lambda self, n, ms: None)
        made = []
        for _ in range(2):
            patch.setenv("CODESPEC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
            settings = load_settings(
                {
                    "model": {"n_threads": 1},
                    "completion": {"n_prefix_tokens": 192, "n_suffix_tokens": 64},
                    "drafting": {"adaptive": False},
                },
                env={},
            )
            made.append(strict_engine(settings))
        made[1].passes.stretches = None
        yield made
        for engine in made:
            engine.close()


def requests():
    rng = np.random.default_rng(7)
    library = Path(sysconfig.get_paths()["stdlib"])
    for i in range(60):
        text = (library / FILES[i % len(FILES)]).read_text()
        at = int(rng.integers(3000, len(text) - 1000))
        yield CompletionRequest(
            text[at - 3000 : at],
            text[at + i % 2 * 200 : at + 800],
            path=f"/{FILES[i % len(FILES)]}",
            max_tokens=40,
            drafters=[("lookup",), (), ("lookup", "model")][i % 3],
            verbatim=i % 5 == 0,
        )


@pytest.fixture(params=["free", "filled"])
def alike(engines, request):
    """Both with passes as they come, and with passes of one width."""
    is_filled = request.param == "filled"
    for engine in engines:
        curve = CostCurve({1: 1.0, 2: 1.2, 17: 2.0})
        if is_filled:  # others would cost much
            curve = CostCurve({1: 1.0, 2: 1.5, 17: 9.0}, steady={5: 1.01})
        assume(engine.passes.tuner, curve)
        for asked in itertools.islice(requests(), 4):
            engine.complete(asked)
        assert padded_width(engine.curve) == (5 if is_filled else 1)
    return engines


def test_the_same_passes(alike, monkeypatch):
    engines, counts = alike, []
    target = engines[0].target
    decode = target.decode_stretch

    def counted(*args):
        done = decode(*args)
        counts.append(len(done.pass_ms))
        return done

    monkeypatch.setattr(target, "decode_stretch", counted)
    n_passes = 0
    for request in requests():
        a, b = (engine.complete(request) for engine in engines)
        assert (a.text, a.finish) == (b.text, b.finish)
        n_passes += a.trace.n_target_passes
        if "model" not in (request.drafters or ()):  # which drafts by the clock
            for field in ("n_tokens", "n_target_passes", "n_drafted", "n_accepted", "by_source"):
                assert getattr(a.trace, field) == getattr(b.trace, field), field
        if request.drafters:
            assert min(a.trace.pass_width, default=9) >= padded_width(engines[0].curve)
            for field in ("pass_width", "pass_depth", "pass_accepted"):
                assert getattr(a.trace, field) == getattr(b.trace, field), field
            assert len(a.trace.pass_ms) == a.trace.n_target_passes
    assert sum(counts) > n_passes / 3
    assert max(counts) > 3


def test_the_cache_holds_what_was_said(engines):
    for request in requests():
        made = engines[0].generate(dataclasses.replace(request, drafters=("lookup",)))
        held = engines[0].target.cached.tolist()
        said = [*made.context.prompt.tolist(), *made.tokens]
        n = min(len(held), len(said))
        assert n >= len(said) - 1
        assert held[:n] == said[:n]


def started(engine):
    """(target, last token): a prompt read, one token said."""
    prompt = engine.context(next(requests())).prompt
    target = engine.target
    target.prefill(prompt, lambda: False)
    last = target.decode(prompt[target.n_cached :], NO_DRAFT).argmax(0)
    target.keep(())
    return target, last


def test_limits_and_marks(engines):
    target, last = started(engines[0])
    n = target.n_cached
    nothing = np.zeros(target.info.n_vocab, np.uint8)

    def stretch(last, marks, n_passes=99):
        limits = 9, n_passes, 0, 1e9
        return target.decode_stretch(None, [], last, Ends(marks), *limits, lambda: False)

    done = stretch(last, nothing)
    assert len(done.tokens) == len(done.pass_ms) == 9
    assert target.cached[n:].tolist() == [last, *done.tokens[:-1]]
    target, last = started(engines[0])
    marks = nothing.copy()
    marks[done.tokens[3]] = ENDS_STRETCH
    again = stretch(last, marks)
    assert again.tokens == done.tokens[: done.tokens.index(done.tokens[3]) + 1]
    target, last = started(engines[0])
    assert len(stretch(last, nothing, 2).tokens) == 2


def test_nothing_of_a_stretch_that_raises_stays(engines):
    target, last = started(engines[0])
    before = target.cached.tolist()
    some = Ends(np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="each token"):
        target.decode_stretch(None, [], last, some, 3, 3, 0, 1e9, lambda: False)
    assert target.cached.tolist() == before


@pytest.mark.parametrize(("code", "error"), [(1, ModelError), (2, CancelledError)])
def test_a_pass_that_fails_leaves_what_was_committed(engines, monkeypatch, code, error):
    target, last = started(engines[0])
    before = target.cached.tolist()
    real = target._calls

    class Failing:
        def stretch(self, *args: Any) -> Any:
            done = real.stretch(*args)
            return type("Done", (), {"tokens": done.tokens, "pass_ms": done.pass_ms, "code": code})

    monkeypatch.setattr(target, "_calls", Failing())
    nothing = Ends(np.zeros(target.info.n_vocab, np.uint8))
    with pytest.raises(error):
        target.decode_stretch(None, [], last, nothing, 3, 3, 0, 1e9, lambda: False)
    monkeypatch.undo()
    assert target.cached[: len(before) + 1].tolist() == [*before, last]
    # And it goes on.
    text = [engine.complete(next(requests())).text for engine in engines]
    assert text[0] == text[1]
