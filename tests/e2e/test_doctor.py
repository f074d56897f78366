"""`codespec doctor`: what it finds in order, what it finds wrong, and its exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.cli import main
from codespec.cli.doctor.model import Speed, measure_speed
from codespec.config import IndexSettings, load_settings, origins
from codespec.index.build import build_index
from codespec.index.words import WordEncoder
from codespec.models.registry import BUNDLED_TARGET, bundled


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")  # no editor, no GPU tool
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "a.py").write_text("x = 1\n")
    return root


def doctor(*args: object, code: int = 0) -> list[dict[str, str]]:
    result = CliRunner().invoke(main, ["doctor", *map(str, args), "--json"])
    assert result.exit_code == code, result.output
    findings = json.loads(result.output)["findings"]
    for finding in findings:
        assert finding["level"] == "ok" or finding["next_step"], finding
    return findings


def of(findings, area, level=None):
    return [f["message"] for f in findings if f["area"] == area and level in (None, f["level"])]


def test_a_sound_installation(project):
    found = doctor(project)
    areas = ["build", "settings", "model", "index", "daemon", "editor", "rules"]
    assert list(dict.fromkeys(f["area"] for f in found)) == areas
    assert not [f for f in found if f["level"] == "error"]
    assert any("it can fill in the middle" in m for m in of(found, "model", "ok"))
    assert any("ms a token of the prompt" in m for m in of(found, "model", "ok"))
    assert any("has no index" in m for m in of(found, "index", "note"))
    assert any("does not run" in m for m in of(found, "daemon", "note"))


def test_quick_does_not_load_the_model(project):
    assert not any("a pass" in m for m in of(doctor(project, "--quick"), "model"))


def test_for_people(project):
    result = CliRunner().invoke(main, ["doctor", str(project), "--quick"])
    assert result.exit_code == 0
    assert "codespec index" in result.output


def test_a_model_that_is_none(project, tmp_path):
    file = tmp_path / "model.gguf"
    file.write_text("no model")
    found = doctor(project, "--model", file, code=1)
    assert any("not a GGUF file" in m for m in of(found, "model", "error"))
    assert of(found, "rules")  # the other checks are made all the same


def test_a_setting_that_is_none(project, monkeypatch):
    monkeypatch.setenv("CODESPEC_COMPLETION_MAX_TOKEN", "3")
    found = doctor(project, code=1)
    assert any("max_token" in m for m in of(found, "settings", "error"))


def test_settings_and_their_origins(project, tmp_path, monkeypatch):
    file = tmp_path / "config.toml"
    file.write_text("[completion]\nmax_tokens = 32\ndeadline_auto_ms = 500.0\n")
    monkeypatch.setenv("CODESPEC_CONFIG", str(file))
    monkeypatch.setenv("CODESPEC_COMPLETION_MAX_TOKENS", "16")
    said = of(doctor(project, "--quick", "--draft-model", "none"), "settings")
    assert "completion.max_tokens = 16, from the environment" in said
    assert f"completion.deadline_auto_ms = 500.0, from {file}" in said
    assert 'model.draft = "", from the options' in said
    assert origins()["completion", "max_tokens"] == "the environment"


def test_a_damaged_index(project):
    tokenizer = LlamaTokenizer(load_model(bundled(BUNDLED_TARGET), vocab_only=True))
    build_index(project, WordEncoder(tokenizer), IndexSettings())
    assert any("1 files" in m for m in of(doctor(project, "--quick"), "index", "ok"))
    for manifest in Path(os.environ["CODESPEC_CACHE_DIR"]).rglob("manifest*"):
        manifest.write_bytes(b"damaged")
    found = doctor(project, "--quick", code=1)
    assert of(found, "index", "error")


def test_an_excluded_file_is_explained(project):
    (project / ".codespecignore").write_text("a.py\n")
    found = doctor(project / "a.py", "--quick")
    assert any(".codespecignore" in m for m in of(found, "rules", "ok"))
    (why,) = of(found, "rules", "warning")
    assert "gets no completions" in why


def test_what_speed_means():
    speed = Speed(prompt_ms=1.0, pass_ms=10.0)
    assert speed.line_ms == 64 + 120
    assert speed.cold_ms(1280) == 1280 + 120
    measured, backend = measure_speed(load_settings())
    assert 0 < measured.prompt_ms < measured.cold_ms(100)
    assert backend
