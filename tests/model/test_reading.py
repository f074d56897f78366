"""A model that reads too slowly is shown less of the file."""

from __future__ import annotations

from codespec.config import CompletionSettings, Settings
from codespec.engine.local import LocalEngine
from codespec.requests import CompletionRequest

LONG = "".join(f"value_{n} = compute({n}, value_{n - 1})\n" for n in range(1, 400))


def test_the_window_is_cut_once_passes_are_measured():
    settings = Settings(completion=CompletionSettings(max_read_ms=0.001))
    engine = LocalEngine(settings)
    try:
        request = CompletionRequest(LONG + "result = ", "\n" + LONG, path="/a.py")
        whole = engine.context(request)
        assert (whole.n_before > 512, whole.n_after) == (True, 256)
        engine.settle()
        cut = engine.context(request)
        assert (64 <= cut.n_before <= 128, cut.n_after) == (True, 32)
        # What drafters look up is not cut.
        assert len(cut.left) == len(whole.left)
        assert engine.complete(request).trace.n_prompt_tokens <= 200
    finally:
        engine.close()
