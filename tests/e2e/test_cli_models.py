"""`codespec models`: the real commands on real files, and a hub on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from codespec.backends.llama import LlamaTarget
from codespec.cli import main, model_settings
from codespec.cli.doctor.model_checks import measure_speed
from codespec.config import config_path, load_settings
from codespec.daemon.address import resolved
from codespec.distill.acceptance import opened
from codespec.models import distilled, download, entries, library
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.models.resolve import draft_path, target_path
from codespec.rules.secrets import VERSION
from codespec.train import bpe
from codespec.training import export
from codespec.training.network import Llama
from tests import training
from tests.hub import Hub, hub
from tests.models_cli import config, model, ok, run

__all__ = ["config", "hub", "model"]


def test_a_model_of_ones_own(model: Path) -> None:
    before = json.loads(ok("list", "--json"))["models"]
    assert [(m["name"], m["default"]) for m in before] == [
        ("codespec-base", "target"),
        ("codespec-draft", "draft"),
    ]
    assert json.loads(ok("add", model, "--json")) == {"name": "mine", "path": str(model)}
    ok("add", model)  # once more is no error
    after = json.loads(ok("list", "--json"))["models"]
    assert after[2]["bytes"] == model.stat().st_size
    assert "mine" in ok("list")
    other = model.parent / "other" / "mine.gguf"
    other.parent.mkdir()
    other.write_bytes(model.read_bytes())
    assert "already" in run("add", other).output
    moved = model.rename(model.with_suffix(".away"))
    assert "is gone\n  Forget it: codespec models remove mine" in run("show", "mine").output
    moved.rename(model)
    ok("remove", "mine")
    assert model.exists(), "a user's own file is never deleted"
    assert "belongs to codespec" in run("remove", "codespec-base").output
    assert "no model of that name" in run("remove", "mine").output
    model.write_text("no model")
    assert "not a GGUF file" in run("add", model).output
    assert "no such file" in run("add", "nowhere").output


def test_what_llama_cpp_gives_up_on_is_told_in_a_line(model: Path) -> None:
    raw = model.read_bytes()
    one, other = (len(t).to_bytes(8, "little") + t for t in (b"return", b"import"))
    assert raw.count(one) == raw.count(other) == 1
    model.write_bytes(raw.replace(one, other))  # a token that stands twice
    command = [sys.executable, "-m", "codespec", "models", "show", model]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (shown.returncode, shown.stdout, shown.stderr.count("\n")) == (1, "", 2)
    assert shown.stderr.startswith("error: llama.cpp gave up, the model file may be damaged: llama")
    assert shown.stderr.endswith("  Get the file again, or choose another model.\n")
    for asked in (run("add", model), run("default", model)):
        assert asked.exit_code == 1
        assert "llama.cpp gave up" in asked.output
        assert "Get the file again" in asked.output
    result = CliRunner().invoke(main, ["doctor", "--quick", "--model", str(model)])
    assert "FAIL  model: " in result.output
    assert "llama.cpp gave up" in result.output
    assert "rules:" in result.output, "the other checks are made"


@pytest.mark.parametrize(
    ("value", "words"), [(0, "llama.cpp gave up"), (100, "llama.cpp cannot load")]
)
def test_a_file_that_could_not_be_loaded_is_not_added(model: Path, value: int, words: str) -> None:
    raw, key = model.read_bytes(), b"llama.block_count" + bytes([4, 0, 0, 0])
    at = raw.index(key) + len(key)
    model.write_bytes(raw[:at] + value.to_bytes(4, "little") + raw[at + 4 :])
    asked = run("add", model)
    assert (asked.exit_code, words in asked.output) == (1, True), asked.output
    assert "mine" not in ok("list")


def test_settings_take_the_names_of_the_list(
    model: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok("add", model)
    config.write_text('[model]\ntarget = "mine"\ndraft = "codespec-draft"\n')
    settings = load_settings()
    here = model.parent / "repository"
    here.mkdir()
    (here / "mine").write_bytes(b"GGUF, but of whoever wrote this repository")
    monkeypatch.chdir(here)
    assert target_path(settings.model) == model
    assert draft_path(settings.model) == bundled(BUNDLED_DRAFT)
    for written in (resolved(settings).model, load_settings(model_settings("mine")).model):
        assert written.target == str(model)
    known = json.loads(ok("list", "--json"))["models"]
    assert {m["name"]: m["default"] for m in known} == {
        "codespec-base": "",
        "codespec-draft": "draft",
        "mine": "target",
    }
    # No name: as before, a file that may be missing.
    other = load_settings({"model": {"target": "unknown"}})
    assert target_path(other.model) == Path("unknown")


def test_of_two_that_add_at_once_neither_is_lost(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = model.with_name("other.gguf")
    adding = threading.Thread(target=library.add, args=(other,))
    write = library.write_atomically

    def written(path: Path, data: bytes) -> None:
        if adding.ident is None:
            adding.start()
            adding.join(0.2)  # it waits for this one, or is done before it
        write(path, data)

    monkeypatch.setattr(library, "write_atomically", written)
    library.add(model)
    adding.join()
    assert sorted(library.added()) == ["mine", "other"]


def test_a_file_without_the_sum_it_should_have_is_not_added(model: Path) -> None:
    refused = run("add", model, "--sha256", "0" * 64)
    assert (refused.exit_code, "its SHA-256 is" in refused.output) == (1, True)
    assert "not a SHA-256" in run("add", model, "--sha256", "1234").output
    assert library.added() == {}
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    facts = json.loads(ok("add", model, "--sha256", digest.upper(), "--json"))
    assert (facts["sha256"], facts["verified"]) == (digest, True)


def test_what_a_model_is(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = json.loads(ok("show", "bundled", "--json"))
    assert facts["architecture"] == "llama"
    assert facts["parameters"] > 1_000_000
    assert facts["quantisation"] == "Q8_0"
    assert facts["fim_order"] == "spm"
    assert facts["other_files"] == "<|repo_name|> <|file_sep|>"
    assert facts["context"] == 2048
    assert facts["licence"] == "Apache-2.0"
    # 7 layers, 1 head of 64, keys and values of 2 bytes, 2,048 tokens.
    assert facts["memory_bytes"] == facts["bytes"] + 7 * 1 * 2 * 64 * 2 * 2048
    monkeypatch.setenv("CODESPEC_MODEL_KV_TYPE", "q8_0")
    smaller = json.loads(ok("show", "bundled", "--no-speed", "--json"))
    # Of 32 numbers 34 bytes.
    assert smaller["memory_bytes"] == facts["bytes"] + 7 * 1 * 2 * 64 * 34 // 32 * 2048
    assert facts["tok_per_s"] > 1
    unmeasured = json.loads(ok("show", bundled(BUNDLED_DRAFT), "--no-speed", "--json"))
    assert unmeasured["tok_per_s"] is None
    shown = ok("show", "codespec-draft", "--no-speed")
    assert "fim order" in shown
    assert "<|fim_prefix|> <|fim_suffix|> <|fim_middle|>" in shown
    assert "2.7 MB" in shown
    assert "no such model" in run("show", "nothing").output


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
def test_speed_is_measured_with_keys_and_values_as_they_are_kept(
    kv_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    init = LlamaTarget.__init__

    def noting(self: LlamaTarget, *args: Any, **options: Any) -> None:
        made.append(options.get("kv_type", "f16"))
        init(self, *args, **options)

    monkeypatch.setattr(LlamaTarget, "__init__", noting)
    monkeypatch.setenv("CODESPEC_MODEL_KV_TYPE", kv_type)
    ok("show", "bundled")
    settings = load_settings()
    measure_speed(settings)
    with opened(bundled(BUNDLED_DRAFT), settings, 1):
        pass
    assert made == [kv_type] * 3


def test_a_file_named_from_here_is_the_default_everywhere(
    model: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    ok("default", model.name, "--draft", f"./{model.name}")
    monkeypatch.chdir(config.parent)
    settings = load_settings(env={"CODESPEC_CONFIG": str(config)})
    assert Path(settings.model.target) == model
    assert Path(settings.model.draft) == model


def test_what_is_bundled_is_the_default_by_its_name(config: Path) -> None:
    """Another installation has it elsewhere."""
    ok("default", "codespec-base", "--draft", "codespec-draft")
    settings = load_settings(env={"CODESPEC_CONFIG": str(config)}).model
    assert (settings.target, settings.draft) == ("codespec-base", "codespec-draft")
    assert target_path(settings) == bundled(BUNDLED_TARGET)
    assert draft_path(settings) == bundled(BUNDLED_DRAFT)
    known = json.loads(ok("list", "--json"))["models"]
    assert [(m["name"], m["default"]) for m in known] == [
        ("codespec-base", "target"),
        ("codespec-draft", "draft"),
    ]


def test_the_draft_model_in_use_is_not_removed_without_a_word(hub: Hub, config: Path) -> None:
    hub.content, hub.stated = bundled(BUNDLED_DRAFT).read_bytes(), None
    ok("add", download.hub_url("maker/repo", "small.gguf"))
    ok("default", "--draft", "small")
    said = ok("remove", "small")
    assert "it is the draft model in use; go back: codespec models default --draft auto" in said
    assert "models default bundled" not in said
    ok("default", "--draft", "none")
    assert "in use" not in run("remove", "small").output, "there is none, and none of that name"


def test_files_in_use_are_listed_wherever_they_lie(
    model: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = model.with_name("draft.gguf")
    draft.write_bytes(bundled(BUNDLED_DRAFT).read_bytes())
    monkeypatch.chdir(model.parent)
    ok("default", model.name, "--draft", draft.name)

    def listed() -> list[tuple[str, str]]:
        rows = json.loads(ok("list", "--json"))["models"]
        return [(row["name"], row["default"]) for row in rows]

    pair = [("codespec-base", ""), ("codespec-draft", "")]
    assert listed() == [*pair, (str(model), "target"), (str(draft), "draft")]
    ok("default", listed()[2][0])  # what is listed can be named
    ok("add", model)
    assert listed() == [*pair, ("mine", "target"), (str(draft), "draft")]
    draft.unlink()
    assert "missing" in ok("list")
    monkeypatch.setenv("CODESPEC_MODEL_DRAFT", f"../{model.parent.name}/{model.name}")
    assert listed() == [*pair, ("mine", "target")], "one file, whatever it is called"


@pytest.mark.skipif(sys.platform != "linux", reason="where a name may be any bytes")
def test_a_name_that_is_no_text_is_refused_in_words(model: Path, tmp_path: Path) -> None:
    odd = model.rename(tmp_path / os.fsdecode(b"m\xe9.gguf"))
    assert "not UTF-8" in run("add", odd).output
    assert "not UTF-8" in run("default", odd).output


def test_a_name_that_begins_like_a_home_folder(
    model: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    model.rename("~mine.gguf")
    ok("add", "~mine.gguf")
    ok("default", "./~mine.gguf")
    assert load_settings(env=dict(os.environ)).model.target == str(model.with_name("~mine.gguf"))
    assert "there is no such user" in run("add", "~nobody-of-that-name/m.gguf").output


def test_every_command_takes_the_names_of_the_list(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ok("add", model)
    assert model_settings("mine", "codespec-draft")["model"] == {
        "target": str(model),
        "draft": str(bundled(BUNDLED_DRAFT)),
    }
    for name, as_it_is in (("missing.gguf",) * 2, ("../mine",) * 2, ("bundled", "")):
        assert model_settings(name)["model"]["target"] == as_it_is
    for name, draft in (("auto", "auto"), ("none", "")):
        assert model_settings(None, name)["model"]["draft"] == draft
    (tmp_path / "a.py").write_text("def add(a, b):\n    return\n")
    command = ["complete", "a.py:2:11", "--max-tokens", "2", "--model"]
    assert CliRunner().invoke(main, [*command, "mine"]).exit_code == 0
    refused = CliRunner().invoke(main, [*command, "mnie"])
    assert (refused.exit_code, "See: codespec models list" in refused.output) == (1, True)
    refused = CliRunner().invoke(main, [*command, entries.ENTRIES[0].name])
    assert "codespec models add" in refused.output


def test_nothing_is_downloaded_unasked(hub: Hub, model: Path, config: Path) -> None:
    for args in (["list"], ["recommend"], ["add", model], ["show", "bundled", "--no-speed"]):
        ok(*args)
    ok("default", "mine")
    run("add", "qwen2.5-coder-of-no-such-name")
    assert hub.methods == []


def test_the_default_is_written_and_nothing_else_changes(model: Path, config: Path) -> None:
    text = "# mine\n[completion]\nmax_tokens = 12  # short\n\n[model]\nn_threads = 1\n"
    config.write_text(text)
    ok("add", model)
    # A daemon belongs to its settings: the next one is not the last one restarted.
    assert "daemon stop --all" in ok("default", "mine", "--draft", "none")
    settings = load_settings(env={"CODESPEC_CONFIG": str(config)})
    assert settings.model.target == str(model)
    assert settings.model.draft == ""
    assert settings.completion.max_tokens == 12
    assert all(line in config.read_text() for line in text.splitlines())
    ok("default", "bundled", "--draft", "auto")
    settings = load_settings(env={"CODESPEC_CONFIG": str(config)})
    assert settings.model.target == ""
    assert settings.model.draft == "auto"
    config.write_text("[model\n")
    assert "Mend" in run("default", "bundled").output
    assert run("default").exit_code == 2


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_settings_that_are_kept_elsewhere_stay_there(model: Path, config: Path) -> None:
    kept = config.rename(model.parent / "kept.toml")
    kept.write_bytes(b"\xef\xbb\xbf[completion]\nmax_tokens = 12\n")  # as some editors begin
    config.symlink_to(kept)
    ok("default", model)
    assert config.is_symlink()
    assert "max_tokens = 12" in kept.read_text()
    assert str(model) in kept.read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="where settings are by default")
def test_what_comes_before_the_settings_file_is_said(
    model: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "otherwise" not in run("default", "bundled").output
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", str(model))
    assert "but the environment says otherwise" in run("default", "bundled").output


def test_a_file_by_the_name_of_a_bundled_model_is_not_added(tmp_path: Path) -> None:
    file = tmp_path / BUNDLED_DRAFT
    file.write_bytes(bundled(BUNDLED_DRAFT).read_bytes())
    assert "comes with codespec" in run("add", str(file)).output


def test_settings_that_cannot_be_written_are_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "away").symlink_to(tmp_path / "nowhere")
    monkeypatch.delenv("CODESPEC_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "away"))
    refused = run("default", "bundled")
    assert refused.exit_code == 1
    assert f"{tmp_path / 'away'}: File exists" in refused.output
    assert f"See that {config_path()} can be written" in refused.output


def test_a_cache_that_a_model_cannot_have_is_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values in q8_0 come by 32, and this model's heads have 16."""
    words = bpe.train([training.source_text(i) for i in range(20)], training.N_VOCAB)
    tiny = tmp_path / "tiny.gguf"
    export.write_gguf(tiny, Llama(training.TINY).eval(), words, "f32", "tiny")
    ok("show", tiny)
    monkeypatch.setenv("CODESPEC_MODEL_KV_TYPE", "q8_0")
    refused = run("show", tiny)
    assert refused.exit_code == 1
    assert "q8_0 with block size 32 does not divide" in refused.output
    assert 'model.kv_type = "f16"' in refused.output
    assert "no memory" not in refused.output


