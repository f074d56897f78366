"""Distillation as a job: one process at a time works at it, others may ask how far it is.

A job's folder lies beside the draft it makes. It holds `progress.json` and what the stages leave.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
import msgspec
import psutil

from codespec.config import Settings
from codespec.distill.plan import DistillPlan, Reporter, Stage, StoppedError, write_json
from codespec.errors import CodespecError, ConfigError, InputError
from codespec.index.walk import as_text
from codespec.models import distilled
from codespec.models.distilled import DraftRecord
from codespec.models.resolve import check_file, target_path
from codespec.system.folders import data_dir, private_files, private_folder

if TYPE_CHECKING:
    from codespec.distill.stages import Distillation

STARTING_S = 60.0
"""Longest time that importing PyTorch takes, in seconds."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A job's progress: share of the stage that is done, 0 to 1, and a line of detail."""

    stage: Stage
    share: float = 0.0
    detail: str = ""
    pid: int = 0
    workspace: str = ""
    target: str = ""


class DistillJob:
    """One target, one workspace. One process at a time works at it.

    Raises: ModelError, InputError, ConfigError.
    """

    def __init__(self, settings: Settings, workspace: Path) -> None:
        self._settings = settings
        self._workspace = workspace
        self._target_path = target_path(settings.model)
        check_file(self._target_path)
        self.folder = distilled.draft_folder(
            distilled.fingerprint(self._target_path), str(workspace)
        )
        self.work = self.folder / "job"

    # What other processes may ask of a job.

    def status(self) -> Report | None:
        """None where nothing was ever begun. A job whose process died is stopped."""
        is_locked = self._is_locked()  # asked first: a job that ends meanwhile says how
        report = self._last_report()
        if report is None:
            return Report(stage="done", share=1.0) if distilled.read(self.folder) else None
        is_running = is_locked or self._is_starting(report)
        if report.stage not in ("done", "failed") and not is_running:
            return msgspec.structs.replace(report, stage="stopped", pid=0)
        return report

    def ask_to_stop(self) -> bool:
        """True if there was a process to ask; it ends within a pass of the target or a step."""
        if not self._is_running():
            return False
        (self.work / "stop").touch(mode=0o600)
        return True

    def check_idle(self) -> None:
        """Raises: InputError while a process works at it."""
        if self._is_running():
            raise self._busy()

    def make_folder(self) -> None:
        """Private where it is not there yet: it holds the workspace's text as tokens.

        Raises: ConfigError where nothing can be written.
        """
        data_dir()
        for folder in (self.folder.parent, self.folder, self.work):
            private_folder(folder)

    def begun_by(self, pid: int) -> None:
        """A process was started to work at it: whoever asks now is not told of what was before."""
        (self.work / "stop").unlink(missing_ok=True)
        write_json(self.work / "progress.json", self._report("reading", pid=pid))

    def forget(self) -> bool:
        """Deletes the draft model and what its job left; True if there was anything.

        Raises: InputError while a process works at it.
        """
        if self._is_running():
            raise InputError(
                f"{self._workspace} is being distilled",
                "Stop it first: run the same command with --stop instead of --forget.",
            )
        is_there = self.folder.is_dir()
        if is_there:
            shutil.rmtree(self.folder)
        return is_there

    def _last_report(self) -> Report | None:
        try:
            return msgspec.json.decode((self.work / "progress.json").read_bytes(), type=Report)
        except (OSError, msgspec.DecodeError):
            return None

    def _is_running(self) -> bool:
        return self._is_starting(self._last_report()) or self._is_locked()

    def _is_locked(self) -> bool:
        if not self.work.is_dir():
            return False
        lock = self._lock()
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            return True
        lock.release()
        return False

    def _is_starting(self, report: Report | None) -> bool:
        """True while its process has yet to come to the point where it takes the lock."""
        if report is None or report.stage != "reading" or not psutil.pid_exists(report.pid):
            return False
        return time.time() - (self.work / "progress.json").stat().st_mtime < STARTING_S

    def _was_begun(self) -> bool:
        """True if this process is the one that `begun_by` told of."""
        report = self._last_report()
        return report is not None and (report.stage, report.pid) == ("reading", os.getpid())

    def _busy(self) -> InputError:
        return InputError(
            f"{self._workspace} is being distilled by another process",
            "Run the same command with --status to see how far it is, or with --stop.",
        )

    def _report(
        self, stage: Stage, share: float = 0.0, detail: str = "", *, pid: int | None = None
    ) -> Report:
        return Report(
            stage=stage,
            share=share,
            detail=as_text(detail),
            pid=os.getpid() if pid is None else pid,
            workspace=as_text(os.path.realpath(self._workspace)),
            target=as_text(self._target_path),
        )

    def _lock(self) -> filelock.FileLock:
        return filelock.FileLock(self.work / "lock", mode=0o600)

    # The work itself.

    def run(
        self, plan: DistillPlan, on_report: Callable[[Report], None] = lambda _: None
    ) -> DraftRecord:
        """Goes on where an earlier run stopped.

        Raises: StoppedError; InputError when another process is at it, the workspace holds too
        little, or the machine has too little memory; ConfigError without PyTorch; ModelError.
        """
        self.make_folder()
        try:
            # Whoever asks how far it is holds the lock for a moment.
            with self._lock().acquire(timeout=1.0), private_files():
                if not self._was_begun():  # else it may have been asked to stop since
                    (self.work / "stop").unlink(missing_ok=True)
                report = self._reporter(on_report)
                try:
                    return _distillation()(
                        self._settings,
                        self._workspace,
                        self._target_path,
                        self.folder,
                        self.work,
                        plan,
                        report,
                    ).run()
                except StoppedError:
                    raise
                except Exception as e:
                    # Whoever started it in the background asks for the reason later.
                    reason = e.message if isinstance(e, CodespecError) else str(e)
                    with contextlib.suppress(OSError):  # the reason may be a full disk
                        report("failed", 0.0, reason or type(e).__name__)
                    raise
        except filelock.Timeout:
            raise self._busy() from None

    def _reporter(self, on_report: Callable[[Report], None]) -> Reporter:
        written = 0.0

        def report(stage: Stage, share: float, detail: str) -> None:
            nonlocal written
            made = self._report(stage, share, detail)
            on_report(made)
            now = time.monotonic()
            if now - written > 1.0 or stage in ("done", "stopped", "failed"):
                written = now
                write_json(self.work / "progress.json", made)

        return report


def _distillation() -> type[Distillation]:
    """Raises: ConfigError where PyTorch cannot be imported."""
    try:
        from codespec.distill.stages import Distillation
    except (ImportError, OSError) as e:
        raise ConfigError(
            f"distilling needs PyTorch, which cannot be imported here: {e}",
            "Install it again: pip install --force-reinstall 'codespec[train]'",
        ) from None
    return Distillation
