"""`codespec bench ablation`: does each optional part of drafting earn its lines?

A cell is a mechanism and a target: the speed with it left out, divided by the speed with it. The
rule: a mechanism that neither is the product's promise nor would be missed stays if leaving it out
costs 3 % or more on at least two targets. What falls is then left out together, as one row:
where that costs more than 3 % on any target, the most valuable comes back, until it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from codespec.backends.registry import open_vocabulary
from codespec.config import Settings, load_settings
from codespec.models.resolve import target_path

from ..replay_report import load_curve
from ..results import Row
from ..writers import People
from .ablation_clock import Clocked, median_ratio
from .ablation_replay import Ablation, AskedModel, DraftFile, SimulatedTarget, draft_files
from .mechanisms import PRODUCT, Mechanisms

COSTS = 0.03
"""`codespec bench ablation`: the cost of leaving out each mechanism."""
N_TARGETS = 2
"""On so many targets."""

MECHANISMS = tuple(f.name for f in fields(Mechanisms))
ON_CLOCK = {"stretches", "refinement"}
"""Measured by the clock: curves do not see them."""

CURVES = {
    "0.6 B": ("cpu-600m-q8-ours", 600_000_000),
    "1.5 B": ("cpu-1500m-q8-ours", 1_500_000_000),
    "7 B": ("cpu-7b-q8-ours", 7_000_000_000),
    "7 B, H100": ("h100-7b-q8", 7_000_000_000),
    "7 B, H200": ("h200-7b-q8", 7_000_000_000),
}
BUNDLED, OTHER = "bundled", "SmolLM2-135M"
MODELS = (BUNDLED, OTHER)
TARGETS = (*MODELS, *CURVES)

Progress = Callable[[str, int, int], None]
"""Told what is measured, and how much of how much is done."""


@dataclass(frozen=True, slots=True)
class AblationPlan:
    """The measurements to make. model: file of OTHER, None: it is not measured. n_commits: replayed
    of each repository. n_places: completed of each by the clock, 0: none. known: cells measured
    before. keep: told of each cell as it is measured."""

    repos: Sequence[Path]
    targets: Sequence[str] = TARGETS
    mechanisms: Sequence[str] = MECHANISMS
    model: Path | None = None
    n_commits: int = 20
    n_places: int = 20
    known: Sequence[Row] = ()
    keep: Callable[[Sequence[Row]], None] = lambda rows: None


class Measuring:
    """Fills in cells. Raises: InputError, ModelError."""

    def __init__(self, job: AblationPlan, progress: Progress) -> None:
        self._job, self._progress = job, progress
        self._stack = ExitStack()
        self._files: Sequence[DraftFile] = self._stack.enter_context(draft_files())
        self._targets: dict[str, SimulatedTarget] = {}
        self.rows = [row for row in job.known if row.get("mechanism")]

    def close(self) -> None:
        self._stack.close()

    def fill(self, target: str, off: Mapping[str, Sequence[str]]) -> None:
        """The cells of one target. off: what is left out, by the name of the row."""
        if target == OTHER and self._job.model is None:
            self._say_why(target, off, "no file was given")
            return
        missing = {
            name: parts for name, parts in off.items() if not self._has(target, name, "replay")
        }
        if missing:
            self._replay(self._simulated(target), missing)
        if target not in MODELS or not self._job.n_places:
            return
        by_clock = {
            name: parts
            for name, parts in off.items()
            if set(parts) <= ON_CLOCK and not self._has(target, name, "clock")
        }
        if by_clock:
            self._clock(target, by_clock)

    def _has(self, target: str, name: str, kind: str) -> bool:
        of = target, name, kind
        return any((r["target"], r["mechanism"], r["kind"]) == of for r in self.rows)

    def _say_why(self, target: str, names: Mapping[str, Sequence[str]], why: str) -> None:
        for name in names:
            self._add({"target": target, "mechanism": name, "kind": "replay", "why": why})

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        self._job.keep([row])

    def _replay(self, target: SimulatedTarget, off: Mapping[str, Sequence[str]]) -> None:
        seen: dict[str, Sequence[str]] = {}
        for name, parts in off.items():
            why = [target.cannot(part, self._files) for part in parts]
            if all(why):
                self._say_why(target.name, {name: parts}, why[0])
            else:
                seen[name] = parts
        ways = {"": PRODUCT} | {name: without(parts) for name, parts in seen.items()}
        cost = dict.fromkeys(ways, 0.0)
        n_hunks = 0
        for repo in self._job.repos:
            replay = Ablation(repo, target, ways, self._files)
            what = f"{target.name}, {repo.name}"
            replay.run(self._job.n_commits, lambda i, n, what=what: self._progress(what, i, n))
            n_hunks += replay.n_hunks
            for name, way in replay.ways.items():
                cost[name] += way.cost_ms
        for name in seen:
            self._add(
                {
                    "target": target.name,
                    "mechanism": name,
                    "kind": "replay",
                    "ratio": cost[""] / cost[name] if cost[name] else 1.0,
                    "n_hunks": n_hunks,
                }
            )

    def _clock(self, target: str, off: Mapping[str, Sequence[str]]) -> None:
        ways = {name: without(parts) for name, parts in off.items()}
        with closing(Clocked(self._settings(target), ways)) as clocked:
            for repo in self._job.repos:
                what = f"{target}, {repo.name}, by the clock"
                clocked.run(
                    repo,
                    self._job.n_places,
                    progress=lambda i, n, what=what: self._progress(what, i, n),
                )
        on = clocked.timed[""]
        for name in off:
            timed = clocked.timed[name]
            ratio, low, high = median_ratio(on.ms, timed.ms)
            own, own_low, own_high = median_ratio(timed.own_us, on.own_us)
            self._add(
                {
                    "target": target,
                    "mechanism": name,
                    "kind": "clock",
                    "ratio": ratio,
                    "low": low,
                    "high": high,
                    "own_work": own,
                    "own_low": own_low,
                    "own_high": own_high,
                    "n_places": len(on.ms),
                }
            )

    def _settings(self, target: str) -> Settings:
        file = "" if target == BUNDLED else str(self._job.model)
        return load_settings({"model": {"target": file, "n_threads": 1}})

    def _simulated(self, name: str) -> SimulatedTarget:
        if name not in self._targets:
            if name in MODELS:
                asked = self._stack.enter_context(closing(AskedModel(self._settings(name))))
                made = asked.target(name, is_own=name == BUNDLED)
            else:
                curve, n_params = CURVES[name]
                told = self._job.model or target_path(Settings().model)
                tokenizer = open_vocabulary(told).tokenizer
                people = People(tokenizer)
                made = SimulatedTarget(name, load_curve(curve), tokenizer, n_params, people)
            self._targets[name] = made
        return self._targets[name]


def run(job: AblationPlan, progress: Progress = lambda what, done, total: None) -> list[Row]:
    """A row a cell, then one with what was decided. Raises: InputError, ModelError."""
    with closing(Measuring(job, progress)) as measuring:

        def rows_without(off: Mapping[str, Sequence[str]]) -> Sequence[Row]:
            for target in job.targets:
                measuring.fill(target, off)
            return measuring.rows

        decision = decide(job.mechanisms, rows_without)
        return [*measuring.rows, decision]


def decide(
    mechanisms: Sequence[str],
    rows_without: Callable[[Mapping[str, Sequence[str]]], Sequence[Row]],
) -> Row:
    """Mechanisms that fall, and those that came back of what had fallen.

    rows_without: measures what is to be left out, by the name of the row; all rows so far.
    """
    rows = rows_without({name: (name,) for name in mechanisms})
    fallen = [name for name in mechanisms if not stays(name, rows)]
    came_back: list[str] = []
    while fallen:
        together = "+".join(fallen)
        if worst(together, rows_without({together: fallen})) >= 1 - COSTS:
            break
        back = min(fallen, key=lambda name: worst(name, rows))
        fallen.remove(back)
        came_back.append(back)
    return {"config": "decision", "falls": fallen, "came_back": came_back}


def without(parts: Sequence[str]) -> Mechanisms:
    """The product without these parts."""
    return replace(PRODUCT, **dict.fromkeys(parts, False))


def worst(mechanism: str, rows: Sequence[Row]) -> float:
    """The lowest ratio of a row's cells; 1 where there is none."""
    return min(_ratios(mechanism, rows).values(), default=1.0)


