"""`codespec models recommend`: which model suits this machine."""

from __future__ import annotations

import json
import os
import re
from datetime import date
from importlib.resources import files
from pathlib import Path

import pytest

from codespec.models import catalogue, entries, hardware
from codespec.models.expected import ms_a_token
from tests.models_cli import ok


def test_recommendations_fit_the_machine() -> None:
    gb = entries.GB

    def chosen(
        memory: int, cores: int = 8, gpu: int = 0, apple: bool = False, uses_gpu: bool = True
    ) -> str | None:
        machine = hardware.Hardware(cores, memory * gb, gpu * gb, apple, uses_gpu)
        tier = catalogue.tier_of(machine)
        entry = catalogue.recommended(tier)
        if entry is None:
            return None
        assert entry.memory_bytes <= tier.memory_bytes
        assert entry.licence.is_open
        return entry.name

    assert chosen(32) == "qwen2.5-coder-1.5b"
    assert chosen(32, cores=2) == "qwen2.5-coder-0.5b"
    assert chosen(1) is None
    assert chosen(32, gpu=8) == "qwen2.5-coder-7b-q4"
    assert chosen(64, gpu=16) == "qwen2.5-coder-7b"
    assert chosen(64, gpu=24) == "qwen2.5-coder-14b"
    assert chosen(64, gpu=48) == "qwen3-coder-30b-a3b"
    assert chosen(16, apple=True) == "qwen2.5-coder-7b"
    assert chosen(8, apple=True) == "qwen2.5-coder-1.5b"
    assert chosen(64, gpu=24, uses_gpu=False) == chosen(64)
    assert chosen(32, apple=True, uses_gpu=False) == chosen(32)
    listed = json.loads(ok("recommend", "--no-speed", "--json"))
    assert set(listed["by_machine"]) >= {"CPU", "GPU 8 GiB", "GPU 16 GiB", "GPU 24 GiB"}
    assert all(m["licence"] and m["memory_bytes"] for m in listed["models"])
    shown = ok("recommend", "--no-speed")
    assert "codespec models add" in shown or listed["recommended"] is None
    assert all(entry.name in shown for entry in entries.ENTRIES), "whole names, to be typed"


def test_every_fact_has_a_source_and_what_is_not_known_is_said() -> None:
    for e in entries.ENTRIES:
        assert e.source.startswith("https://")
        date.fromisoformat(e.looked_up)
        assert e.licence.is_open or e.licence.forbids
        assert 0 < e.read_gb <= e.file_gb
        assert bool(e.repo) == bool(e.file)
    shown = ok("recommend", "--no-speed", "--all")
    assert "not known" in shown
    assert "https://github.com/QwenLM/Qwen3-Coder, read on" in shown


def test_what_a_token_takes_follows_from_what_is_read_and_how_fast() -> None:
    said = json.loads(ok("recommend", "--json"))
    assert said["read_bytes_per_s"] > 1e6
    by_name = {m["name"]: m for m in said["models"]}
    dense, sparse = by_name["qwen2.5-coder-14b"], by_name["qwen3-coder-30b-a3b"]
    assert sparse["file_gb"] > dense["file_gb"]
    assert sparse["least_ms_a_token"] < dense["least_ms_a_token"], "part of it is read"
    entry = next(e for e in entries.ENTRIES if e.name == "qwen2.5-coder-1.5b")
    assert ms_a_token(entry, 5e9) == pytest.approx(entry.file_gb / 5 * 1e3)


def test_the_pinned_llama_cpp_knows_every_architecture() -> None:
    library = Path(str(files("llama_cpp"))) / "lib"
    built = [f for f in library.iterdir() if re.match(r"(lib)?llama\.", f.name)]
    known = built[0].read_bytes()
    for e in entries.ENTRIES:
        assert e.architecture.encode() + b"\0" in known, e.name


def test_gpus_are_read_from_the_drivers_tool() -> None:
    memory = hardware.largest_gpu_bytes("8192\n24564\n[N/A]\n")
    assert memory == 24564 << 20
    here = hardware.Hardware(8, 64 << 30, memory, is_apple_silicon=False, uses_gpu=True)
    assert catalogue.tier_of(here).name == "GPU 24 GiB"
    assert hardware.largest_gpu_bytes("") == 0


@pytest.mark.skipif(os.name != "posix", reason="the driver's tool is a shell script")
def test_a_gpu_that_this_build_cannot_use_is_said_and_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 24564\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CODESPEC_BACKEND", "cpu")
    assert json.loads(ok("recommend", "--no-speed", "--json"))["machine"].startswith("CPU")
    assert "its GPU is left out" in ok("recommend", "--no-speed")
    monkeypatch.setattr("codespec.backends.llama.backend.gpu_backend", lambda: "cuda")
    assert json.loads(ok("recommend", "--no-speed", "--json"))["machine"] == "GPU 24 GiB"
    assert "its GPU is left out" not in ok("recommend", "--no-speed")
