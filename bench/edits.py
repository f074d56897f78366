"""`codespec bench edits`: next edits on a repository's own history.

For each commit, its hunks are made one by one, and after each a next edit is asked for. Right is
what the commit does later.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from codespec.config import Settings
from codespec.edits.base import Proposer
from codespec.edits.repeats import Repeats
from codespec.errors import InputError

from . import edit_model
from .edit_answers import CommitAnswers, figures
from .edit_model import RepeatsThenModel
from .edit_rule import RuleProposer
from .edit_session import Asking, Order
from .line_hunks import HunkCommit, HunkHistory
from .parent_texts import ParentFiles

CONFIGS = ("rule", "repeats", "model", "all")
"""Ways to propose, each to be compared with the ones before it: a plain rule, lookups, a next-edit
model, and both as editors have them."""
WITH_MODEL = ("model", "all")
"""Those that need a next-edit model."""
ORDERS: tuple[Order, ...] = ("diff", "shuffled")
N_PROCESSES = 2
_N_TOGETHER = 8
"""Commits that a process takes at a time: the first one's parent is read whole."""


@dataclass(frozen=True, slots=True)
class EditsPlan:
    """paths: patterns of files, () for all sources. bar: least chance of what is shown. settings:
    name a next-edit model as their target; None where no configuration needs one."""

    repos: Sequence[Path]
    configs: Sequence[str]
    orders: Sequence[Order]
    n_commits: int
    paths: Sequence[str]
    until: str
    bar: float
    settings: Settings | None = None

    @property
    def needs_model(self) -> bool:
        return not set(WITH_MODEL).isdisjoint(self.configs)


@dataclass(frozen=True, slots=True)
class _Task:
    root: Path
    paths: Sequence[str]
    commits: Sequence[HunkCommit]
    configs: Sequence[str]
    orders: Sequence[Order]
    bar: float
    settings: Settings | None


def run(plan: EditsPlan) -> list[CommitAnswers]:
    """All answers, by repository, configuration and order, oldest commit first. Raises:
    InputError; ModelError, ConfigError for a next-edit model that cannot be loaded."""
    n_processes = min(N_PROCESSES, os.cpu_count() or 1)
    if plan.needs_model:
        if plan.settings is None:
            raise InputError(
                f"a next-edit model is needed for {' and '.join(WITH_MODEL)}",
                "Give its file with --model, or other configurations with --config.",
            )
        edit_model.check(plan.settings)
        n_processes = 1  # the model takes all cores
    tasks = [task for root in plan.repos for task in _tasks(root, plan)]
    n = sum(len(task.commits) for task in tasks)
    found: dict[int, list[CommitAnswers]] = {}
    with (
        Progress(console=Console(stderr=True), transient=True) as bar,
        ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool,
    ):
        shown = bar.add_task("asking", total=n)
        waiting = {pool.submit(_answers, task): i for i, task in enumerate(tasks)}
        for done in as_completed(waiting):
            found[waiting[done]] = done.result()
            bar.advance(shown, len(tasks[waiting[done]].commits))
    return [
        answer
        for root, config, order in product(plan.repos, plan.configs, plan.orders)
        for i in sorted(found)
        for answer in found[i]
        if tasks[i].root == root and (answer.config, answer.order) == (config, order)
    ]


def _tasks(root: Path, plan: EditsPlan) -> Iterator[_Task]:
    commits = HunkHistory(root, plan.paths).line_commits(plan.n_commits, plan.until)
    if not commits:
        raise InputError(
            f"{root}: no commit changes lines of such files", "Say which files with --paths."
        )
    for i in range(0, len(commits), _N_TOGETHER):
        part = commits[i : i + _N_TOGETHER]
        yield _Task(root, plan.paths, part, plan.configs, plan.orders, plan.bar, plan.settings)


def _answers(task: _Task) -> list[CommitAnswers]:
    history = HunkHistory(task.root, task.paths)
    proposers = {config: _proposer(config, task) for config in task.configs}
    name = task.root.resolve().name
    found: list[CommitAnswers] = []
    with history.blobs() as blobs:
        files = ParentFiles(blobs)
        for commit in task.commits:
            files.move_to(history.parent_tree(commit))
            if not any(hunk.path in files for hunk in commit.hunks):
                continue
            for config, order in product(task.configs, task.orders):
                asking = Asking(proposers[config], task.bar)
                asks = tuple(asking.asks(commit, order, files))
                accepting = asking.accepting(commit, order, files)
                found.append(
                    CommitAnswers(name, config, order, commit.sha, commit.parent, asks, accepting)
                )
    return found


def _proposer(config: str, task: _Task) -> Proposer:
    if config == "rule":
        return RuleProposer()
    if config == "repeats":
        return Repeats()
    assert task.settings is not None
    model = edit_model.ModelProposer(edit_model.loaded(task.settings))
    return model if config == "model" else RepeatsThenModel(Repeats(), model, task.bar)


def rows(answers: Sequence[CommitAnswers]) -> list[dict[str, Any]]:
    """A row a configuration and order: of each repository, and of all together where there are
    several."""
    found: list[dict[str, Any]] = []
    for config, order in dict.fromkeys((a.config, a.order) for a in answers):
        of = {"config": config, "order": order}
        chosen = [a for a in answers if (a.config, a.order) == (config, order)]
        for name, part in _parts(chosen):
            found.append({**of, **({"repository": name} if name else {}), **figures(part)})
    return found


def _parts(
    answers: Sequence[CommitAnswers],
) -> Iterable[tuple[str, Sequence[CommitAnswers]]]:
    names = list(dict.fromkeys(answer.repository for answer in answers))
    if len(names) > 1:
        yield "", answers
    for name in names:
        yield name, [answer for answer in answers if answer.repository == name]


def print_rows(found: list[dict[str, Any]]) -> None:
    console = Console(markup=False)
    for order in dict.fromkeys(row["order"] for row in found):
        chosen = [row for row in found if row["order"] == order]
        table = Table(title=_TITLES[order], box=SIMPLE_HEAD, padding=0, pad_edge=False)
        for column in ("", *_COLUMNS):
            table.add_column(column, justify="right" if column else "left", no_wrap=not column)
        for row in chosen:
            table.add_row(_name(row), *(_cell(row.get(name)) for name in _COLUMNS.values()))
        console.print(table)
        for row in chosen:
            if row["repository"] == chosen[0]["repository"]:
                console.print(f"{_name(row)}: {', '.join(_intervals(row))}")


_TITLES = {"diff": "Hunks in the order of the diff", "shuffled": "Hunks in a shuffled order"}
_COLUMNS = {
    "asks": "n_asked",
    "precision": "precision",
    "by\ncommit": "precision_by_commit",
    "recall": "recall",
    "repeat-\nable": "recall_repeatable",
    "quiet": "quiet_rate",
    "wrong a\ncommit": "wrong_per_commit",
    "by\naccept": "by_accept",
    "ms p95": "ms_p95",
}
"""Heading -> figure."""


def _name(row: dict[str, Any]) -> str:
    repository = str(row["repository"])
    return f"{row['config']}, {repository if ' ' not in repository else 'all'}"


def _cell(value: float | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.2f}"


def _intervals(row: dict[str, Any]) -> Iterator[str]:
    for name in ("precision", "precision_by_commit", "recall_repeatable", "quiet_rate"):
        if name in row:
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            yield f"{name} {row[name]:.3f} ({low:.2f} to {high:.2f})"
