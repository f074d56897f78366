"""`make soak`: the rows of `tests.reliability` at length. It says how long it takes, goes on where
it was stopped, and ends with a report.

What is done is kept in build/soak/state.json for the commit at hand: rows that passed are left out
of the next run, and those that count go on from where they are. The report is a table, and
build/soak/report.json.

SOAK_ROWS=L1,F2     these rows alone
SOAK_SCALE=0.01     so much of each count, to try it out; what is done then counts for no other
SOAK_MINUTES=30     how long the row on memory types
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from codespec import __version__

HERE = "tests/reliability"
FOLDER = Path("build/soak")
SCALE = float(os.environ.get("SOAK_SCALE", "1"))
MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))
LIMITS = {"ratio_p95": 2.0, "answer_ms_max": 1000.0, "recovery_s_p50": 2.0, "grew_mib": 1.0}
"""Bounds on the figures of a row, on a machine that does nothing else."""


@dataclass(frozen=True)
class Row:
    """name: as in the package's table. injects: `n` of what, `batch` of them in a run of `command`
    (a pytest path, or a program), which takes `seconds` on two quiet cores."""

    name: str
    injects: str
    n: int
    batch: int
    seconds: float
    command: str

    @property
    def key(self) -> str:
        return f"{self.name} {self.injects}"

    def scaled(self, by: float) -> Row:
        """So much of it, and of each run."""
        n, batch = (max(1, math.ceil(count * by)) for count in (self.n, self.batch))
        return replace(self, n=n, batch=batch, seconds=max(5, self.seconds * by))

    def arguments(self) -> list[str]:
        if self.command.startswith("make "):
            return self.command.split()
        return [sys.executable, "-m", "pytest", "-q", "-rN", "--timeout=0", self.command]


def pytest_row(name: str, injects: str, n: int, batch: int, seconds: float, test: str) -> Row:
    return Row(name, injects, n, batch, seconds, f"{HERE}/{test}")


_ROWS = (
    Row("L2", "requests, half of them cancelled", 10_000, 2_000, 5, "tests/e2e/test_lsp_storm.py"),
    pytest_row(
        "L1",
        "requests of eight editors",
        8_000,
        2_000,
        8,
        "test_editors.py::test_of_eight_editors_no_reply_is_lost_or_doubled",
    ),
    pytest_row(
        "L1",
        "latency: requests of one editor and of eight",
        1_600,
        1_600,
        240,
        "soak_figures.py::test_eight_editors_and_one",
    ),
    pytest_row("L3", "keys", 6_000, 2_000, 8, "test_editors.py::test_keys_leave_no_memory_behind"),
    pytest_row("F1", "kills of the worker", 50, 10, 10, "soak_figures.py::test_worker_is_killed"),
    pytest_row("F1", "kills of the daemon", 20, 10, 13, "soak_figures.py::test_daemon_is_killed"),
    pytest_row("F10", "kills of the model's server", 20, 20, 120, "test_engine_killed.py"),
    pytest_row("F2", "failing calls of a build", 1_000, 200, 16, "test_failing_calls.py"),
    pytest_row(
        "L5",
        "requests of two keys at once",
        2_000,
        1_000,
        5,
        "test_keys.py::test_a_flood_is_answered",
    ),
    pytest_row(
        "B1",
        "malformed messages of an editor",
        100_000,
        20_000,
        16,
        "test_frames.py::test_a_language_server_goes_on",
    ),
    pytest_row(
        "B1",
        "malformed messages to the daemon",
        3_000,
        1_000,
        3,
        "test_frames.py::test_a_daemon_goes_on",
    ),
    pytest_row("F5", "damaged model files", 500, 100, 10, "test_models_damaged.py"),
    pytest_row("F2", "kills of a build", 60, 10, 21, "test_killed_builds.py"),
    pytest_row("S6", "kills with a canary in memory", 12, 3, 5, "test_canary.py"),
    pytest_row(
        "S5",
        "editors' requests to a server, with planted secrets",
        10_000,
        2_500,
        60,
        "test_shown_elsewhere.py::test_no_planted_secret_is_sent",
    ),
    pytest_row(
        "S7",
        "suggestions of bytes at random",
        2_000,
        500,
        5,
        "test_invisible.py::test_no_suggestion_has_them",
    ),
    pytest_row(
        "B5",
        "hostile texts for parsers",
        1_400,
        140,
        10,
        "test_grammars.py::test_a_parser_answers_or_ends",
    ),
    Row(
        "S8",
        "texts around a cursor, in each language",
        1_000,
        250,
        60,
        "tests/property/test_rest_of_line.py",
    ),
    pytest_row(
        "L3", "minutes of typing", 1, 1, 60 * MINUTES, "soak_figures.py::test_memory_of_long_typing"
    ),
    Row("native", "tests under sanitizers", 1, 1, 600, "make --no-print-directory soak-native"),
    Row("editor", "VS Code at length", 1, 1, 300, "make --no-print-directory soak-editor"),
)
ROWS = [row.scaled(SCALE) for row in _ROWS] if SCALE != 1 else list(_ROWS)


@dataclass
class Done:
    """n: injected up to now. failure: why the last batch did not pass, "" if it did."""

    n: int = 0
    seconds: float = 0.0
    failure: str = ""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class State:
    """Progress at a commit; rows by their key."""

    commit: str = ""
    rows: dict[str, Done] = field(default_factory=dict[str, Done])

    @classmethod
    def load(cls) -> State:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            found = msgspec.json.decode((FOLDER / "state.json").read_bytes(), type=State)
            if found.commit == commit():
                return found
        return cls(commit())

    def save(self) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        part = FOLDER / "state.part"
        part.write_bytes(msgspec.json.encode(self))
        part.replace(FOLDER / "state.json")

    def of(self, row: Row) -> Done:
        return self.rows.setdefault(row.key, Done())

    def is_done(self, row: Row) -> bool:
        done = self.of(row)
        return done.n >= row.n and not done.failure


def commit() -> str:
    """With what was changed since, if anything."""

    def git(*args: str) -> bytes:
        return subprocess.run(["git", *args], capture_output=True, check=True).stdout

    try:
        name = git("rev-parse", "--short", "HEAD").decode().strip()
        changed = git("diff", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        name, changed = f"{__version__} without a repository", b""
    whole = f"{name}-{hashlib.sha256(changed).hexdigest()[:8]}" if changed else name
    return f"{whole}, {SCALE:g} of it" if SCALE != 1 else whole


def seconds_left(state: State, row: Row) -> float:
    if state.is_done(row):
        return 0.0
    return max(1, math.ceil((row.n - state.of(row).n) / row.batch)) * row.seconds


def duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def run_batch(row: Row, done: Done) -> None:
    facts = FOLDER / "facts.jsonl"
    facts.unlink(missing_ok=True)
    env = {**os.environ, "SOAK_AMOUNT": str(row.batch), "SOAK_FACTS": str(facts.resolve())}
    env["SOAK_MINUTES"] = str(MINUTES)
    log = FOLDER / f"{row.key.replace(' ', '-').replace(':', '')}.log"
    started = time.monotonic()
    with log.open("wb") as output:
        status = subprocess.run(
            row.arguments(), env=env, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    done.seconds += time.monotonic() - started
    if status:
        done.failure = f"see {log}"
        return
    done.n += row.batch
    for line in facts.read_text().splitlines() if facts.exists() else ():
        add(done.facts, json.loads(line))
    done.failure = "; ".join(
        f"{name} is {done.facts[name]}, at most {most:g} is wanted"
        for name, most in LIMITS.items()
        if done.facts.get(name, 0) > most
    )


def add(facts: dict[str, Any], new: Mapping[str, Any]) -> None:
    """Counts add up, and of other figures the largest is kept."""
    for name, value in new.items():
        known = facts.get(name, value)
        if isinstance(value, float):
            facts[name] = max(known, value)
        else:
            facts[name] = known + value if name in facts else value


def work(state: State, rows: Sequence[Row]) -> None:
    for row in rows:
        done = state.of(row)
        if done.failure and done.n >= row.n:  # figures that were too high: all of it again
            done = state.rows[row.key] = Done()
        while not state.is_done(row):
            print(f"{row.key}: {done.n} of {row.n}", flush=True)
            run_batch(row, done)
            state.save()
            if done.failure:
                print(f"{row.key}: {done.failure}", flush=True)
                break


def report(state: State, rows: Sequence[Row]) -> bool:
    """True if all of them passed."""
    lines: list[tuple[str, str, str]] = [("row", "injected", "what came of it")]
    for row in rows:
        done = state.of(row)
        verdict = "passed" if state.is_done(row) else done.failure or "not finished"
        figures = ", ".join(f"{name} {value}" for name, value in done.facts.items())
        lines.append(
            (row.name, f"{done.n} {row.injects}", "; ".join(filter(None, (verdict, figures))))
        )
    widths = [max(len(line[i]) for line in lines) for i in (0, 1)]
    print()
    for name, injected, came in lines:
        print(f"{name:{widths[0]}}  {injected:{widths[1]}}  {came}")
    rows_json = [
        {
            "row": row.name,
            "injects": row.injects,
            "passed": state.is_done(row),
            **asdict(state.of(row)),
        }
        for row in rows
    ]
    path = FOLDER / "report.json"
    path.write_bytes(
        msgspec.json.format(msgspec.json.encode({"commit": state.commit, "rows": rows_json}))
    )
    print(f"\n{path}")
    return all(state.is_done(row) for row in rows)


def main() -> int:
    wanted = os.environ.get("SOAK_ROWS", "")
    rows = [row for row in ROWS if not wanted or row.name in wanted.split(",")]
    state = State.load()
    state.save()
    print(f"soak of {state.commit}; on two quiet cores:")
    for row in rows:
        left = seconds_left(state, row)
        n = state.of(row).n
        how = f"about {duration(left)}" if left else "passed before"
        so_far = f", {n} of them done" if n and left else ""
        print(f"  {row.name:7} {row.n:6} {row.injects}: {how}{so_far}")
    print(f"  about {duration(sum(seconds_left(state, row) for row in rows))} in all", flush=True)
    try:
        work(state, rows)
    except KeyboardInterrupt:
        print("\nstopped; the next `make soak` goes on from here")
    return 0 if report(state, rows) else 1


if __name__ == "__main__":
    sys.exit(main())
