"""`codespec doctor`: what it finds in order, what it finds wrong, and its exit code."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import gguf
import numpy as np
import pytest
from click.testing import CliRunner

from bench.gpu.shapes import DecoderShape, write_random
from codespec.backends.llama import LlamaTokenizer, kernels, load_model
from codespec.backends.llama.loader import gpu_backend, lib
from codespec.cli import main
from codespec.cli.doctor import checks, model_checks
from codespec.cli.doctor.model_checks import Speed, measure_speed
from codespec.config import IndexSettings, Settings, load_settings, origins
from codespec.daemon import control
from codespec.index.build import build_index
from codespec.index.store import Store
from codespec.index.word_encoder import WordEncoder
from codespec.models import entries
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.system import accelerators
from codespec.system.folders import cache_dir
from codespec.usage.statistics import Stats
from tests import training
from tests.e2e.conftest import daemon_of, until


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
    areas = ["build", "settings", "model", "index", "daemon", "next edits", "editor", "rules"]
    assert list(dict.fromkeys(f["area"] for f in found)) == areas
    assert not [f for f in found if f["level"] == "error"]
    assert any("it can fill in the middle" in m for m in of(found, "model", "ok"))
    assert "codespec-draft drafts for it, in its own tokens" in of(found, "model", "ok")
    all_ours = gpu_backend() == "cpu" and bool(kernels.NAME)
    words = "all its matrix products are our own" if all_ours else "but for ties"
    assert any(words in m for m in of(found, "model", "ok"))
    assert any("ms a token of the prompt" in m for m in of(found, "model", "ok"))
    assert any("has no index" in m for m in of(found, "index", "note"))
    assert any("does not run" in m for m in of(found, "daemon", "note"))


@pytest.mark.skipif(not kernels.NAME, reason=f"no kernels: {kernels.WHY_NOT}")
def test_a_model_whose_products_are_not_ours(project, tmp_path, monkeypatch):
    source, file = tmp_path / "model-f16.gguf", tmp_path / "model-iq3_s.gguf"
    shape = DecoderShape("small", 1, 256, 4, 2, 512, 8192, tied=True)  # rows of whole blocks
    write_random(source, shape, "f16", bundled(BUNDLED_TARGET))
    settings = lib.llama_model_quantize_default_params()
    settings.ftype = lib.LLAMA_FTYPE_MOSTLY_IQ3_S
    assert lib.llama_model_quantize(bytes(source), bytes(file), ctypes.byref(settings)) == 0
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", str(file))
    found = doctor(project, "--quick")
    assert any("but for ties" in m for m in of(found, "model", "ok"))
    assert any("llama.cpp multiplies what it has in iq3_s" in m for m in of(found, "model", "note"))
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", "bundled")
    assert not any("multiplies" in m for m in of(doctor(project, "--quick"), "model", "note"))


def test_a_model_that_reads_too_slowly(project, monkeypatch):
    monkeypatch.setenv("CODESPEC_COMPLETION_MAX_READ_MS", "0.001")
    assert any(
        "160 tokens of a file are shown to it instead of 1280" in m
        for m in of(doctor(project), "model", "note")
    )


def test_a_gpu_that_nothing_runs_on(project, tmp_path, monkeypatch):
    """The driver's tool is there, and this build, or CODESPEC_BACKEND, keeps to the CPU."""
    monkeypatch.setenv("CODESPEC_BACKEND", "cpu")
    words = "this machine has an NVIDIA GPU"
    assert not any(words in m for m in of(doctor(project, "--quick"), "build"))
    tools = tmp_path / "tools"
    tools.mkdir()
    tool = tools / ("nvidia-smi.exe" if os.name == "nt" else "nvidia-smi")
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    found = doctor(project, "--quick")
    assert not any(words in f["message"] for f in found), "the tool without a GPU"
    tool.write_text("#!/bin/sh\necho 'GPU 0: some'\n")
    found = doctor(project, "--quick")  # a warning: the exit code stays 0
    (finding,) = (f for f in found if words in f["message"])
    assert finding["level"] == "warning"
    assert any("models run on cpu" in m for m in of(found, "build", "ok"))
    assert any(m.startswith("products of matrices") for m in of(found, "build", "ok"))
    assert ("CODESPEC_BACKEND=cpu" in finding["message"]) == lib.llama_supports_gpu_offload()
    assert "nvcc" in finding["next_step"] or "Unset CODESPEC_BACKEND" in finding["next_step"]