def test_a_pair_that_does_not_match_is_refused_before_it_is_written(
    model: Path, config: Path, tmp_path: Path
) -> None:
    words = bpe.train([training.source_text(i) for i in range(20)], training.N_VOCAB)
    other = tmp_path / "other.gguf"
    export.write_gguf(other, Llama(training.TINY).eval(), words, "f32", "other")
    config.write_text("[completion]\nmax_tokens = 12\n")
    part = tmp_path / "part.gguf"
    training.part_of_another(part)
    ok("add", other)
    ok("add", part)
    for args in (["--draft", "part"], ["other", "--draft", "part"]):
        refused = run("default", *args)
        assert refused.exit_code == 1
        assert "distilled for another target" in refused.output
        assert "model" not in config.read_text()
    ok("default", "other", "--draft", "codespec-draft")
    assert load_settings(env=dict(os.environ)).model.target == str(other)


def test_distilled_drafts_are_listed_with_what_they_do(tmp_path: Path) -> None:
    at = distilled.draft_folder("0123", str(tmp_path))
    at.mkdir(parents=True)
    better, worse = (
        distilled.DraftFigures(acceptance=share, speed=1.0, n_drafted=100) for share in (0.31, 0.12)
    )
    record = distilled.DraftRecord(
        file="draft-1.gguf",
        target="some-model",
        target_path=str(bundled(BUNDLED_TARGET)),
        workspace=str(tmp_path),
        n_params=1_000_000,
        n_vocab=8192,
        n_places=60,
        n_draft=4,
        before=worse,
        after=better,
        secrets=VERSION,
    )
    (at / distilled.RECORD).write_bytes(msgspec.json.encode(record))
    assert f"distilled from some-model for {tmp_path}: 31% accepted\n" in ok("list")
    turned = msgspec.structs.replace(record, before=better, after=worse)
    (at / distilled.RECORD).write_bytes(msgspec.json.encode(turned))
    assert "12% accepted, not used" in ok("list")
    assert [d["used"] for d in json.loads(ok("list", "--json"))["distilled"]] == [False]
    outdated = msgspec.structs.replace(record, secrets=VERSION - 1)
    (at / distilled.RECORD).write_bytes(msgspec.json.encode(outdated))
    assert "31% accepted, not used: what counts as a secret has changed" in ok("list")
    assert "is gone" not in ok("list")
    of_old = msgspec.structs.replace(record, target_path="/models/some.gguf")
    (at / distilled.RECORD).write_bytes(msgspec.json.encode(of_old))
    assert f"/models/some.gguf is gone; delete it: {at}\n" in ok("list")


def test_narrow_terminals_cut_nothing_off(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = ok("show", model, "--no-speed")
    _, _, path = shown.partition("path ")
    folded = "".join(path.partition("architecture")[0].split())
    assert folded == str(model)
    assert "…" not in shown + ok("recommend") + ok("list")
