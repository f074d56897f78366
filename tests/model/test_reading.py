"""A model that reads too slowly is shown less of the file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codespec.config import CompletionSettings, Settings
from codespec.context.prompt_window import STEP
from codespec.engine import generation
from codespec.requests import CompletionRequest
from codespec.suggest import Place, shape_at
from tests.engines import strict_engine

LONG = "".join(f"value_{n} = compute({n}, value_{n - 1})\n" for n in range(1, 400))


def test_the_window_is_cut_once_passes_are_measured():
    settings = Settings(completion=CompletionSettings(max_read_ms=0.001))
    engine = strict_engine(settings)
    try:
        request = CompletionRequest(LONG + "result = ", "\n" + LONG, path="/a.py")
        whole = engine.context(request)
        assert (whole.n_before > 512, whole.n_after) == (True, 256)
        engine.settle()
        cut = engine.context(request)
        assert (64 <= cut.n_before <= 128, cut.n_after) == (True, 32)
        # What drafters look up is not cut.
        assert len(cut.left) == len(whole.left)
        trace = engine.complete(request).trace
        assert trace.n_prompt_tokens <= 200
        assert trace.n_left_out == len(cut.left) + len(cut.right) - cut.n_before - cut.n_after
        # Whoever waits for the model's own text has it read as much as its context holds.
        patient = replace(request, verbatim=True, whole=True, max_tokens=50)
        trace = engine.complete(patient).trace
        room = engine.info.n_ctx - 50
        assert room - STEP - 10 <= trace.n_prompt_tokens <= room
        assert trace.n_left_out > 0
        fitting = replace(patient, prefix=request.prefix[-600:], suffix=request.suffix[:1500])
        assert engine.complete(fitting).trace.n_left_out == 0
        # Others are shown what they were.
        assert engine.context(request).prompt.tolist() == cut.prompt.tolist()
    finally:
        engine.close()


def test_nobody_looks_for_shapes_in_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds, in which no other request gets its turn."""
    seen: list[int] = []

    def noted(place: Place, *, multiline: bool = True) -> object:
        seen.append(len(place.prefix))
        return shape_at(place, multiline=multiline)

    monkeypatch.setattr(generation, "shape_at", noted)
    engine = strict_engine(Settings())
    try:
        request = CompletionRequest("(" * 1_000_000, max_tokens=1, verbatim=True)
        assert engine.complete(request).trace.n_tokens == 1
        assert seen == [0]
    finally:
        engine.close()