def test_next_edits_are_told(project, monkeypatch):
    (said,) = of(doctor(project, "--quick"), "next edits")
    assert said == "on, eagerness medium, workspace: none shown yet"
    stats = Stats()
    stats.next_edit("python", "replace", n_shown=3, n_accepted=2)
    stats.flush()
    (said,) = of(doctor(project, "--quick"), "next edits")
    assert said.endswith(": 3 shown, 2 accepted")
    monkeypatch.setenv("CODESPEC_EDITS_ENABLED", "false")
    assert of(doctor(project, "--quick"), "next edits", "note") == ["off"]


def test_quick_does_not_load_the_model(project):
    assert not any("a pass" in m for m in of(doctor(project, "--quick"), "model"))


def test_for_people(project):
    result = CliRunner().invoke(main, ["doctor", str(project), "--quick"])
    assert result.exit_code == 0
    assert "codespec index" in result.output


@pytest.mark.skipif(os.name != "posix", reason="how shells quote")
def test_commands_can_be_pasted_whatever_folders_are_called(tmp_path):
    folder = tmp_path / "my project"
    folder.mkdir()
    (step,) = [f["next_step"] for f in doctor(folder, "--quick") if f["area"] == "index"]
    assert step.endswith(f"codespec index '{folder}'")


def test_states_of_fewer_digits_are_not_ours(project, monkeypatch):
    monkeypatch.setenv("CODESPEC_MODEL_KV_TYPE", "q8_0")
    assert any("but for ties" in m for m in of(doctor(project, "--quick"), "model", "ok"))


def test_a_model_that_is_none(project, tmp_path):
    file = tmp_path / "model.gguf"
    file.write_text("no model")
    found = doctor(project, "--model", file, code=1)
    assert any("not a GGUF file" in m for m in of(found, "model", "error"))
    assert of(found, "rules")  # the other checks are made all the same


def test_a_model_whose_weights_are_no_numbers(project, tmp_path):
    file = tmp_path / "model.gguf"
    shutil.copy(bundled(BUNDLED_DRAFT), file)
    reader = gguf.GGUFReader(file, "r+")
    (norm,) = [t for t in reader.tensors if t.name == "output_norm.weight"]
    assert isinstance(norm.data, np.memmap)
    norm.data[:] = np.nan
    norm.data.flush()
    (said,) = of(
        doctor(project, "--model", file, "--draft-model", "none", code=1), "model", "error"
    )
    assert "no numbers" in said


def test_settings_that_name_no_model(project, monkeypatch):
    for key in ("TARGET", "DRAFT"):
        with monkeypatch.context() as patch:
            patch.setenv(f"CODESPEC_MODEL_{key}", "~nobody-of-that-name/m.gguf")
            found = doctor(project, "--quick", code=1)
            assert any("there is no such user" in m for m in of(found, "model", "error"))
            assert of(found, "rules")
    name = next(e.name for e in entries.ENTRIES if e.file)
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", name)
    (finding,) = [f for f in doctor(project, "--quick", code=1) if f["level"] == "error"]
    assert finding["next_step"] == f"Get it: codespec models add {name}"


@pytest.mark.parametrize("quick", [(), ("--quick",)])
def test_a_draft_model_with_which_nothing_starts(project, tmp_path, monkeypatch, quick):
    file = tmp_path / "draft.gguf"
    training.part_of_another(file)
    monkeypatch.setenv("CODESPEC_MODEL_DRAFT", str(file))
    (said,) = of(doctor(project, *quick, code=1), "model", "error")
    assert "its vocabulary is no part of that of codespec-base" in said
    file.unlink()
    (said,) = of(doctor(project, *quick, code=1), "model", "error")
    assert "draft.gguf: no such model file" in said
    monkeypatch.setenv("CODESPEC_DRAFTING_DRAFTERS", "lookup")
    assert not of(doctor(project, "--quick"), "model", "error"), "nobody loads it"


def test_a_drafter_with_which_nothing_starts(project, monkeypatch):
    monkeypatch.setenv("CODESPEC_DRAFTING_DRAFTERS", "lokup")
    assert of(doctor(project, "--quick", code=1), "model", "error") == ['unknown drafter "lokup"']


def test_a_setting_that_is_none(project, monkeypatch):
    monkeypatch.setenv("CODESPEC_COMPLETION_MAX_TOKEN", "3")
    found = doctor(project, code=1)
    assert any("max_token" in m for m in of(found, "settings", "error"))


@pytest.mark.skipif(sys.platform != "linux", reason="the variable is Linux's")
def test_a_folder_that_cannot_be_made(project, tmp_path, monkeypatch):
    """Statistics and added models are missing then, completion is not."""
    (tmp_path / "codespec").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    found = doctor(project, "--quick", code=1)
    assert any("cannot create the folder" in m for m in of(found, "folders", "error"))
    place = f"{next(project.glob('*.py'))}:1:1"
    done = CliRunner().invoke(main, ["complete", place, "--max-tokens", "4"])
    assert done.exit_code == 0, done.output


