"""A model that cannot fit is refused in words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from codespec.backends.llama import load_model, memory
from codespec.config import load_settings
from codespec.errors import ModelError
from codespec.models import split
from codespec.models.registry import target_path


def test_a_model_larger_than_free_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODESPEC_BACKEND", "cpu")
    path = target_path(load_settings(env={}).model)
    free = SimpleNamespace(available=1_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    with pytest.raises(ModelError, match=r"needs 0\.0 GB, 0\.0 GB are free"):
        load_model(path)
    load_model(path, vocab_only=True).close()
    with pytest.raises(ModelError, match=r"needs 6\.6 GB"):
        memory.check_fits(Path("model.gguf"), 6_000_000_000)


def test_all_files_of_a_model_that_is_split_count(tmp_path: Path) -> None:
    for i, size in enumerate((10, 200, 3000), 1):
        (tmp_path / f"m-{i:05}-of-00003.gguf").write_bytes(bytes(size))
    assert split.size_of(tmp_path / "m-00001-of-00003.gguf") == 3210
    alone = tmp_path / "m.gguf"
    alone.write_bytes(bytes(7))
    assert split.size_of(alone) == 7


def test_loading_tells_how_far_it_is() -> None:
    told: list[float] = []
    load_model(target_path(load_settings(env={}).model), on_progress=told.append).close()
    assert told == sorted(told)
    assert told[-1] == 1.0
