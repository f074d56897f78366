"""A distillation from start to registered draft model; what is done is not done again.

A job's folder holds `job.json` (what it is about), `lessons/`, `checkpoint.pt` and `progress.json`.
It lies beside the draft it makes. Lessons and checkpoint are written every CHECKPOINT_SECONDS: that
is what a killed job loses at most.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import filelock
import msgspec
import psutil
import torch

from codespec.backends.llama import LlamaTarget, LlamaTokenizer, LoadedModel, load_model
from codespec.config import Settings
from codespec.context.build import Window
from codespec.drafters.measure import measure
from codespec.errors import CodespecError, InputError, ModelError
from codespec.models import drafts
from codespec.models.drafts import DraftRecord, Measured
from codespec.models.registry import draft_path, target_path
from codespec.train import export
from codespec.train.distill import vocabulary as vocabularies
from codespec.train.distill.acceptance import N_DRAFT, Contest, contestants, opened
from codespec.train.distill.lessons import Lessons, ask
from codespec.train.distill.student import CHECKPOINT_SECONDS, Progress, Student
from codespec.train.distill.teacher import Teacher
from codespec.train.distill.vocabulary import DraftVocabulary
from codespec.train.distill.workspace import Prompts, Workspace
from codespec.train.model import Llama
from codespec.train.train import Budget

N_PLACES = 60
# Resident memory beside the target: torch and the libraries, a micro-batch's activations, and the
# draft model with its optimisers and gradients for each thread.
BASE_BYTES = 700_000_000
BYTES_PER_LESSON_TOKEN = 120


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to ask of the target and how long to train. minutes: most for each of the two."""

    n_tokens: int = 300_000
    minutes: float = 15.0
    tokens: int | None = None
    n_places: int = N_PLACES
    n_threads: int = 1
    device: str = "cpu"
    seed: int = 0
    from_text: bool = False
    checkpoint_s: float = CHECKPOINT_SECONDS

    @property
    def budget(self) -> Budget:
        return Budget(tokens=self.tokens) if self.tokens else Budget(minutes=self.minutes)