def test_a_cache_folder_that_cannot_be_made(project, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(tmp_path / "file" / "cache"))
    found = doctor(project, "--quick", code=1)
    (said,) = of(found, "folders", "error")
    assert "cannot create the folder" in said
    assert of(found, "model", "ok")  # the other checks are made all the same
    assert of(found, "rules", "ok")


def test_an_installation_that_lost_a_package(monkeypatch):
    """`make env` alone does nothing where it did its work before."""

    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("codespec.backends.llama.backend.version", version)
    finding = list(checks.build(Settings()))[-1]
    assert finding.message == "llama.cpp cannot be loaded: PackageNotFoundError"
    assert finding.next_step == "Install it again: make clean env"


def test_a_disk_that_is_full(project, monkeypatch):
    """Folders on it are there and writable by their modes, and files can be made in them."""

    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    found = [f for f in doctor(project, "--quick", code=1) if f["level"] == "error"]
    assert {f["area"] for f in found} == {"folders"}
    assert f"the folder {cache_dir()} cannot be written: No space left on device" in of(
        found, "folders"
    )
    assert all("codespec index --prune" in f["next_step"] for f in found)


def test_an_index_that_is_not_finished_is_none_yet(project):
    """It is being built, or was left off: nothing is damaged."""
    model = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    root = os.path.realpath(project)
    Store(root, model.info.tokenizer_hash).folder.mkdir(parents=True)
    model.close()
    found = doctor(project, "--quick")
    assert of(found, "index") == [f"{root} has no index yet"]


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


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("b.py", b"\0\1", "binary"),
        ("package-lock.json", b"{}\n", "a lock file"),
        ("c.js", b"x" * 9000, "minified"),
        ("d.py", b"# Code generated by x. DO NOT EDIT.\nx = 1\n", "generated"),
        ("e.py", b"x = 1\n" * 200_000, "larger than index.max_file_bytes"),
        ("caf\udce9.py", b"x = 1\n", "a name that is not UTF-8"),
    ],
)
def test_a_file_that_the_index_leaves_out_is_explained(project, name, content, why):
    (project / name).write_bytes(content)
    (said,) = of(doctor(project / name, "--quick"), "rules", "note")
    assert f"{name} is not indexed: " in said
    assert why in said
    found = of(doctor(project / "a.py", "--quick"), "rules")
    assert found[-1].endswith("a.py is excluded by no rule")


def test_choices_of_builds_that_are_none(project, monkeypatch):
    monkeypatch.setenv("CODESPEC_KERNELS", "maybe")
    monkeypatch.setenv("CODESPEC_BACKEND", "quantum")
    said = of(doctor(project, "--quick"), "build", "warning")
    assert [m.split(",")[0] for m in said] == [
        "CODESPEC_BACKEND is 'quantum'",
        "CODESPEC_KERNELS is 'maybe'",
    ]


def test_choices_that_keep_completion_from_working_well(project, tmp_path, monkeypatch):
    tokenizer = LlamaTokenizer(load_model(bundled(BUNDLED_TARGET), vocab_only=True))
    build_index(project, WordEncoder(tokenizer), IndexSettings())
    file = tmp_path / "config.toml"
    settings = (
        "[completion]\nenabled = false\ndeadline_auto_ms = 0.5\nshow_late = false\n"
        '[index]\nmax_cache_bytes = 1\nexclude = ["gen/"]\n'
    )
    file.write_text(settings)
    monkeypatch.setenv("CODESPEC_CONFIG", str(file))
    found = doctor(project)
    assert "completion is switched off" in of(found, "settings", "warning")
    assert any("more than index.max_cache_bytes" in m for m in of(found, "index", "warning"))
    assert any("more than completion.deadline_auto_ms" in m for m in of(found, "model", "warning"))
    assert "excluded by index.exclude: gen/" in of(found, "rules", "ok")
    file.write_text(settings.replace("show_late = false", "show_late = true"))
    found = doctor(project)
    assert any("suggestions come late" in m for m in of(found, "model", "note"))
    file.write_text("[index]\nenabled = false\n")
    assert "indexing is switched off" in of(doctor(project, "--quick"), "index", "warning")


@pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")
@pytest.mark.parametrize(
    ("says", "level", "words"),
    [
        ("NVIM v0.10.4", "note", "Neovim 0.10 is there"),
        ("NVIM v0.9.5", "warning", "Neovim 0.9 is too old"),
        ("something else", "warning", "does not tell its version"),
    ],
)
def test_editors_on_the_path(project, tmp_path, monkeypatch, says, level, words):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("nvim", "code"):
        (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    found = doctor(project, "--quick")
    assert any(words in m for m in of(found, "editor", level))
    assert "VS Code is there" in of(found, "editor", "note")


def test_a_daemon_that_runs_and_one_without_a_model(home):
    with daemon_of(home, "ok"):
        (said,) = of(doctor(home.workspace, "--quick"), "daemon", "ok")
        assert said.startswith(("ready", "loading"))
    with daemon_of(home, "refuse"):

        def refused() -> bool:
            report = control.status(home.settings)
            return report is not None and report.state == "failed"

        until(refused)
        found = doctor(home.workspace, "--quick", code=1)
        assert of(found, "daemon", "error") == ["it runs without a model: no such model"]
        (step,) = [f["next_step"] for f in found if f["area"] == "daemon"]
        assert step == "Choose another one."


def test_a_model_for_conversation_that_cannot_fill_in_the_middle(project, tmp_path):
    raw = bundled(BUNDLED_TARGET).read_bytes()
    for old, new in (
        (b"tokenizer.ggml.fim_", b"tokenizer.ggml.xim_"),
        (b"<|fim_", b"<|xim_"),
        (b"codespec-base", b"codespec-chat"),
    ):
        assert old in raw
        raw = raw.replace(old, new)
    file = tmp_path / "plain.gguf"
    file.write_bytes(raw)
    found = doctor(project, "--quick", "--model", file)
    assert "codespec-draft drafts for it, by its text, as its tokens are others" in of(
        found, "model", "ok"
    )
    warnings = of(found, "model", "warning")
    assert [m.split(":")[0] for m in warnings] == [
        "it cannot fill in the middle",
        "by its name it is made for conversation, which completes code worse",
    ]


def test_what_speed_means():
    speed = Speed(prompt_ms=1.0, pass_ms=10.0)
    assert speed.line_ms == 64 + 120
    assert speed.cold_ms(1280) == 1280 + 120
    measured, backend = measure_speed(load_settings())
    assert 0 < measured.prompt_ms < measured.cold_ms(100)
    assert 0 <= measured.others <= 1
    assert backend


def test_a_busy_machine_is_told_from_a_slow_model(project, monkeypatch):
    def slow(others: float):
        monkeypatch.setattr(
            model_checks, "measure_speed", lambda _: (Speed(9.0, 90.0, others), "cpu")
        )
        found = [f for f in doctor(project) if f["area"] == "model"]
        steps = [f["next_step"] for f in found if f["level"] in ("note", "warning")]
        return steps, any("other programs had" in f["message"] for f in found)

    steps, is_told = slow(0.01)
    assert [step.startswith(("A smaller", "Choose a smaller")) for step in steps] == [True, True]
    assert not is_told
    steps, is_told = slow(0.6)
    assert ["ask again" in step for step in steps] == [True, True]
    assert is_told


def test_an_accelerator_that_models_do_not_run_on(project, monkeypatch):
    """The one that CODESPEC_BACKEND names: what is here of it, what is missing, how to build it."""
    monkeypatch.setattr("codespec.backends.llama.backend.gpu_backend", lambda: "cpu")
    for name in accelerators.ACCELERATORS:
        monkeypatch.setenv("CODESPEC_BACKEND", name)
        (finding,) = (f for f in doctor(project, "--quick") if "but models run on" in f["message"])
        assert finding["level"] == "warning"
        assert finding["message"].startswith(f"CODESPEC_BACKEND is {name}, but models run on cpu")
        for part in accelerators.missing(name, "compiler", "SDK", "loader", "device"):
            assert part in finding["message"]
        assert finding["next_step"].endswith(f"CODESPEC_BACKEND={name} make env")
    monkeypatch.setenv("CODESPEC_BACKEND", "hip")
    monkeypatch.setattr("codespec.backends.llama.backend.gpu_backend", lambda: "hip")
    assert not [f for f in doctor(project, "--quick") if "but models run on" in f["message"]]


def test_a_gpu_that_llama_cpp_was_not_built_for(project, monkeypatch):
    monkeypatch.delenv("CODESPEC_BACKEND", raising=False)
    monkeypatch.setattr("codespec.backends.llama.backend.gpu_backend", lambda: "cpu")
    monkeypatch.setattr(accelerators, "has_device", lambda name: name in ("hip", "vulkan"))
    (finding,) = (f for f in doctor(project, "--quick") if "an AMD GPU" in f["message"])
    assert finding["level"] == "note"
    assert "compiler hipcc" in finding["message"]  # there are no programs on the PATH
    assert finding["next_step"].endswith("CODESPEC_BACKEND=hip make env")
