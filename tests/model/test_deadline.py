"""Work after the last pass keeps to the deadline, too: on a clock that only trials advance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from codespec.engine.generation import GRACE_S, Generation
from codespec.engine.local import LocalEngine
from codespec.reasons import NoSuggestion, Trimming
from codespec.requests import Completion, CompletionRequest
from codespec.syntax.trees import ParsedDocument

REQUEST = CompletionRequest("function f() { return {", "b: 1, c: 2} }", path="/a.js", max_tokens=4)
FITS = b" a: 1,"
FITS_NOWHERE = b"':f(1){ return f(2){ ':f(3){ ')]"
DEADLINE_S = 0.4
TRIAL_S = 0.2


class Slow:
    """said: what the model says. pass_s: how long its last pass takes."""

    def __init__(self, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said, self.pass_s = FITS_NOWHERE, 0.0
        self.now, self.n_trials = 0.0, 0
        self._engine = engine
        trial, of_output = ParsedDocument.with_change, Generation.said

        def counted(*args):
            self.n_trials += 1
            self.now += TRIAL_S
            return trial(*args)

        def said(made, raw, ended):
            self.now += self.pass_s
            return of_output(made, made.context.healed + self.said, ended)

        monkeypatch.setattr(ParsedDocument, "with_change", counted)
        monkeypatch.setattr(Generation, "said", said)
        monkeypatch.setattr(engine, "_clock", lambda: self.now)

    def complete(self, cancelled: Callable[[], bool] = lambda: False, **options: Any) -> Completion:
        self.now, self.n_trials = 0.0, 0
        return self._engine.complete(replace(REQUEST, **options), cancelled)


@pytest.fixture
def slow(engine, monkeypatch):
    return Slow(engine, monkeypatch)


def test_without_a_deadline_all_is_tried(slow):
    completion = slow.complete()
    assert slow.n_trials > 3
    assert completion.trace.trimmed[-1] != Trimming.UNCHECKED


def test_after_the_deadline_nothing_more_is_tried(slow):
    completion = slow.complete(deadline_ms=DEADLINE_S * 1e3)
    assert slow.n_trials == 3  # the last began within the grace
    assert DEADLINE_S < slow.now <= DEADLINE_S + GRACE_S + TRIAL_S
    assert completion.text == ""
    assert "no time" in completion.reason
    assert completion.why == NoSuggestion.NOTHING_LEFT


def test_there_is_time_to_try_what_was_said_by_a_pass_that_ended_late(slow):
    slow.said, slow.pass_s = FITS, 10.0
    assert slow.complete(deadline_ms=DEADLINE_S * 1e3).text == FITS.decode()


def test_once_cancelled_nothing_more_is_tried(slow):
    completion = slow.complete(lambda: slow.n_trials >= 2)
    assert slow.n_trials == 2
    assert completion.text == ""
