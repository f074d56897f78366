"""The replay from the command line: curves by name, progress, the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from codespec.backends.registry import open_vocabulary
from codespec.config import Settings
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.planners import prior
from codespec.engine.local import LocalEngine
from codespec.errors import InputError

from . import writers
from .history import History
from .replay import Replay, usable
from .replay_draft import opened
from .replay_model import ModelReplay
from .writers import People, Recorded

SHIPPED = Path(__file__).with_name("curves.json")


class _Curve(msgspec.Struct):
    """t1_ms: a pass over one token. In units of that, ratio[i]: a pass over n[i] tokens; back: what
    going back to one takes; steady[n]: a pass over n that follows others over n."""

    t1_ms: float
    n: list[int]
    ratio: list[float]
    reads_again: bool = False
    back: float = 0.0
    steady: dict[int, float] = {}


def load_curve(name: str) -> CostCurve:
    """A shipped curve by name, or the one in a JSON file {"t1_ms", "n", "ratio"}.

    Raises: InputError.
    """
    shipped = msgspec.json.decode(SHIPPED.read_bytes(), type=dict[str, _Curve | str])
    found = shipped.get(name)
    if not isinstance(found, _Curve):
        try:
            found = msgspec.json.decode(Path(name).read_bytes(), type=_Curve)
        except FileNotFoundError:
            names = ", ".join(k for k, v in shipped.items() if isinstance(v, _Curve))
            raise InputError(f"{name}: no such curve", f"Shipped: {names}; or a file.") from None
        except (OSError, msgspec.DecodeError) as e:
            why = e.strerror if isinstance(e, OSError) else e
            raise InputError(
                f"{name}: {why}", 'Give {"t1_ms": ..., "n": [...], "ratio": [...]}.'
            ) from e
    try:
        if len(found.n) != len(found.ratio):
            raise ValueError("n and ratio are not equally long")
        points = {n: found.t1_ms * r for n, r in zip(found.n, found.ratio, strict=True)}
        steady = {n: found.t1_ms * r for n, r in found.steady.items()}
        return CostCurve(
            points,
            back_ms=found.t1_ms * found.back,
            steady=steady,
            rolls_back=not found.reads_again,
        )
    except ValueError as e:
        raise InputError(
            f"{name}: {e}", "t1_ms above 0, a ratio above 0 for each n from 1 on."
        ) from e


def run(
    repo: Path,
    vocabulary: Path,
    n_commits: int,
    glob: str,
    curve: str,
    width: int,
    until: str = "HEAD",
    drafts: Sequence[Path] = (),
    recorded: Path | None = None,
) -> list[dict[str, Any]]:
    """One row per configuration, in the tokens of the file `vocabulary`; one more with a draft
    model, see `ReplayDraftModel`. recorded: a file of `record`, whose texts stand in for people's.
    Raises: InputError, ModelError.
    """
    tokenizer = open_vocabulary(vocabulary).tokenizer
    cost = load_curve(curve)
    writer = Recorded(recorded, tokenizer) if recorded is not None else People(tokenizer)
    start = prior(writer.record.n_params) if isinstance(writer, Recorded) else None
    with opened(drafts, tokenizer, cost) as model:
        replay = Replay(repo, tokenizer, cost, glob, width, draft=model, writer=writer, start=start)
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("replaying", total=None)
            replay.run(n_commits, lambda i, n: bar.update(task, completed=i, total=n), until)
    if not replay.n_hunks:
        raise History(repo, glob).nothing()
    return [{**row, "curve": curve, "n_hunks": replay.n_hunks} for row in replay.rows()]


def record(
    repo: Path, settings: Settings, n_commits: int, glob: str, until: str, output: Path
) -> int:
    """Write what a model says in place of the edits, decoded plainly, to a file for `run`; how many
    places there were. Raises: InputError, ModelError, OSError."""
    engine = LocalEngine(settings)
    try:
        commits = History(repo, glob).commits(n_commits, until)
        hunks = [hunk for commit in commits for hunk in usable(commit, engine.tokenizer)]
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("recording", total=len(hunks))
            written = writers.record(engine, hunks, lambda i: bar.update(task, completed=i))
    finally:
        engine.close()
    if not hunks:
        raise History(repo, glob).nothing()
    written.save(output)
    return len(written.texts)


def run_model(
    repo: Path,
    settings: Settings,
    n_commits: int,
    glob: str,
    until: str = "HEAD",
    n_keys: int = 0,
) -> list[dict[str, Any]]:
    """The same edits completed by a real model. n_keys: see `ModelReplay`. Raises: InputError,
    ModelError."""
    replay = ModelReplay(repo, settings, glob, n_keys)
    try:
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("replaying", total=None)
            replay.run(n_commits, lambda i, n: bar.update(task, completed=i, total=n), until)
        if not replay.n_hunks:
            raise History(repo, glob).nothing()
        return replay.rows()
    finally:
        replay.close()


def print_model_rows(rows: list[dict[str, Any]]) -> None:
    first = rows[0]
    table = Table(
        title=f"{first['n_hunks']} completions by {first['model']} on {first['backend']}, "
        f"{first['n_tokens']} tokens; equal texts: {first['equal_texts']:.0%}"
    )
    columns = (
        "",
        "tokens\na pass",
        "drafted\na pass",
        "ms a\ntoken",
        "speed-up",
        "predicted",
        "of the ideal,\nwhole",
    )
    for column in columns:
        # The names of the ways are what two lines may differ in.
        table.add_column(column, justify="right" if column else "left", no_wrap=not column)
    for row in rows:
        table.add_row(
            row["config"],
            f"{row['mat']:.2f}",
            f"{row['drafted_per_pass']:.2f}" if "drafted_per_pass" in row else "",
            f"{row['ms'] / row['n_tokens']:.2f}" if "ms" in row else "",
            f"{row['speedup']:.2f}",
            f"{row['predicted_speedup']:.2f}" if "predicted_speedup" in row else "",
            f"{row['share_of_ideal']:.0%}, {row['share_of_ideal_whole']:.0%}",
        )
    Console(markup=False).print(table)


def print_rows(rows: list[dict[str, Any]]) -> None:
    first = rows[0]
    table = Table(title=f"{first['n_hunks']} hunks, {first['n_tokens']} tokens, {first['curve']}")
    columns = ("", "tokens a pass", "drafted a pass", "speed-up", "of the ideal", "accepted")
    for column in columns:
        # The names of the ways are what two lines may differ in.
        table.add_column(column, justify="right" if column else "left", no_wrap=not column)
    for row in rows:
        share = row["accepted"] / row["n_drafted"] if row["n_drafted"] else 0.0
        table.add_row(
            row["config"],
            f"{row['mat']:.2f}",
            f"{row['drafted_per_pass']:.2f}",
            f"{row['speedup']:.2f}",
            f"{row['share_of_ideal']:.0%}",
            f"{share:.0%}" if row["n_drafted"] else "",
        )
    Console(markup=False).print(table)
    for row in rows:
        if "log_loss" in row:
            _print_calibration(row)


def _print_calibration(row: dict[str, Any]) -> None:
    """How right the probabilities were, of all tokens that were weighed."""
    better = 1 - row["log_loss"] / row["log_loss_table"] if row["log_loss_table"] else 0.0
    table = Table(
        title=f"{row['config']}: log-loss {row['log_loss']:.3f}, {abs(better):.0%} "
        f"{'below' if better >= 0 else 'above'} the best table "
        f"of match lengths ({row['log_loss_table']:.3f})"
    )
    for column in ("source", "tokens weighed", "calibration error", "predicted > accepted"):
        table.add_column(column, justify="left" if column == "source" else "right")
    for source, curve in row["reliability"].items():
        points = "  ".join(f"{p:.2f} > {a:.2f}" for _, p, a in curve[::4])
        n = sum(count for count, _, _ in curve)
        table.add_row(source, str(n), f"{row['ece'][source]:.3f}", points)
    Console(markup=False).print(table)