Stage = Literal[
    "reading", "asking the target", "training", "measuring", "done", "stopped", "failed"
]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job stands: share of the stage that is done, 0 to 1, and a line of detail."""

    stage: Stage
    share: float = 0.0
    detail: str = ""
    pid: int = 0
    workspace: str = ""
    target: str = ""


class _About(msgspec.Struct, frozen=True):
    """What lessons and checkpoint are worth something for."""

    text: str
    seed: int
    from_text: bool
    version: int = 1


class StoppedError(Exception):
    """Somebody asked the job to stop; what it did is kept."""


class Job:
    """One target, one workspace. One process at a time works at it.

    Raises: ModelError, InputError, ConfigError.
    """

    def __init__(self, settings: Settings, workspace: Path) -> None:
        self._settings = settings
        self._workspace = workspace
        self._target_path = target_path(settings.model)
        if not self._target_path.is_file():
            raise ModelError(f"{self._target_path}: no such model file", "Give a .gguf file.")
        self.folder = drafts.folder(drafts.fingerprint(self._target_path), str(workspace))
        self.work = self.folder / "job"

    # What other processes may ask of a job.

    def status(self) -> Report | None:
        """None where nothing was ever begun. A job whose process died is stopped."""
        try:
            report = msgspec.json.decode((self.work / "progress.json").read_bytes(), type=Report)
        except (OSError, msgspec.DecodeError):
            return Report(stage="done", share=1.0) if drafts.read(self.folder) else None
        if report.stage not in ("done", "failed") and not self._is_running():
            return msgspec.structs.replace(report, stage="stopped", pid=0)
        return report

    def ask_to_stop(self) -> bool:
        """Whether there was a process to ask; it ends within a pass of the target or a step."""
        if not self._is_running():
            return False
        (self.work / "stop").touch()
        return True

    def forget(self) -> bool:
        """Deletes the draft model and what its job left; whether there was anything.

        Raises: InputError while a process works at it.
        """
        if self._is_running():
            raise InputError(
                f"{self._workspace} is being distilled", "First: codespec distill --stop."
            )
        is_there = self.folder.is_dir()
        if is_there:
            shutil.rmtree(self.folder)
        return is_there

    def _is_running(self) -> bool:
        if not self.work.is_dir():
            return False
        lock = self._lock()
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            return True
        lock.release()
        return False

    def _lock(self) -> filelock.FileLock:
        return filelock.FileLock(self.work / "lock")

    # The work itself.

    def run(self, plan: Plan, on_report: Callable[[Report], None] = lambda _: None) -> DraftRecord:
        """Goes on where an earlier run stopped.

        Raises: StoppedError; InputError when another process is at it, the workspace holds too
        little, or the machine has too little memory.
        """
        self.work.mkdir(parents=True, exist_ok=True)
        try:
            with self._lock().acquire(blocking=False):
                (self.work / "stop").unlink(missing_ok=True)
                report = self._reporter(on_report)
                try:
                    return self._run(plan, report)
                except CodespecError as e:
                    # Whoever started it in the background asks for the reason later.
                    report("failed", detail=e.message)
                    raise
        except filelock.Timeout:
            raise InputError(
                f"{self._workspace} is being distilled by another process",
                "See: codespec distill --status, or --stop.",
            ) from None

    def _run(self, plan: Plan, report: Callable[..., None]) -> DraftRecord:
        check_device(plan.device)
        check_memory(self._target_path, plan)
        report("reading")
        with opened(self._target_path, self._settings, plan.n_threads) as (loaded, target):
            tokenizer = LlamaTokenizer(loaded)
            source = Workspace(self._workspace, tokenizer, self._settings.index)
            self._fit(_About(source.digest(), plan.seed, plan.from_text))
            teacher = Teacher(target)
            lessons = Lessons(self.work / "lessons")
            prompts = Prompts(source, tokenizer, target.info)
            self._gather(teacher, prompts, lessons, plan, report)
            vocabulary = vocabularies.choose(target.info, lessons.counts(target.info.n_vocab))
            student = Student(
                vocabulary,
                _start(target.info.tokenizer_hash),
                self.work / "checkpoint.pt",
                device=plan.device,
                n_threads=plan.n_threads,
                seed=plan.seed,
            )
            self._train(student, lessons, plan, report)
            made = self._export(student.model, vocabulary, loaded)
            before, after = self._measure(made, loaded, target, tokenizer, source, plan, report)
        record = DraftRecord(
            file=made.name,
            target=loaded.info.name,
            target_path=str(self._target_path),
            workspace=os.path.realpath(self._workspace),
            n_params=student.model.config.n_params,
            n_vocab=vocabulary.n_draft,
            n_places=plan.n_places,
            n_draft=N_DRAFT,
            before=before,
            after=after,
            created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )
        _write(self.folder / drafts.RECORD, record)
        self._clean()
        report("done", 1.0)
        for name in ("lessons", "checkpoint.pt", "job.json"):
            _remove(self.work / name)
        return record

    def _clean(self) -> None:
        """Deletes draft models but the one that is registered."""
        record = drafts.read(self.folder)
        for old in self.folder.glob("draft-*.gguf"):
            if record is None or old.name != record.file:
                old.unlink(missing_ok=True)

    def _fit(self, about: _About) -> None:
        """Drops the work of a job about something else."""
        path = self.work / "job.json"
        try:
            same = msgspec.json.decode(path.read_bytes(), type=_About) == about
        except (OSError, msgspec.DecodeError):
            same = False
        if not same:
            for name in ("lessons", "checkpoint.pt"):
                _remove(self.work / name)
            _write(path, about)

    def _gather(
        self,
        teacher: Teacher,
        prompts: Prompts,
        lessons: Lessons,
        plan: Plan,
        report: Callable[..., None],
    ) -> None:
        if (self.work / "checkpoint.pt").exists():
            return  # the vocabulary was chosen from the lessons there were
        started = saved = time.monotonic()
        answers = ask(teacher, prompts, plan.seed, len(lessons.taught), teacher.info.n_ctx)
        n_tokens = lessons.n_tokens
        while n_tokens < plan.n_tokens:
            now = time.monotonic()
            if lessons.taught and now - started > plan.minutes * 60:
                break
            if now - saved > plan.checkpoint_s:
                saved = now
                lessons.save()
            if self._should_stop():
                lessons.save()
                report("stopped")
                raise StoppedError
            which, taught = next(answers)
            lessons.add(which, taught)
            n_tokens += len(taught.tokens)
            share = max(n_tokens / plan.n_tokens, (now - started) / (plan.minutes * 60))
            report("asking the target", min(1.0, share), f"{n_tokens:,} tokens")
        lessons.save()

    def _train(
        self, student: Student, lessons: Lessons, plan: Plan, report: Callable[..., None]
    ) -> None:
        stopped = False

        def on_step(progress: Progress, share: float) -> bool:
            nonlocal stopped
            report("training", share, f"step {progress.step}, loss {progress.loss:.3f}")
            stopped = self._should_stop()
            return stopped

        student.run(
            lessons, plan.budget, on_step, from_text=plan.from_text, checkpoint_s=plan.checkpoint_s
        )
        if stopped:
            report("stopped")
            raise StoppedError

    def _export(self, model: Llama, vocabulary: DraftVocabulary, target: LoadedModel) -> Path:
        """Named by its time, so that a running engine sees another file, not another content."""
        self._clean()
        path = self.folder / f"draft-{time.time_ns():x}.gguf"
        texts = [] if vocabulary.ids is None else target.token_texts()
        export.write_model(
            path,
            model.cpu(),
            "q8_0",
            "distilled draft",
            lambda writer: vocabularies.add_to(
                writer, vocabulary, self._target_path, texts, target.info
            ),
        )
        return path

    def _measure(
        self,
        made: Path,
        loaded: LoadedModel,
        target: LlamaTarget,
        tokenizer: LlamaTokenizer,
        source: Workspace,
        plan: Plan,
        report: Callable[..., None],
    ) -> tuple[Measured | None, Measured]:
        """(the draft used so far, the new one)."""

        def on_place(done: int, total: int) -> None:
            report("measuring", done / total, f"{done} of {total} places")
            if self._should_stop():
                report("stopped")
                raise StoppedError

        completion = self._settings.completion
        window = Window(completion.n_prefix_tokens, completion.n_suffix_tokens)
        places = source.places(plan.n_places, plan.seed)
        contest = Contest(target, measure(target), tokenizer, places, window)
        pair = draft_path(self._settings.model)
        files = [made] if pair is None else [pair, made]
        measured: list[Measured] = []
        with contestants(files, loaded, self._settings, plan.n_threads) as those:
            measured = contest.run(those, on_place)
        return (measured[0] if pair else None), measured[-1]

    def _reporter(self, on_report: Callable[[Report], None]) -> Callable[..., None]:
        written = 0.0

        def report(stage: Stage, share: float = 0.0, detail: str = "") -> None:
            nonlocal written
            made = Report(
                stage=stage,
                share=share,
                detail=detail,
                pid=os.getpid(),
                workspace=os.path.realpath(self._workspace),
                target=str(self._target_path),
            )
            on_report(made)
            now = time.monotonic()
            if now - written > 1.0 or stage in ("done", "stopped", "failed"):
                written = now
                _write(self.work / "progress.json", made)

        return report

    def _should_stop(self) -> bool:
        return (self.work / "stop").exists()


def check_device(device: str) -> None:
    """Raises: InputError for one to train on that is not here."""
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "there is no CUDA device here that PyTorch can use",
            "Train on the CPU: leave out --device.",
        )


def check_memory(target: Path, plan: Plan) -> None:
    """Raises: InputError when the machine has less memory free than the job needs."""
    need = BASE_BYTES + int(1.2 * target.stat().st_size) + BYTES_PER_LESSON_TOKEN * plan.n_tokens
    free = psutil.virtual_memory().available
    if need > free:
        raise InputError(
            f"distilling from {target.name} needs about {need / 1e9:.1f} GB of memory, "
            f"{free / 1e9:.1f} GB are free",
            "Close other programs, or take a smaller or more strongly quantised target.",
        )


def _start(tokenizer_hash: str) -> Llama | None:
    """The bundled draft model where it has this tokenizer."""
    pair = draft_path(Settings().model)
    if pair is None:
        return None
    loaded = load_model(pair, vocab_only=True)
    same = loaded.info.tokenizer_hash == tokenizer_hash
    loaded.close()
    return export.read_gguf(pair)[0].train() if same else None


def _write(path: Path, value: object) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(msgspec.json.encode(value))
    os.replace(temporary, path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
