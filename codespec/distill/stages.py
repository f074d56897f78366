"""The stages of a distillation, from reading to the registered draft model.

What is done is not done again: a job's folder holds `job.json` (what it is about), `lessons/` and
`checkpoint.pt`. Lessons and checkpoint are written every CHECKPOINT_SECONDS: that is what a killed
job loses at most.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import msgspec
import torch

from codespec.backends.base import Model, Target
from codespec.backends.registry import try_out
from codespec.config import Settings
from codespec.context.prompt_window import Window
from codespec.cost.measure import measure
from codespec.distill import vocabulary as vocabularies
from codespec.distill.acceptance import N_DRAFT, Contest, contestants, opened
from codespec.distill.lessons import Lessons, ask
from codespec.distill.plan import DistillPlan, Reporter, StoppedError, write_json
from codespec.distill.start import Start
from codespec.distill.student import Student, TrainingProgress
from codespec.distill.teacher import Teacher
from codespec.distill.vocabulary import DraftVocabulary
from codespec.distill.workspace import Prompts, Workspace
from codespec.engine.draft_models import dearest
from codespec.errors import InputError, ModelError
from codespec.index.walk import as_text
from codespec.models import distilled
from codespec.models.bundled_pair import BUNDLED_DRAFT, bundled
from codespec.models.distilled import DraftFigures, DraftRecord
from codespec.models.hardware import free_memory
from codespec.models.resolve import draft_paths
from codespec.models.split import size_of
from codespec.rules.secrets import VERSION
from codespec.training import export
from codespec.training.budget import TrainingBudget
from codespec.training.network import Llama
from codespec.types import Tokenizer

# Resident memory beside the target: torch and the libraries, a micro-batch's activations, and the
# draft model with its optimisers and gradients for each thread.
_BASE_BYTES = 700_000_000
_BYTES_PER_LESSON_TOKEN = 120

MOST_READINGS = 12
"""Times that a lesson is read. More do not help on files kept aside."""


class _About(msgspec.Struct, frozen=True):
    """Identity of lessons and checkpoint: what they were made of. learned: paths of the files, in
    their order."""

    learned: tuple[str, ...]
    seed: int
    from_text: bool
    version: int = 2
    secrets: int = 0

    def goes_on(self, earlier: _About) -> bool:
        """True if they serve this job, too. People work on what is learned from meanwhile; but of
        a file that is gone, not allowed any more or now kept aside nothing must be left."""
        return (
            (self.seed, self.from_text, self.version, self.secrets)
            == (earlier.seed, earlier.from_text, earlier.version, earlier.secrets)
        ) and set(earlier.learned) <= set(self.learned)


class Distillation:
    """Goes on where an earlier one in the same folder stopped. No other process is to work there.

    folder: the draft's. work: the job's; it ends soon after a file `stop` appears in it.
    """

    def __init__(
        self,
        settings: Settings,
        workspace: Path,
        target: Path,
        folder: Path,
        work: Path,
        plan: DistillPlan,
        report: Reporter,
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._target_path = target
        self._folder = folder
        self._about = work / "job.json"
        self._lessons = work / "lessons"
        self._checkpoint = work / "checkpoint.pt"
        self._stop = work / "stop"
        self._plan = plan
        self._report = report

    def run(self) -> DraftRecord:
        """Raises: StoppedError; InputError for a device that is not here, too little memory or a
        workspace that holds too little; ModelError."""
        plan = self._plan
        _check_device(plan.device)
        _check_memory(self._target_path, plan)
        self._report("reading", 0.0, "")
        try_out(self._target_path)
        with opened(self._target_path, self._settings, plan.n_threads) as (loaded, target):
            tokenizer = loaded.tokenizer
            source = Workspace(self._workspace, tokenizer, self._settings.index, self._on_reading)
            self._begin(_About(source.learned, plan.seed, plan.from_text, secrets=VERSION))
            lessons = Lessons(self._lessons)
            if lessons.is_damaged or not lessons.taught:
                self._checkpoint.unlink(missing_ok=True)
            if not self._checkpoint.exists():  # its vocabulary was chosen from the lessons it had
                self._gather(lessons, Teacher(target), Prompts(source, tokenizer, target.info))
            start = Start(bundled(BUNDLED_DRAFT), target.info, tokenizer)
            counts = lessons.counts(target.info.n_vocab)
            vocabulary = vocabularies.choose(target.info, counts, start.is_known)
            student = self._student(vocabulary, start)
            self._train(student, lessons)
            made = self._export(student.model, vocabulary, loaded)
            before, after = self._measure(made, loaded, target, tokenizer, source)
        record = DraftRecord(
            file=made.name,
            target=loaded.info.name,
            target_path=as_text(self._target_path),
            workspace=as_text(os.path.realpath(self._workspace)),
            n_params=student.model.config.n_params,
            n_vocab=vocabulary.n_draft,
            n_places=plan.n_places,
            n_draft=N_DRAFT,
            before=before,
            after=after,
            secrets=VERSION,
            created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )
        write_json(self._folder / distilled.RECORD, record)
        self._clean()
        self._report("done", 1.0, "")
        self._forget()
        self._about.unlink(missing_ok=True)
        return record

    def _begin(self, about: _About) -> None:
        """Drops the work of a job about something else."""
        try:
            earlier = msgspec.json.decode(self._about.read_bytes(), type=_About)
        except (OSError, msgspec.DecodeError):
            earlier = None
        if earlier is None or not about.goes_on(earlier):
            self._forget()
        write_json(self._about, about)

    def _on_reading(self, share: float) -> None:
        self._report("reading", share, "")
        self._end_if_asked()

    def _forget(self) -> None:
        if self._lessons.exists():
            shutil.rmtree(self._lessons)
        self._checkpoint.unlink(missing_ok=True)

    def _gather(self, lessons: Lessons, teacher: Teacher, prompts: Prompts) -> None:
        plan = self._plan
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
            if self._stop.exists():
                break
            which, taught = next(answers)
            lessons.add(which, taught)
            n_tokens += len(taught.tokens)
            share = max(n_tokens / plan.n_tokens, (now - started) / (plan.minutes * 60))
            self._report("asking the target", min(1.0, share), f"{n_tokens:,} tokens")
        lessons.save()
        self._end_if_asked()

    def _student(self, vocabulary: DraftVocabulary, start: Start) -> Student:
        """The student of the checkpoint; a new one where that is damaged, or of an earlier
        version's model."""
        plan = self._plan
        for _ in range(2):
            try:
                return Student(
                    vocabulary,
                    start.model(vocabulary),
                    self._checkpoint,
                    device=plan.device,
                    n_threads=plan.n_threads,
                    seed=plan.seed,
                )
            except ModelError:
                self._checkpoint.unlink()
        raise AssertionError("without a checkpoint there is nothing to read")

    def _train(self, student: Student, lessons: Lessons) -> None:
        def on_step(progress: TrainingProgress, share: float) -> bool:
            detail = f"step {progress.step}, loss {progress.loss:.3f}"
            self._report("training", share, detail)
            return self._stop.exists()

        plan = self._plan
        most = TrainingBudget(plan.minutes, MOST_READINGS * lessons.n_tokens)
        budget = TrainingBudget(tokens=plan.tokens) if plan.tokens else most
        student.run(
            lessons, budget, on_step, from_text=plan.from_text, checkpoint_s=plan.checkpoint_s
        )
        self._end_if_asked()

    def _export(self, model: Llama, vocabulary: DraftVocabulary, target: Model) -> Path:
        """Named by its time, so that a running engine sees another file, not another content."""
        self._clean()
        path = self._folder / f"draft-{time.time_ns():x}.gguf"
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

    def _clean(self) -> None:
        """Deletes draft models but the one that is registered."""
        record = distilled.read(self._folder)
        for old in self._folder.glob("draft-*.gguf"):
            if record is None or old.name != record.file:
                old.unlink(missing_ok=True)

    def _measure(
        self,
        made: Path,
        loaded: Model,
        target: Target,
        tokenizer: Tokenizer,
        source: Workspace,
    ) -> tuple[DraftFigures | None, DraftFigures]:
        """(the draft used so far, the new one)."""

        def on_place(done: int, total: int) -> None:
            self._report("measuring", done / total, f"{done} of {total} places")
            self._end_if_asked()

        plan, completion = self._plan, self._settings.completion
        window = Window(completion.n_prefix_tokens, completion.n_suffix_tokens)
        places = source.places(plan.n_places, plan.seed)
        cost = measure(target)
        contest = Contest(target, cost, tokenizer, places, window)
        files = [*draft_paths(self._settings.model, loaded.info.file_bytes), made]
        with contestants(files, loaded, self._settings, plan.n_threads) as those:
            *others, new = those
            so_far = [others[dearest(cost, [other.curve for other in others])]] if others else []
            *before, after = contest.run([*so_far, new], on_place)
        return (before[0] if before else None), after

    def _end_if_asked(self) -> None:
        if self._stop.exists():
            self._report("stopped", 0.0, "")
            raise StoppedError


def _check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "there is no CUDA device here that PyTorch can use",
            "Train on the CPU: leave out --device.",
        )


def _check_memory(target: Path, plan: DistillPlan) -> None:
    need = _BASE_BYTES + int(1.2 * size_of(target)) + _BYTES_PER_LESSON_TOKEN * plan.n_tokens
    free = free_memory()
    if need > free:
        raise InputError(
            f"distilling from {target.name} needs about {need / 1e9:.1f} GB of memory, "
            f"{free / 1e9:.1f} GB are free",
            "Close other programs, or take a smaller or more strongly quantised target.",
        )
