"""`codespec models recommend`: which model suits this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from codespec.models import catalogue, hardware
from tests.models_cli import ok


def test_recommendations_fit_the_machine() -> None:
    gb = catalogue.GB

    def chosen(
        memory: int, cores: int = 8, gpu: int = 0, apple: bool = False, uses_gpu: bool = True
    ) -> str | None:
        machine = hardware.Hardware(cores, memory * gb, gpu * gb, apple, uses_gpu)
        tier = catalogue.tier_of(machine)
        entry = catalogue.recommended(tier)
        if entry is None:
            return None
        assert entry.memory_bytes <= tier.memory_bytes
        assert entry.licence == "Apache-2.0"
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
    listed = json.loads(ok("recommend", "--json"))
    assert set(listed["by_machine"]) >= {"CPU", "GPU 8 GiB", "GPU 16 GiB", "GPU 24 GiB"}
    assert all(m["licence"] and m["memory_bytes"] for m in listed["models"])
    shown = ok("recommend")
    assert "codespec models add" in shown or listed["recommended"] is None
    assert all(entry.name in shown for entry in catalogue.ENTRIES), "whole names, to be typed"


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
    assert json.loads(ok("recommend", "--json"))["machine"].startswith("CPU")
    assert "its GPU is left out" in ok("recommend")
    monkeypatch.setattr("codespec.backends.llama.backend.gpu_backend", lambda: "cuda")
    assert json.loads(ok("recommend", "--json"))["machine"] == "GPU 24 GiB"
    assert "its GPU is left out" not in ok("recommend")
