"""`python -m codespec.train`: the whole pipeline in miniature, and its complaints."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from codespec.errors import InputError
from codespec.system import progress
from codespec.train import __main__ as cli
from codespec.train import bpe, corpus_sources, pipeline, recipe
from codespec.training import export, qwen2
from tests import training

QUICK = ("--n-lines", 3, "--n-files", 2)


@pytest.fixture
def miniature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tiny recipes in place of the real ones, and an environment with a held-out package."""
    target = training.recipe("codespec-base", n_embd=64)
    draft = training.recipe("codespec-draft", n_embd=32)
    monkeypatch.setattr(cli, "TARGET", target)
    monkeypatch.setattr(cli, "DRAFT", draft)
    monkeypatch.setattr(cli, "RECIPES", {r.name: r for r in (target, draft)})
    large = {r.name: training.recipe(r.name, n_embd=96) for r in (target, draft)}
    large[draft.name] = replace(large[draft.name], teacher=target.name)
    monkeypatch.setattr(cli, "LARGE_RECIPES", large)
    monkeypatch.setattr(recipe, "FURTHER_PHASES", training.RECIPE.phases)
    monkeypatch.setattr(bpe.train, "__defaults__", (training.N_VOCAB,))
    empty = corpus_sources.CorpusSource("python-standard-library", "", "PSF-2.0", tmp_path, (), 0)
    monkeypatch.setattr(corpus_sources, "standard_library", lambda _limit: empty)
    training.install(tmp_path / "env", "ours", "MIT", 120, seed=1)
    training.install(tmp_path / "env", "click", "BSD-3-Clause", 4, seed=2)
    return tmp_path


def run(*arguments: object) -> str:
    return invoke(*arguments).stdout


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(
        cli.main, [str(a) for a in arguments], standalone_mode=False, catch_exceptions=False
    )
    if result.exception is not None:
        raise result.exception
    return result


def test_all_makes_a_pair_and_does_nothing_again(miniature: Path) -> None:
    out = miniature / "run"
    command = ("all", "--out", out, "--env", miniature / "env", "--tokens", 512, *QUICK)
    report = json.loads(run(*command))
    assert [m["model"] for m in report["models"]] == ["codespec-base.gguf", "codespec-draft.gguf"]
    assert all(0 < m["bits_per_byte"] < 20 for m in report["models"])
    agreement = report["torch_llama_cpp"]["codespec-base"]
    assert agreement["f32"]["max_difference"] < 1e-3
    assert json.loads((out / "report.json").read_text())["models"] == report["models"]
    text = (out / "CARD.md").read_text()
    assert "| codespec-base.gguf |" in text
    assert "| ours | 1.0 | MIT |" in text
    assert "click (BSD" not in text, "held-out packages are no training source"
    assert re.search(r"validation loss \|\n.*\n\| codespec-base \| \d+ \| \d", text)
    model, words = export.read_gguf(out / "codespec-base.gguf")
    assert model.config.n_embd == 64
    assert words.token_to_id(qwen2.END) == 0

    stamp = (out / "codespec-base/final.pt").stat().st_mtime_ns
    assert json.loads(run(*command)) == report
    assert (out / "codespec-base/final.pt").stat().st_mtime_ns == stamp


def test_stages_one_by_one(miniature: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = miniature / "run"
    split = json.loads(run("corpus", "--out", out, "--env", miniature / "env"))
    assert split["train"] > 0
    assert split["heldout"] > 0
    run("tokenizer", "--out", out)
    state = json.loads(run("model", "codespec-draft", "--out", out, "--tokens", 128))
    assert state["tokens"] >= 128
    run("model", "codespec-base", "--large", "--out", out, "--tokens", 1)
    assert pipeline.load_model(out / "codespec-base/final.pt").config.n_embd == 96
    run("export", "codespec-draft", "--out", out, "--quantisation", "f16", "--fim-order", "psm")
    measure = ("evaluate", "--out", out, out / "codespec-draft.gguf", *QUICK)
    done = invoke(*measure)
    assert json.loads(done.stdout)["models"][0]["psm"]["n"] == 3
    assert "codespec-draft.gguf  " not in done.stderr, "it was soon done"
    monkeypatch.setattr(progress, "LINE_EVERY_S", -1.0)
    told = invoke(*measure).stderr
    assert "codespec-draft.gguf  bits per byte: 1 chunks\n" in told
    assert "codespec-draft.gguf  lines, SPM: 3 of 3\n" in told


def test_going_on_from_an_exported_model(miniature: Path) -> None:
    """Its tokenizer and its weights, in another folder; weights of another shape are refused."""
    first, second = miniature / "first", miniature / "second"
    run("all", "--out", first, "--env", miniature / "env", "--tokens", 128, *QUICK)
    trained = first / "codespec-base.gguf"
    run("corpus", "--out", second, "--env", miniature / "env")
    run("tokenizer", "--out", second, "--from", trained)
    ours, theirs = (bpe.load(f / "tokenizer.json") for f in (first, second))
    assert ours.get_vocab() == theirs.get_vocab()
    run("model", "codespec-base", "--out", second, "--from", trained, "--tokens", 1)
    start, _ = export.read_gguf(trained)
    after = pipeline.load_model(second / "codespec-base/final.pt").embedding.weight
    moved = (after - start.embedding.weight).norm()
    assert moved < 0.1 * after.norm()
    with pytest.raises(InputError, match="another shape"):
        run("model", "codespec-draft", "--out", second, "--from", trained, "--tokens", 1)


def test_an_empty_corpus_is_explained(miniature: Path) -> None:
    with pytest.raises(InputError, match="nothing to train on"):
        run("corpus", "--out", miniature / "run")


def test_nothing_to_measure_on_is_told_before_training(miniature: Path) -> None:
    (miniature / "alone").mkdir()
    training.install(miniature / "alone", "ours", "MIT", 120, seed=1)
    out = miniature / "run"
    with pytest.raises(InputError, match="nothing to measure models on"):
        run("all", "--out", out, "--env", miniature / "alone", "--tokens", 128, *QUICK)
    assert not (out / "codespec-base").exists()


@pytest.mark.parametrize(
    "options", [(), ("--minutes", 1, "--tokens", 1), ("--tokens", 1, "--extra", "nowhere=MIT")]
)
def test_wrong_options_are_explained(miniature: Path, options: tuple[object, ...]) -> None:
    with pytest.raises(click.UsageError, match=r"either --minutes|existing folder"):
        run("all", "--out", miniature / "run", *options)


def test_evaluation_leaves_no_files_behind(miniature: Path) -> None:
    out = miniature / "run"
    run("all", "--out", out, "--env", miniature / "env", "--tokens", 128, *QUICK)
    assert not list(out.glob("*.check.gguf"))
    assert pipeline.load_model(out / "codespec-base/final.pt").config.n_embd == 64
