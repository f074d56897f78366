"""Answers of the sessions of commits, its figures, and the file that keeps it: anybody can
count again from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from codespec.errors import InputError

from . import results
from .edit_session import Accepting, Ask, Order
from .edit_truth import PlacedLines

N_RESAMPLES = 2000
_SHARES = {
    "precision": ("right", "shown"),
    "recall": ("right", "active"),
    "recall_repeatable": ("right_repeatable", "repeatable"),
    "quiet_rate": ("silent", "quiet"),
    "precision_by_commit": ("commit_precision", "commit_shows"),
    "wrong_per_commit": ("wrong", "commits"),
    "by_accept": ("by_accept", "hunks"),
    "wrong_accepting": ("wrong_accepting", "commits"),
}
"""Figure -> the sums over commits whose quotient it is."""


@dataclass(frozen=True, slots=True)
class CommitAnswers:
    """All that was said in the two sessions of one commit."""

    repository: str
    config: str
    order: Order
    commit: str
    parent: str
    asks: tuple[Ask, ...]
    accepting: Accepting


def figures(commits: Sequence[CommitAnswers]) -> dict[str, float]:
    """Counts, and shares with their 95 % bootstrap intervals over commits (Efron 1979, percentile
    method); without those that are of nothing."""
    sums = [_sums(commit) for commit in commits]
    table = np.array([[of[name] for name in sums[0]] for of in sums], np.float64)
    column = {name: i for i, name in enumerate(sums[0])}
    total = dict(zip(sums[0], table.sum(axis=0).tolist(), strict=True))
    rng = np.random.default_rng(0)
    n = len(table)
    drawn = rng.multinomial(n, np.full(n, 1 / n), N_RESAMPLES) @ table
    counted = {"n_commits": n, "n_asked": sum(len(commit.asks) for commit in commits)}
    found: dict[str, float] = {
        **counted,
        **{f"n_{name}": int(total[name]) for name in ("repeatable", "shown", "right")},
    }
    for name, (part, whole) in _SHARES.items():
        if total[whole]:
            found[name] = total[part] / total[whole]
            found |= _interval(name, drawn[:, column[part]], drawn[:, column[whole]])
    times = [ask.ms for commit in commits for ask in commit.asks]
    found["ms_p50"], found["ms_p95"] = (float(np.percentile(times, at)) for at in (50, 95))
    return found


def _interval(
    name: str, part: npt.NDArray[np.float64], whole: npt.NDArray[np.float64]
) -> dict[str, float]:
    low, high = np.percentile(part[whole > 0] / whole[whole > 0], [2.5, 97.5])
    return {f"{name}_low": float(low), f"{name}_high": float(high)}


def _sums(commit: CommitAnswers) -> dict[str, float]:
    shown = [ask for ask in commit.asks if ask.proposal is not None]
    right = [ask for ask in shown if ask.is_right]
    quiet = [ask for ask in commit.asks if not ask.outstanding]
    accepting = commit.accepting
    return {
        "shown": len(shown),
        "right": len(right),
        "wrong": len(shown) - len(right),
        "active": len(commit.asks) - len(quiet),
        "repeatable": sum(ask.is_repeatable for ask in commit.asks),
        "right_repeatable": sum(ask.is_repeatable for ask in right),
        "quiet": len(quiet),
        "silent": sum(ask.proposal is None for ask in quiet),
        "commits": 1,
        "commit_shows": bool(shown),
        "commit_precision": len(right) / len(shown) if shown else 0.0,
        "hunks": accepting.n_hunks,
        "by_accept": accepting.by_accept,
        "wrong_accepting": accepting.n_shown - accepting.n_right,
    }


def write(path: Path, commits: Iterable[CommitAnswers]) -> None:
    """Append to a file, for each commit, a line with its hunks and the session that accepts, then a
    line an ask; what is outstanding is given as (number in `hunks`, line now, n_up). Raises:
    InputError."""
    rows: list[results.Row] = []
    for commit in commits:
        hunks: dict[Any, int] = {}
        asks: list[results.Row] = []
        for ask in commit.asks:
            left = [
                (hunks.setdefault((h.path, h.old, h.new), len(hunks)), h.line, h.n_up)
                for h in ask.outstanding
            ]
            verdict = "right" if ask.is_right else "wrong" if ask.proposal else "silent"
            said = msgspec.to_builtins(replace(ask, outstanding=()))
            asks.append({**said, "outstanding": left, "verdict": verdict})
        names = ("repository", "config", "order", "commit", "parent")
        of = {name: getattr(commit, name) for name in names}
        accepting = msgspec.to_builtins(commit.accepting)
        rows += [{**of, "accepting": accepting, "hunks": list(hunks)}, *asks]
    results.append(path, rows)


def read(path: Path) -> list[CommitAnswers]:
    """The answers that `write` kept. Raises: InputError."""
    found: list[tuple[results.Row, list[Ask]]] = []
    try:
        for _, row in results.json_lines(path):
            if "hunks" in row:
                found.append((row, []))
                continue
            commit, asks = found[-1]
            left = [
                PlacedLines(name, line, tuple(old), tuple(new), n_up)
                for number, line, n_up in row["outstanding"]
                for name, old, new in (commit["hunks"][number],)
            ]
            ask = msgspec.convert({**row, "outstanding": ()}, Ask)
            asks.append(replace(ask, outstanding=tuple(left)))
        return [msgspec.convert({**of, "asks": asks}, CommitAnswers) for of, asks in found]
    except (LookupError, TypeError, ValueError) as e:
        raise InputError(f"{path}: {e}", "Give a file written with --answers.") from e
