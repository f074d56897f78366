"""The part of a file in a slow model's prompt."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from codespec.config import CompletionSettings, ContextSettings, Settings
from codespec.context.prompt_window import Window
from codespec.cost.cost_curve import CostCurve
from codespec.engine.reading import Reading, ShownText, readable, whole
from codespec.requests import CompletionRequest

WHOLE = ShownText(Window(1024, 256), 512)


@pytest.mark.parametrize(
    ("token_ms", "max_ms", "expected"),
    [
        (0.4, 1000, WHOLE),
        (1000 / 1280, 1000, WHOLE),
        (0.8, 1000, ShownText(Window(512, 128), 256)),
        (3.0, 1000, ShownText(Window(256, 64), 128)),
        (3.0, 2000, ShownText(Window(512, 128), 256)),
        (100.0, 1000, ShownText(Window(128, 32), 64)),  # as much as a model has to know at least
        (100.0, 0, WHOLE),
        (0.0, 1000, WHOLE),
    ],
)
def test_the_window_is_halved_until_it_is_read_in_time(token_ms, max_ms, expected):
    assert readable(WHOLE, token_ms, max_ms) == expected


def test_a_window_that_is_small_already_stays():
    small = ShownText(Window(100, 20), 512)
    assert readable(small, 100.0, 1.0) == small


def settings(max_read_ms: float) -> Settings:
    completion = CompletionSettings(max_read_ms=max_read_ms)
    return Settings(completion=completion, context=ContextSettings())


def curve(token_ms: float) -> CostCurve:
    return CostCurve({1: 10.0, 16: 40.0, 32: 40.0 + 16 * token_ms})


@dataclass
class Measured:
    """Knowledge of passes, set by hand."""

    is_measured: bool
    curve: CostCurve


def test_everything_is_shown_until_passes_are_measured_and_then_what_was_decided():
    passes = Measured(is_measured=False, curve=curve(2.0))
    reading = Reading(settings(1000.0), passes, lambda: 0.0)
    assert reading.shown == whole(settings(1000.0)) == WHOLE
    passes.is_measured = True
    assert reading.shown.window == Window(256, 64)
    # Another window would be another prompt: what load the machine has later does not change it.
    passes.curve = curve(0.1)
    assert reading.shown.window == Window(256, 64)


def test_until_then_what_was_read_tells_how_much_is_shown():
    read_ms = [0.0]
    passes = Measured(is_measured=False, curve=curve(1.0))
    reading = Reading(settings(1000.0), passes, lambda: read_ms[0])
    assert reading.shown == WHOLE
    read_ms[0] = 2.0
    assert reading.shown.window == Window(256, 64)
    read_ms[0] = 0.5
    assert reading.shown == WHOLE
    read_ms[0], passes.is_measured = 2.0, True
    assert reading.shown.window == Window(512, 128)


def test_all_that_there_is_is_read_where_that_was_asked_for():
    reading = Reading(settings(1.0), Measured(is_measured=True, curve=curve(2.0)), lambda: 0.0)
    request = CompletionRequest("")
    assert reading.of(request, 3000, 2000) == reading.shown == ShownText(Window(128, 32), 64)
    shown = reading.of(replace(request, whole=True), 3000, 2000)
    assert shown == ShownText(Window(3000, 2000), 512)


@pytest.mark.parametrize(
    ("n_prefix", "n_suffix", "expected"),
    [
        (3000, 3000, Window(1434, 478)),
        (300, 3000, Window(300, 1612)),
        (3000, 30, Window(1882, 30)),
        (300, 30, Window(300, 30)),
        (1024, 256, Window(1024, 256)),
    ],
)
def test_a_suffix_gets_a_quarter_or_what_the_prefix_leaves(n_prefix, n_suffix, expected):
    assert Window(n_prefix, n_suffix).fitted(1976, 64) == expected


def test_a_token_of_a_prompt_costs_what_the_end_of_the_curve_says():
    assert curve(2.0).token_ms == pytest.approx(2.0)
    assert CostCurve({1: 5.0}).token_ms == 0.0
    # However rough the measurement between.
    for half in (40.0, 70.0, 100.0):
        assert CostCurve({1: 10.0, 16: half, 32: 72.0}).token_ms == pytest.approx(2.0, rel=0.25)
    # The load of the moment is no matter.
    loaded = curve(2.0)
    for _ in range(200):
        loaded.observe(1, 30.0)
    assert loaded.token_ms == pytest.approx(2.0, rel=0.05)
