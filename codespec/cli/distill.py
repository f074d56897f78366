"""`codespec distill`"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
import msgspec
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from codespec.cli import (
    INTERRUPTED,
    FiniteRange,
    check_folder,
    json_option,
    model_settings,
    print_json,
    printable,
)
from codespec.config import load_settings
from codespec.documents.from_disk import workspace_of
from codespec.errors import ConfigError
from codespec.models import distilled
from codespec.models.distilled import DraftRecord
from codespec.system.folders import private_opener
from codespec.system.processes import NICENESS, TERMINATION_SIGNALS, module_command
from codespec.system.progress import BarOrLines

if TYPE_CHECKING:
    from codespec.distill.job import DistillJob, Report
    from codespec.distill.plan import DistillPlan


@click.command()
@click.option(
    "--target", metavar="MODEL", help="The model to draft for, a file or a name (default: yours)."
)
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder to learn from (default: this one).",
)
@click.option(
    "--positions",
    type=click.IntRange(1_000),
    default=300_000,
    show_default=True,
    help="Tokens to ask the target about.",
)
@click.option(
    "--minutes",
    type=FiniteRange(min=0, min_open=True),
    default=15.0,
    show_default=True,
    help="Longest time to ask the target, and then to train.",
)
@click.option(
    "--tokens",
    type=click.IntRange(1),
    help="Train on this many tokens, whatever time that takes: with the same result each time.",
)
@click.option(
    "--threads", type=click.IntRange(1, 512), help="CPU threads (default: half the cores)."
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Where to train.",
)
@click.option("--places", type=click.IntRange(1), default=60, hidden=True)
@click.option("--checkpoint-seconds", type=float, default=30.0, hidden=True)
@click.option(
    "--from-text",
    is_flag=True,
    hidden=True,
    help="To compare with: from text alone.",
)
@click.option("--background", is_flag=True, help="Return at once; see --status.")
@click.option("--status", "ask", flag_value="status", help="How far it is.")
@click.option("--stop", "ask", flag_value="stop", help="Stop it; the next start goes on.")
@click.option("--forget", "ask", flag_value="forget", help="Delete the draft model.")
@json_option
def command(
    target: str | None,
    workspace: Path,
    positions: int,
    minutes: float,
    tokens: int | None,
    threads: int | None,
    device: str,
    places: int,
    checkpoint_seconds: float,
    from_text: bool,
    background: bool,
    ask: str | None,
    as_json: bool,
) -> None:
    """Make a draft model for one target and one workspace.

    The bundled draft model, in the target's tokens, learns from the target itself what that would
    write in this workspace's files, and from then on drafts there by itself where that pays. What
    rules or secrets exclude is not read. Stop it at any time (Ctrl-C, or --stop): the next start
    goes on.
    Needs PyTorch: pip install 'codespec[train]'.
    """
    if not ask and (find_spec("torch") is None or find_spec("gguf") is None):
        raise ConfigError(
            "distilling needs PyTorch, which is not installed", "pip install 'codespec[train]'"
        )
    from codespec.distill.job import DistillJob
    from codespec.distill.plan import DistillPlan

    if not ask:  # of a workspace that is gone a draft model may be left
        check_folder(workspace)
    job = DistillJob(load_settings(model_settings(target, None)), workspace)
    if ask in (None, "status"):
        _tell_of_more(workspace)
    if ask == "stop":
        asked = job.ask_to_stop()
        if as_json:
            print_json({"stopping": asked})
        else:
            click.echo("stopping; what it did is kept" if asked else "it was not running")
    elif ask == "forget":
        was_there = job.forget()
        if as_json:
            print_json({"forgotten": was_there})
        else:
            click.echo("forgotten" if was_there else "there was none")
    elif ask == "status":
        _show(job, as_json)
    elif background:
        _start(job, as_json)
    else:
        plan = DistillPlan(
            n_tokens=positions,
            minutes=minutes,
            tokens=tokens,
            n_places=places,
            n_threads=threads or max(1, (os.cpu_count() or 1) // 2),
            device=device,
            from_text=from_text,
            checkpoint_s=checkpoint_seconds,
        )
        _run(job, plan, as_json)


def _tell_of_more(workspace: Path) -> None:
    """Tell of the whole repository, if this is a folder within: a draft model belongs to one
    folder, and serves while that one is open."""
    folder = workspace.resolve()
    repository = workspace_of(folder / "file")
    if repository != folder:
        all_of_it = shlex.quote(printable(str(repository)))
        click.echo(
            f"this is about {printable(str(folder))} alone, as a workspace of its own; "
            f"the whole repository: --workspace {all_of_it}",
            err=True,
        )


def _run(job: DistillJob, plan: DistillPlan, as_json: bool) -> None:
    from codespec.distill.plan import StoppedError

    if sys.platform != "win32":
        os.nice(NICENESS)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[detail]}")
    with BarOrLines(*columns, TimeElapsedColumn()) as bar:
        task = bar.add_task("reading", total=1.0, detail="")
        stage = ""

        def show(report: Report) -> None:
            nonlocal stage
            bar.update(task, description=report.stage, completed=report.share, detail=report.detail)
            bar.say(_in_words(report), now=report.stage != stage)
            stage = report.stage

        heard: list[int] = []
        try:
            with _stopped_by_signals(job, heard):
                record = job.run(plan, show)
        except (KeyboardInterrupt, StoppedError):
            bar.stop()
            click.echo("stopped; the same command goes on", err=True)
            sys.exit(INTERRUPTED if signal.SIGINT in heard else 1)
    if as_json:
        print_json(msgspec.to_builtins(record) | {"pays": record.pays})
    else:
        _print(record)


@contextmanager
def _stopped_by_signals(job: DistillJob, heard: list[int]) -> Generator[None, None, None]:
    """Handle Ctrl-C, or the end of the session: the current step is kept first. A second signal
    does not wait for that."""

    def stop(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not job.ask_to_stop():
            raise KeyboardInterrupt

    asked_by = [
        n for n in (signal.SIGINT, *TERMINATION_SIGNALS) if signal.getsignal(n) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, stop) for number in asked_by}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(job: DistillJob, as_json: bool) -> None:
    """Run the same command in a process of its own, which outlives this one."""
    job.make_folder()
    job.check_idle()
    arguments = [argument for argument in sys.argv[1:] if argument != "--background"]
    log = job.work / "log.txt"
    with open(log, "ab", opener=private_opener) as output:
        child = subprocess.Popen(
            module_command("codespec", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    job.begun_by(child.pid)
    if as_json:
        print_json({"pid": child.pid, "log": str(log)})
    else:
        click.echo(f"distilling in the background, process {child.pid}; log: {log}")
        ask = shlex.join(["codespec", *arguments, "--status"])
        click.echo(f"see how far it is: {ask}")


def _show(job: DistillJob, as_json: bool) -> None:
    report, record, log = job.status(), distilled.read(job.folder), job.work / "log.txt"
    if as_json:
        print_json(msgspec.to_builtins(report) if report else {"stage": "none"})
    elif report is None:
        click.echo("nothing was distilled for this target and workspace")
    else:
        click.echo(_in_words(report))
        if report.stage == "done" and record is not None:
            _print(record)
        elif report.stage in ("stopped", "failed") and log.is_file():
            click.echo(f"log: {log}")


def _in_words(report: Report) -> str:
    return f"{report.stage}  {report.share:.0%}  {report.detail}".rstrip()


def _print(record: DraftRecord) -> None:
    click.echo(
        f"draft model of {record.n_params / 1e6:.1f} M parameters, {record.n_vocab:,} tokens, "
        f"for {record.target}"
    )
    click.echo(f"on {record.n_places} places in files kept aside, {record.n_draft} tokens a draft:")
    for name, measured in (("before", record.before), ("now", record.after)):
        if measured is not None:
            click.echo(
                f"  {name:<7} {measured.acceptance:6.1%} accepted, "
                f"{measured.speed:.2f} times the speed of plain decoding"
            )
    if not record.is_current:
        click.echo(f"It is not used: {distilled.OUTDATED}.")
    elif record.pays:
        click.echo(
            "It is the draft model in this workspace from now on, and drafts where that pays."
        )
        if record.after.speed < 1:
            click.echo(
                "With a target as quick as this one that is seldom: what larger ones would gain "
                "says codespec bench drafts."
            )
    else:
        click.echo("It accepts no more than the draft in use, which stays.")
