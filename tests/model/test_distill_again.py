"""Distillations that went wrong, and those that are begun beside or after another."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from codespec.cli import main
from codespec.distill.job import DistillJob, Report
from codespec.distill.lessons import SHAPES
from codespec.distill.plan import DistillPlan, StoppedError, write_json
from codespec.distill.stages import MOST_READINGS
from codespec.errors import InputError, ModelError
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.system.processes import TERMINATION_SIGNALS
from tests.distilling import QUICK, settings, stage_of, workspace

__all__ = ["workspace"]


def test_what_is_damaged_is_done_again(workspace: Path) -> None:
    """A checkpoint cut off by a loss of power, or one of another shape."""
    job = DistillJob(settings(), workspace)
    checkpoint = job.work / "checkpoint.pt"

    reports: list[Report] = []

    def stop_in_training(report: Report) -> None:
        reports.append(report)
        if report.stage == "training":
            job.ask_to_stop()

    with pytest.raises(StoppedError):
        job.run(dataclasses.replace(QUICK, tokens=1_000_000), stop_in_training)
    whole = checkpoint.read_bytes()
    content = torch.load(checkpoint)
    content["model"]["norm.weight"] = torch.zeros(1)
    torch.save(content, checkpoint)
    for damaged in (checkpoint.read_bytes(), whole[:100_000], b""):
        checkpoint.write_bytes(damaged)
        reports.clear()
        with pytest.raises(StoppedError):
            job.run(QUICK, stop_in_training)
        assert not [r for r in reports if r.stage == "asking the target"]
        assert next(r.detail for r in reports if r.stage == "training").startswith("step 1,")
    next(iter((job.work / "lessons").glob("*.npz"))).write_bytes(b"")
    reports.clear()
    with pytest.raises(StoppedError):
        job.run(QUICK, stop_in_training)
    assert [r for r in reports if r.stage == "asking the target"]


def test_why_it_failed_can_be_asked_later(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    job = DistillJob(settings(), workspace)
    with pytest.raises(OSError, match="No space left"):
        job.run(QUICK)
    status = job.status()
    assert status is not None
    assert (status.stage, "No space left" in status.detail) == ("failed", True)


@pytest.mark.skipif(sys.platform != "linux", reason="where a name may be any bytes")
def test_a_target_that_llama_cpp_gives_up_on(workspace: Path, tmp_path: Path) -> None:
    raw, key = bundled(BUNDLED_TARGET).read_bytes(), b"llama.block_count" + bytes([4, 0, 0, 0])
    at = raw.index(key) + len(key)
    target = tmp_path / "target.gguf"
    target.write_bytes(raw[:at] + bytes(4) + raw[at + 4 :])
    job = DistillJob(settings(target=str(target)), workspace)
    with pytest.raises(ModelError, match="gave up"):
        job.run(QUICK)
    status = job.status()
    assert status is not None
    assert (status.stage, "llama.cpp gave up" in status.detail) == ("failed", True)


@pytest.mark.parametrize("error", ["ImportError", "OSError"])
def test_a_pytorch_that_cannot_be_imported(workspace: Path, tmp_path: Path, error: str) -> None:
    (tmp_path / "torch.py").write_text(f"raise {error}('libcudnn.so.9: cannot open')\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "codespec", "distill", "--workspace", str(workspace)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "PyTorch, which cannot be imported here: libcudnn.so.9: cannot open" in done.stderr
    assert "--force-reinstall" in done.stderr
    status = DistillJob(settings(), workspace).status()
    assert status is not None
    assert (status.stage, "libcudnn" in status.detail) == ("failed", True)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), *((number, 1) for number in TERMINATION_SIGNALS)]
)
def test_how_it_ends_says_by_what(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    def run(*_: object) -> None:
        os.kill(os.getpid(), number)
        raise StoppedError

    monkeypatch.setattr(DistillJob, "run", run)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    result = CliRunner().invoke(main, ["distill", "--workspace", str(workspace)])
    assert (result.exit_code, "the same command goes on" in result.output) == (code, True)


def test_it_says_that_a_folder_of_a_repository_is_not_all_of_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / ".git").mkdir()
    (workspace / "part").mkdir()
    monkeypatch.chdir(workspace / "part")
    said = CliRunner().invoke(main, ["distill", "--status"]).stderr
    assert f"{workspace / 'part'} alone" in said
    assert f"--workspace {workspace}" in said
    monkeypatch.chdir(workspace)
    assert CliRunner().invoke(main, ["distill", "--status"]).stderr == ""


def test_what_is_left_of_a_workspace_that_is_gone_can_be_forgotten(workspace: Path) -> None:
    job = DistillJob(settings(), workspace)
    job.make_folder()
    (job.work / "log.txt").write_text("Killed\n")
    write_json(job.work / "progress.json", Report(stage="training"))
    shutil.rmtree(workspace)
    command = ["distill", "--workspace", str(workspace)]
    asked = CliRunner().invoke(main, [*command, "--status"]).stdout
    assert asked.startswith("stopped")
    assert f"log: {job.work / 'log.txt'}" in asked
    assert CliRunner().invoke(main, [*command, "--forget"]).stdout == "forgotten\n"
    assert not job.folder.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="without modes of files")
def test_what_it_learns_from_is_for_nobody_elses_eyes(workspace: Path) -> None:
    job = DistillJob(settings(), workspace)
    job.make_folder()
    modes = [stat.S_IMODE(at.stat().st_mode) for at in (job.folder.parent, job.folder, job.work)]
    assert modes == [0o700] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="where a name may be any bytes")
def test_a_workspace_whose_name_is_no_text(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"w\xe9")
    root.mkdir()
    job = DistillJob(settings(), root)
    with pytest.raises(InputError, match="too little"):
        job.run(QUICK)
    status = job.status()
    assert status is not None
    assert status.workspace == str(tmp_path / "w\N{REPLACEMENT CHARACTER}")


def test_a_second_one_out_of_sight_is_refused_at_once(workspace: Path) -> None:
    job = DistillJob(settings(), workspace)
    args = ["distill", "--workspace", str(workspace), "--background"]
    seen: list[str] = []

    def on_report(report: Report) -> None:
        if report.stage == "asking the target" and not seen:
            seen.append(CliRunner().invoke(main, args).output)
            job.ask_to_stop()

    with pytest.raises(StoppedError):
        job.run(QUICK, on_report)
    assert "being distilled by another process" in seen[0]


def test_a_look_at_how_far_it_is_does_not_keep_it_from_starting(workspace: Path) -> None:
    job = DistillJob(settings(), workspace)
    job.work.mkdir(parents=True)
    is_held = threading.Event()

    def look() -> None:
        with job._lock():
            is_held.set()
            time.sleep(0.3)

    looking = threading.Thread(target=look)
    looking.start()
    is_held.wait()

    def stop(_report: Report) -> None:
        job.ask_to_stop()

    with pytest.raises(StoppedError):
        job.run(QUICK, stop)
    looking.join()


def test_one_that_is_starting_is_not_the_one_before(workspace: Path) -> None:
    """Until its process has imported PyTorch and takes the lock."""
    job = DistillJob(settings(), workspace)

    def stop(_report: Report) -> None:
        job.ask_to_stop()

    with pytest.raises(StoppedError):
        job.run(QUICK, stop)
    assert stage_of(job) == "stopped"
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    job.begun_by(other.pid)
    assert stage_of(job) == "reading"
    for refused in (job.check_idle, job.forget):
        with pytest.raises(InputError, match="being distilled"):
            refused()
    assert job.ask_to_stop()
    other.communicate()
    # What was asked for meanwhile is heard by the process it was asked of.
    job.begun_by(os.getpid())
    assert job.ask_to_stop()
    with pytest.raises(StoppedError):
        job.run(QUICK)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    job.begun_by(ended.pid)
    assert stage_of(job) == "stopped"


def test_one_that_ends_while_it_is_asked_for_is_not_stopped(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = DistillJob(settings(), workspace)
    job.make_folder()
    write_json(job.work / "progress.json", Report(stage="measuring", share=0.9))

    def ends(_: DistillJob) -> bool:
        write_json(job.work / "progress.json", Report(stage="done", share=1.0))
        return False

    monkeypatch.setattr(DistillJob, "_is_locked", ends)
    status = job.status()
    assert status is not None
    assert status.stage == "done"


def test_it_ends_where_more_reading_does_not_help(workspace: Path) -> None:
    """Long before the time is up, where a slow target has said little."""
    reports: list[Report] = []
    DistillJob(settings(), workspace).run(
        DistillPlan(n_tokens=1_000, minutes=60, n_places=1), reports.append
    )
    steps = [int(r.detail.split()[1].rstrip(",")) for r in reports if r.stage == "training"]
    assert max(steps) == MOST_READINGS // SHAPES[1].n_rows, "one lesson, of the longer kind"
