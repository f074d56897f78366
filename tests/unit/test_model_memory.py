"""A model that cannot fit is refused in words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from codespec.backends.llama import load_model, memory
from codespec.config import load_settings
from codespec.errors import ModelError
from codespec.models import hardware, split
from codespec.models.resolve import target_path


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


def test_what_a_container_allows_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SimpleNamespace(available=8_000, total=16_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    monkeypatch.setattr(hardware, "_CGROUP", tmp_path)
    assert hardware.free_memory() == 8_000
    files = {"max": "max", "current": "3000", "stat": "anon 5\ninactive_file 700\nactive_file 50\n"}
    for name, text in files.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert hardware.free_memory() == 8_000
    assert hardware.detect(uses_gpu=False).memory_bytes == 16_000
    (tmp_path / "memory.max").write_text("4000\n")
    assert hardware.free_memory() == 1_750
    assert hardware.detect(uses_gpu=False).memory_bytes == 4_000
    (tmp_path / "memory.max").write_text("1000\n")
    assert hardware.free_memory() == 0


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