def stays(mechanism: str, rows: Sequence[Row]) -> bool:
    """True for what costs enough on enough targets."""
    costing = [ratio for ratio in _ratios(mechanism, rows).values() if ratio <= 1 - COSTS]
    return len(costing) >= N_TARGETS


def _ratios(mechanism: str, rows: Sequence[Row]) -> dict[str, float]:
    """By target, the lower one where there is a replay and a clock."""
    found: dict[str, float] = {}
    for row in rows:
        if row.get("mechanism") == mechanism and "ratio" in row:
            target = row["target"]
            found[target] = min(row["ratio"], found.get(target, row["ratio"]))
    return found


def print_rows(rows: list[Row]) -> None:
    """Mechanisms by targets, and why cells are empty."""
    cells = [row for row in rows if row.get("mechanism")]
    targets = list(dict.fromkeys(row["target"] for row in cells))
    table = Table("left out", *targets, box=None)
    whys: dict[str, str] = {}
    for name in dict.fromkeys(row["mechanism"] for row in cells):
        shown: list[str] = []
        for target in targets:
            of_cell = [r for r in cells if (r["mechanism"], r["target"]) == (name, target)]
            figures = [_shown(row) for row in of_cell if "ratio" in row]
            whys |= {r["why"]: name for r in of_cell if "why" in r and not figures}
            why = next((r["why"] for r in of_cell if "why" in r), "")
            shown.append("\n".join(figures) or (f"({list(whys).index(why) + 1})" if why else ""))
        table.add_row(name.replace("+", "\n+ "), *shown)
    console = Console()
    console.print(
        "speed without, divided by speed with; [ ] 95 % interval, by the clock", markup=False
    )
    console.print(table)
    for i, why in enumerate(whys, 1):
        console.print(f"({i}) {why}")
    for row in rows:
        if row.get("config") == "decision":
            console.print(f"falls: {', '.join(row['falls']) or 'nothing'}")
            console.print(f"came back: {', '.join(row['came_back']) or 'nothing'}")


def _shown(row: Row) -> str:
    if row["kind"] == "replay":
        return f"{row['ratio']:.3f}"
    own = f"own work {row['own_work']:.2f}"
    return f"{row['ratio']:.3f} [{row['low']:.3f}, {row['high']:.3f}]; {own}"
