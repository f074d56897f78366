"""Training elsewhere: packed here, trained there in calls of limited time, received here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.errors import InputError
from codespec.train import bundle, there
from codespec.train.corpus import Corpus
from codespec.training import export
from tests.model.test_train_cli import QUICK, miniature, run

__all__ = ["miniature"]


def test_from_bundle_to_models(miniature: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, packed, far, results = (miniature / n for n in ("here", "packed", "far", "results"))
    run("corpus", "--out", here, "--env", miniature / "env")
    run("tokenizer", "--out", here)
    monkeypatch.setattr(bundle, "PART_TEXT", (here / "corpus/text.bin").stat().st_size // 2 + 1)
    assert "MiB" in run("pack", "--out", here, packed, "--no-wheels")
    assert sorted(path.name for path in packed.iterdir()) == ["0", "1"]
    calls: list[dict[str, str]] = []

    def in_this_process(
        command: list[str], *, env: dict[str, str], check: bool
    ) -> subprocess.CompletedProcess[str]:
        assert command[:4] == [sys.executable, "-m", "codespec.train", "all"]
        calls.append(env)
        return subprocess.CompletedProcess(command, 0, run(*command[3:]))

    monkeypatch.setattr(subprocess, "run", in_this_process)
    monkeypatch.setattr(bundle, "PART_BYTES", 100_000)
    arguments = [*map(str, packed.iterdir()), "--run", str(far), "--to", str(results)]
    arguments += ["--tokens", "512", "--large", *map(str, QUICK), "--device", "cpu"]
    results.mkdir()
    (results / "codespec-base.gguf.9").write_bytes(b"of a larger model")
    with pytest.raises(SystemExit, match="a part of the corpus is missing"):
        there.main([str(packed / "0"), "--run", str(far)])
    assert there.main([*arguments, "--stop-after", "0.0001"]) == 0
    assert not (far / "report.json").exists()
    early = json.loads((results / "codespec-base.json").read_text())
    assert not early["is_done"]
    assert "not finished" in run("receive", "--out", miniature / "early", results)
    assert there.main(arguments) == 0
    assert calls[0]["PYTHONPATH"].split(os.pathsep)[0] == str(there.ROOT)
    a, b = Corpus(here / "corpus"), Corpus(far / "corpus")
    assert [a.text(d) for d in range(len(a.table))] == [b.text(d) for d in range(len(b.table))]

    assert len(list(results.glob("codespec-base.gguf.*"))) > 1
    assert all(path.stat().st_size <= 100_000 for path in results.glob("*.gguf.*"))
    run("receive", "--out", here, results)
    for name in ("codespec-base", "codespec-draft"):
        assert (here / f"{name}.gguf").read_bytes() == (far / f"{name}.gguf").read_bytes()
        assert json.loads((here / name / "log.jsonl").read_text())["is_done"]
    assert export.read_gguf(here / "codespec-base.gguf")[0].config.n_embd == 96
    assert (results / "report.json").read_text() == (far / "report.json").read_text()
    run("evaluate", "--out", here, *here.glob("*.gguf"), *QUICK)
    run("card", "--out", here, "--large")
    assert "| codespec-base |" in (here / "CARD.md").read_text()


def test_what_cannot_be_packed(miniature: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no corpus and tokenizer"):
        run("pack", "--out", miniature, miniature / "packed", "--no-wheels")
    run("corpus", "--out", miniature, "--env", miniature / "env")
    run("tokenizer", "--out", miniature)
    monkeypatch.setattr(bundle, "MAX_BYTES", 10_000)
    with pytest.raises(InputError, match="smaller --package-mb"):
        run("pack", "--out", miniature, miniature / "packed", "--no-wheels")
    with pytest.raises(InputError, match="no parts"):
        run("receive", "--out", miniature, miniature)


def test_only_wheels_that_are_missing_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy-9-py3-none-any.whl", "not_there-1-py3-none-any.whl"):
        (tmp_path / name).touch()
    asked: list[list[str]] = []

    def pip(command: list[str], check: bool) -> None:
        asked.append(command)
        folder = Path(command[command.index("--target") + 1])
        folder.mkdir()
        if len(asked) == 1:
            raise KeyboardInterrupt  # the call is ended in the middle
        (folder / "not_there.py").touch()

    monkeypatch.setattr(subprocess, "run", pip)
    site = tmp_path / "site"
    with pytest.raises(KeyboardInterrupt):
        there.install(tmp_path, site)
    assert not site.exists(), "half an installation is none"
    there.install(tmp_path, site)
    assert (site / "not_there.py").exists()
    there.install(tmp_path, site)
    assert len(asked) == 2
    assert [Path(a).name for a in asked[1] if a.endswith(".whl")] == [
        "not_there-1-py3-none-any.whl"
    ]
    assert "--no-index" in asked[1]
