"""What benchmarks that start other processes are given by the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import codespec_bench.hop
import codespec_bench.latency
from codespec.cli import main, model_settings


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two files in it."""
    for name in ("target.gguf", "small.gguf"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Settings of the model that a benchmark was asked to measure with; it measures nothing."""
    found: list[dict[str, Any]] = []

    def hop(*args: Any) -> list[dict[str, Any]]:
        found.append(next(dict(arg) for arg in args if isinstance(arg, dict)))
        return [{"what": "nothing"}]

    def latency(typing: Any, progress: object) -> list[dict[str, Any]]:
        found.append(dict(typing.model))
        times = dict.fromkeys(("initialize_ms", "ready_ms", "first_answer_ms"), 0)
        return [{"config": "start", "n": 0, **times}]

    monkeypatch.setattr(codespec_bench.hop, "run", hop)
    monkeypatch.setattr(codespec_bench.latency.Typing, "run", latency)
    return found


def bench(*args: str) -> None:
    done = CliRunner().invoke(main, ["bench", *args])
    assert done.exit_code == 0, done.output


def test_files_are_named_in_full(models: Path) -> None:
    assert model_settings("target.gguf", "small.gguf")["model"] == {
        "target": str(models / "target.gguf"),
        "draft": str(models / "small.gguf"),
    }
    assert model_settings("missing.gguf", "auto")["model"] == {
        "target": "missing.gguf",
        "draft": "auto",
    }
    assert model_settings(None, "none") == {"model": {"draft": ""}}
    assert model_settings(None, None) == {}


@pytest.mark.parametrize("name", ["hop", "latency"])
def test_processes_in_other_folders_find_both_models(
    models: Path, given: list[dict[str, Any]], name: str
) -> None:
    bench(name, "--model", "target.gguf", "--draft-model", "small.gguf", "--threads", "3")
    assert given == [
        {
            "target": str(models / "target.gguf"),
            "draft": str(models / "small.gguf"),
            "n_threads": 3,
        }
    ]


@pytest.mark.usefixtures("models")
def test_hop_takes_the_bundled_model_unless_told_otherwise(given: list[dict[str, Any]]) -> None:
    bench("hop", "--draft-model", "none")
    assert given == [{"target": "", "draft": "", "n_threads": 0}]
