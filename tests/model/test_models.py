"""Models come and go while an engine runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from codespec.backends.llama import LoadedModel
from codespec.engine import drafting
from codespec.engine.local import LocalEngine
from codespec.errors import ModelError
from codespec.models.resolve import draft_path
from codespec.requests import CompletionRequest

REQUEST = CompletionRequest("def add(a, b):\n    return a", max_tokens=8, drafters=("model",))


def test_a_model_that_is_unloaded_leaves_the_others_at_work(engine: LocalEngine) -> None:
    models, path = engine.passes.models, draft_path(engine.settings.model)
    assert path is not None
    text = engine.complete(REQUEST).text
    running = models.load(path)
    engine.idle()  # measures one of them, or is on its way
    running.context.prefill(engine.tokenizer.encode("x = 1"), lambda: False)
    busy_s = models.busy_s
    models.unload(running)
    assert models.busy_s == busy_s
    assert isinstance(running.model, LoadedModel)
    assert running.model.handle is None
    engine.idle()
    assert engine.complete(REQUEST).text == text


def test_a_draft_model_that_is_refused_does_not_stay_loaded(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ModelError("distilled for another target")

    path = draft_path(engine.settings.model)
    assert path is not None
    monkeypatch.setattr(drafting, "as_draft", refuse)
    n_loaded = len(engine.passes.models._running)
    with pytest.raises(ModelError):
        engine.passes.drafting._draft_model(Path(path))
    assert len(engine.passes.models._running) == n_loaded
