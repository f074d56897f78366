"""Distillation as a user runs it: killed, resumed, registered, and used without being named."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import psutil
import pytest
import torch
from click.testing import CliRunner

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.cli import main
from codespec.config import IndexSettings, Settings
from codespec.distill.job import DistillJob, Report
from codespec.distill.plan import DistillPlan, StoppedError
from codespec.distill.workspace import Workspace
from codespec.drafters import combined
from codespec.drafters.model_drafter import ModelDrafter
from codespec.engine.loaded_models import Models
from codespec.engine.local import LocalEngine
from codespec.errors import InputError, ModelError
from codespec.models import distilled
from codespec.models.resolve import target_path
from codespec.requests import CompletionRequest
from codespec.train import bpe
from codespec.training import export
from codespec.training.network import Llama, ModelConfig
from tests import training
from tests.distilling import LIBRARY, QUICK, settings, stage_of, workspace
from tests.engines import strict_engine

__all__ = ["workspace"]


def complete(engine: LocalEngine, workspace: Path, drafters: tuple[str, ...]) -> list[object]:
    source = (LIBRARY / "json" / "decoder.py").read_text()
    request = CompletionRequest(
        source[:3000],
        source[3200:],
        path=str(workspace / "decoder.py"),
        workspace=str(workspace),
        max_tokens=24,
        drafters=drafters,
    )
    made = engine.generate(request)
    return [made.tokens, made.trace.n_drafted]


class Child:
    """`codespec distill` in a process of its own, to be killed."""

    def __init__(self, workspace: Path) -> None:
        command = [sys.executable, "-m", "codespec", "distill", "--workspace", str(workspace)]
        command += ["--positions", "2000", "--tokens", "1000000", "--checkpoint-seconds", "0"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill_when(self, reached: Callable[[], bool]) -> None:
        self.wait(reached)
        self._process.kill()
        self._process.wait()

    def wait(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not reached():
            assert self._process.poll() is None, "it ended by itself"
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_killed_stopped_and_resumed(workspace: Path) -> None:
    """Each checkpoint survives; nothing asked of the target is asked again."""
    job = DistillJob(settings(), workspace)
    lessons, checkpoint = job.work / "lessons", job.work / "checkpoint.pt"
    assert job.status() is None
    child = Child(workspace)
    child.kill_when(lambda: len(list(lessons.glob("*.npz"))) >= 2)
    assert stage_of(job) == "stopped"
    first = {path.name: path.read_bytes() for path in lessons.glob("*.npz")}

    child = Child(workspace)
    child.wait(checkpoint.exists)
    with pytest.raises(InputError, match="another process"):
        job.run(QUICK)
    with pytest.raises(InputError, match="being distilled"):
        job.forget()
    assert stage_of(job) == "training"
    child.kill_when(lambda: torch.load(checkpoint)["progress"]["step"] >= 1)
    assert all((lessons / name).read_bytes() == content for name, content in first.items())
    n_killed = torch.load(checkpoint)["progress"]["step"]

    reports: list[Report] = []
    spent = torch.load(checkpoint)["progress"]["tokens"]
    record = job.run(DistillPlan(n_tokens=2_000, tokens=spent + 1, n_places=2), reports.append)
    assert not [r for r in reports if r.stage == "asking the target"]
    steps = [r.detail.partition(",")[0] for r in reports if r.stage == "training"]
    assert steps == [f"step {n_killed + 1}"]
    assert stage_of(job) == "done"
    assert not job.ask_to_stop()
    assert (job.folder / record.file).exists()
    assert not lessons.exists()
    assert not checkpoint.exists()


def test_stopped_by_a_signal_it_loses_nothing(workspace: Path) -> None:
    """Ctrl-C or the end of a session: the last step is in the checkpoint."""
    job = DistillJob(settings(), workspace)
    command = [sys.executable, "-m", "codespec", "distill", "--workspace", str(workspace)]
    command += ["--positions", "2000", "--tokens", "1000000", "--checkpoint-seconds", "9999"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def n_steps() -> int:
        status = job.status()
        detail = status.detail if status is not None and status.stage == "training" else ""
        return int(detail.split(",")[0].removeprefix("step ")) if detail else 0

    deadline = time.monotonic() + 120
    while not (seen := n_steps()):
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not (job.work / "checkpoint.pt").exists()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert b"stopped; the same command goes on" in errors
    assert b"Traceback" not in errors
    assert torch.load(job.work / "checkpoint.pt")["progress"]["step"] >= seen


def test_the_draft_of_a_workspace_is_used_there_and_only_there(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = strict_engine(settings())
    plain, _ = complete(engine, workspace, ())
    record = DistillJob(settings(), workspace).run(QUICK)
    assert record.before is not None, "the bundled pair is what it is compared with"
    assert record.n_vocab == engine.info.n_vocab
    at = distilled.draft_folder(distilled.fingerprint(Path(engine.info.path)), str(workspace))
    assert distilled.read(at) == record
    loaded: list[Path] = []
    load = Models.load
    monkeypatch.setattr(
        Models, "load", lambda self, path: (loaded.append(path), load(self, path))[1]
    )

    def register(acceptance: float) -> None:
        after = distilled.DraftFigures(acceptance=acceptance, speed=1.0, n_drafted=9)
        made = msgspec.structs.replace(record, after=after)
        (at / distilled.RECORD).write_bytes(msgspec.json.encode(made))

    register(0.0)
    assert complete(engine, workspace, ("model",))[0] == plain
    assert not loaded, "it does not pay"
    register(1.0)
    assert complete(engine, workspace, ("model",))[0] == plain
    assert loaded == [at / record.file], "found by the running engine"
    complete(engine, tmp_path, ("model",))
    assert len(loaded) == 1, "another folder has none"
    (at / record.file).write_bytes(b"GGUF and then nothing")
    engine.close()
    monkeypatch.undo()
    again = strict_engine(settings())
    assert complete(again, workspace, ("model",))[0] == plain, "a damaged draft is left out"
    again.close()


def test_a_large_vocabulary_gets_a_small_draft_and_the_same_output(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = bpe.train([training.source_text(i) for i in range(20)], training.N_VOCAB)
    torch.manual_seed(0)
    model = Llama(ModelConfig(151_936, 32, 1, 2, 1, 16, 64, 512))
    target = tmp_path / "large.gguf"
    export.write_gguf(target, model.eval(), words, "f32", "large")
    chosen = settings(target=str(target))
    alone = settings(target=str(target), draft="")
    record = DistillJob(alone, workspace).run(
        dataclasses.replace(QUICK, n_tokens=1_000, n_places=1)
    )
    assert record.before is None
    assert record.pays
    assert record.n_vocab < 8_193
    assert record.n_params < 2_400_000
    engine = strict_engine(chosen)
    plain, _ = complete(engine, workspace, ())
    # Whether it pays depends on the machine; here it is to draft.
    monkeypatch.setattr(ModelDrafter, "plan", lambda self, state, n_max: (min(2, n_max), 1.0))
    monkeypatch.setattr(combined, "best_width", lambda probs, *_: (len(probs), 1.0))
    drafted, n_drafted = complete(engine, workspace, ("model",))
    assert drafted == plain
    assert n_drafted, "it drafts, from its part of the vocabulary"
    engine.close()
    file = distilled.draft_folder(distilled.fingerprint(target), str(workspace)) / record.file
    made = load_model(file, vocab_only=True)
    assert made.n_vocab == record.n_vocab
    made.close()
    other = settings(draft=str(file))
    with pytest.raises(ModelError, match="distilled for another target"):
        strict_engine(other)


def test_what_rules_exclude_is_not_learned_from(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("tool.py\n")
    (workspace / "private.py").write_text("secret_plan = 'not to be learned'\n" * 200)
    loaded = load_model(Path(settings().model.target or _bundled()), vocab_only=True)
    words = LlamaTokenizer(loaded)
    source = Workspace(workspace, words, IndexSettings(exclude=("private.py",)))
    names = set(source.held_out)
    text = b"".join(words.decode(d) for d in source.documents)
    assert len(names) + len(source.documents) == 3
    assert b"not to be learned" not in text
    assert b"Not code" not in text
    for name in names:
        assert (workspace / name).read_text().encode() not in text
    assert all(Path(p.path).name in names for p in source.places(20))
    loaded.close()


def test_copies_of_files_kept_aside_are_not_learned_from(workspace: Path) -> None:
    loaded = load_model(_bundled(), vocab_only=True)
    words = LlamaTokenizer(loaded)
    name, text = next(iter(Workspace(workspace, words, IndexSettings()).held_out.items()))
    # Copies of several names, some of which are learned from whatever else is kept aside.
    for i in range(4):
        (workspace / f"build{i}.py").write_text(text.replace("self", f"self{i}", 2))
    source = Workspace(workspace, words, IndexSettings())
    begins = [words.decode(d)[:200] for d in source.documents]
    for held_out in source.held_out.values():
        assert held_out.encode()[:200] not in begins
    assert name
    loaded.close()


def _bundled() -> Path:
    return target_path(Settings().model)


def test_of_a_large_workspace_a_part_is_read(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = LlamaTokenizer(load_model(target_path(settings().model), vocab_only=True))
    for i in range(40):
        (workspace / f"m{i}.py").write_text(training.source_text(i))
    whole = Workspace(workspace, words, IndexSettings())
    n_bytes = sum(path.stat().st_size for path in workspace.glob("*.py"))
    monkeypatch.setattr("codespec.distill.workspace.MOST_BYTES", n_bytes // 2)
    shares: list[float] = []
    half = Workspace(workspace, words, IndexSettings(), shares.append)
    assert len(half.learned) < 0.8 * len(whole.learned)
    assert set(half.held_out) <= set(whole.held_out)
    assert shares == sorted(shares)
    assert shares[-1] > 0.9
    (workspace / "one_more.py").write_text("x = 1\n")
    assert {*half.learned} <= {*Workspace(workspace, words, IndexSettings()).learned}, "it goes on"


def test_asked_to_stop_while_it_reads_it_stops(workspace: Path) -> None:
    job = DistillJob(settings(), workspace)
    seen: list[Report] = []

    def stop(report: Report) -> None:
        seen.append(report)
        job.ask_to_stop()

    with pytest.raises(StoppedError):
        job.run(QUICK, stop)
    assert {report.stage for report in seen} == {"reading", "stopped"}


def test_too_little_to_learn_from(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    job = DistillJob(settings(), tmp_path)
    with pytest.raises(InputError, match="too little to learn from"):
        job.run(QUICK)
    status = job.status()
    assert status is not None
    assert status.stage == "failed"
    assert "too little to learn from" in status.detail, "the reason, for whoever was not there"
    args = ["distill", "--workspace", str(tmp_path)]
    assert "too little to learn from" in CliRunner().invoke(main, [*args, "--status"]).stdout
    assert CliRunner().invoke(main, [*args, "--forget"]).stdout == "forgotten\n"
    assert CliRunner().invoke(main, [*args, "--forget"]).stdout == "there was none\n"
    assert job.status() is None


def test_who_only_asks_needs_no_pytorch(tmp_path: Path) -> None:
    without = "import sys; sys.modules['torch'] = sys.modules['gguf'] = None; "
    start = [sys.executable, "-c", f"{without}from codespec.cli import main; main()", "distill"]

    def says(*options: str) -> str:
        command = [*start, "--workspace", str(tmp_path), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "nothing was distilled" in says("--status")
    assert "was not running" in says("--stop")
    assert "there was none" in says("--forget")
    assert "pip install 'codespec[train]'" in says()


def test_a_device_that_is_not_here(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said at once, not when the target has been asked for a quarter of an hour."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    reports: list[Report] = []
    with pytest.raises(InputError, match="no CUDA device"):
        DistillJob(settings(), workspace).run(
            dataclasses.replace(QUICK, device="cuda"), reports.append
        )
    assert [r.stage for r in reports] == ["failed"]


def test_too_little_memory(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Little:
        available = 300_000_000

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    with pytest.raises(InputError, match="GB are free"):
        DistillJob(settings(), workspace).run(QUICK)


def test_the_workspace_may_change_but_nothing_may_be_left_of_what_is_gone(workspace: Path) -> None:
    job = DistillJob(settings(), workspace)

    def stop_in_training(report: Report, reports: list[Report]) -> None:
        reports.append(report)
        if report.stage == "training":
            args = ["distill", "--workspace", str(workspace), "--stop", "--json"]
            assert json.loads(CliRunner().invoke(main, args).stdout) == {"stopping": True}

    def stages_until_training() -> tuple[bool, str]:
        """(True if the target was asked, first step of training)."""
        reports: list[Report] = []
        with pytest.raises(StoppedError):
            job.run(QUICK, partial(stop_in_training, reports=reports))
        steps = [r.detail.split(",")[0] for r in reports if r.stage == "training"]
        return any(r.stage == "asking the target" for r in reports), steps[0]

    assert stages_until_training() == (True, "step 1")
    learned = json.loads((job.work / "job.json").read_text())["learned"]
    for name in learned:
        with (workspace / name).open("a") as file:
            file.write("\n\ndef changed():\n    return 1\n")
    assert stages_until_training() == (False, "step 2")
    (workspace / ".gitignore").write_text(learned[0])
    assert stages_until_training() == (True, "step 1")


def test_stopped_while_it_measures(workspace: Path) -> None:
    """Nothing is trained again; a draft model that was not measured is not left behind."""
    job = DistillJob(settings(), workspace)

    def stop(report: Report) -> None:
        if report.stage == "measuring":
            assert job.ask_to_stop()

    for _ in range(2):
        with pytest.raises(StoppedError):
            job.run(QUICK, stop)
        assert stage_of(job) == "stopped"
        assert len(list(job.folder.glob("draft-*.gguf"))) == 1
    reports: list[Report] = []
    record = job.run(QUICK, reports.append)
    assert not [r for r in reports if r.stage in ("asking the target", "training")]
    assert [r.detail for r in reports if r.stage == "measuring"] == [
        f"{i} of {QUICK.n_places} places" for i in range(QUICK.n_places)
    ]
    assert [path.name for path in job.folder.glob("draft-*.gguf")] == [record.file]


def test_running_out_of_sight(workspace: Path) -> None:
    command = [sys.executable, "-m", "codespec", "distill", "--workspace", str(workspace)]
    options = ["--positions", "2000", "--tokens", "6000", "--places", "2", "--background"]
    made = subprocess.run(
        command + options, capture_output=True, check=True, env=os.environ, text=True
    )
    begun, told = made.stdout.splitlines()
    log = Path(begun.partition("log: ")[2])
    _, *asked = shlex.split(told.partition("see how far it is: ")[2])
    named = [sys.executable, "-m", "codespec", *asked]
    command.append("--json")
    # From here on nobody hears of an earlier run, or that this one stopped.
    first = subprocess.run([*command, "--status"], capture_output=True, check=True).stdout
    assert json.loads(first)["stage"] not in ("none", "done", "stopped")
    assert b"nothing" not in subprocess.run(named, capture_output=True, check=True).stdout
    job, deadline = DistillJob(settings(), workspace), time.monotonic() + 120
    while stage_of(job) != "done":
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
    last = subprocess.run([*command, "--status"], capture_output=True, check=True).stdout
    assert json.loads(last)["stage"] == "done"
    assert "% accepted" in log.read_text()
    assert b"% accepted" in subprocess.run(named, capture_output=True, check=True).stdout
    assert "measuring" in log.read_text(), "how far it was, where no terminal shows a bar"
