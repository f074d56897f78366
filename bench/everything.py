"""`codespec bench all`: the benchmarks one after the other, each in a process of its own, in the
time there is.

A step whose results are in the file already is not done again, so that an interrupted run goes on:
those of the same arguments on the same machine, with the same codespec.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from codespec.errors import InputError
from codespec.reasons import Reason
from codespec.system.processes import bound_command

from . import results
from .machine import stamp
from .peers.run import is_other
from .results import Row

_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Step:
    """A benchmark by its arguments. only: what its rows say, where a benchmark has several steps.
    seconds: about, on two cores."""

    name: str
    arguments: tuple[str, ...]
    seconds: int
    bench: str
    only: tuple[str, str] | None = None

    def of(self, rows: Sequence[Row]) -> list[Row]:
        """The step's own rows: of this repository and model, made here."""
        return [
            row
            for row in rows
            if row.get("bench") == self.bench
            and row.get("arguments") == list(self.arguments)
            and row.get("machine") == stamp()
            and (self.only is None or row.get(self.only[0]) == self.only[1])
        ]


class LeftOutStep(Reason):
    """Cause of a step without results."""

    INTERRUPTED = "interrupted", "interrupted"
    TIME_UP = "time_up", "the time was up"
    FAILED = "failed", "it failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """rows: of the step; cause: there are none, and what the step said of it, if anything. before:
    they were in the file."""

    step: Step
    rows: list[Row]
    seconds: float = 0.0
    cause: LeftOutStep | None = None
    said: str = ""
    before: bool = False

    @property
    def why(self) -> str:
        """The cause in words; "" for none."""
        return self.said or (self.cause.text if self.cause else "")


_QUALITY = (
    *("--places", "6", "--kind", "line", "--kind", "inline"),
    *("--kind", "block", "--kind", "finished"),
)


def steps(repo: Path, model: Sequence[str], glob: str) -> list[Step]:
    """The steps, those that say most in the least time first. model: options of the command line,
    --model among them."""
    where = (str(repo), "--paths", glob)
    return [
        Step("curve", ("curve", "--repeats", "5", *model), 10, "curve"),
        *(
            Step(
                f"replay, {curve}",
                ("replay", *where, "--commits", "12", "--curve", curve),
                15,
                "replay",
                ("curve", curve),
            )
            for curve in ("cpu-500m-q8", "h200-7b-q8")
        ),
        Step("replay, model", ("replay", *where, "--commits", "8", *model), 45, "replay-model"),
        Step("peers", ("peers", *where, "--quick", *model), 55, "peers"),
        Step("latency", ("latency", *where, "--keys", "150", *model), 100, "latency"),
        Step("index", ("index", *model), 150, "index"),
        Step("quality", ("quality", str(repo), *_QUALITY, *model), 60, "quality"),
        Step("models", ("models", "--places", "5"), 120, "models"),
    ]


def run(
    wanted: Sequence[Step],
    output: Path,
    minutes: float,
    progress: Callable[[Step, int], None] = lambda step, n: None,
) -> list[Outcome]:
    """Results are in `output` as soon as a step ends; one that takes longer than all may is ended.
    Interrupted (Ctrl-C), it tells what it has. progress: told each step before it begins, and how
    many were done before."""
    known = results.read(output) if output.exists() else []
    end_s = time.monotonic() + 60 * minutes
    outcomes: list[Outcome] = []
    try:
        for n, step in enumerate(wanted):
            progress(step, n)
            rows = step.of(known)
            done = Outcome(step, rows, before=True) if rows else _run(step, output, end_s)
            outcomes.append(done)
    except KeyboardInterrupt:
        left = wanted[len(outcomes) :]
        outcomes += [Outcome(step, [], cause=LeftOutStep.INTERRUPTED) for step in left]
    return outcomes


def _run(step: Step, output: Path, end_s: float) -> Outcome:
    started = time.monotonic()
    left_s = end_s - started
    if left_s <= 0:
        return Outcome(step, [], cause=LeftOutStep.TIME_UP)
    with tempfile.TemporaryDirectory(prefix="codespec-bench-") as folder:
        file = Path(folder, "results")
        command = bound_command("codespec", "bench", *step.arguments)
        with subprocess.Popen(
            [*command, "--output", str(file)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        ) as child, _kept_open(child):  # fmt: skip
            try:
                _, stderr = child.communicate(timeout=left_s)
            except subprocess.TimeoutExpired:
                return Outcome(step, [], time.monotonic() - started, LeftOutStep.TIME_UP)
            finally:
                _end(child)
        seconds = time.monotonic() - started
        if child.returncode:
            said = [line.strip() for line in stderr.splitlines() if line.strip()]
            errors = [line for line in said if line.startswith("error:")]
            return Outcome(step, [], seconds, LeftOutStep.FAILED, (errors or said or [""])[-1])
        rows = [{**row, "arguments": list(step.arguments)} for row in results.read(file)]
    results.append(output, rows)
    return Outcome(step, rows, seconds)


@contextlib.contextmanager
def _kept_open(child: subprocess.Popen[str]) -> Generator[None, None, None]:
    """Its input, which it ends with, and which `communicate` would close."""
    pipe, child.stdin = child.stdin, None
    assert pipe is not None
    with pipe:
        yield


def _end(child: subprocess.Popen[str]) -> None:
    """It ends its servers, and what does not end is killed with those that it started itself."""
    if child.poll() is not None:
        return
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_PATIENCE_S)
        return
    parent = psutil.Process(child.pid)
    for process in [*parent.children(recursive=True), parent]:
        with contextlib.suppress(psutil.Error):
            process.kill()


def print_outcomes(outcomes: Sequence[Outcome], output: Path | None) -> None:
    table = Table("", "s", "", title="codespec bench all")
    for outcome in outcomes:
        said = headline(outcome.rows) if outcome.rows else f"left out: {outcome.why}"
        seconds = "before" if outcome.before else f"{outcome.seconds:.0f}"
        table.add_row(outcome.step.name, seconds, said)
    out = Console(markup=False)
    out.print(table)
    if output is not None and output.exists():
        said = f"codespec bench report {shlex.quote(str(output))}"
        out.print(said, highlight=False, soft_wrap=True)


def nothing(outcomes: Sequence[Outcome]) -> InputError:
    """The error of a run in which no step has a row."""
    why = list(dict.fromkeys(outcome.why for outcome in outcomes))
    failed = next((outcome for outcome in outcomes if outcome.cause != LeftOutStep.TIME_UP), None)
    if failed is None:
        hint = "Give it more with --minutes."
    else:
        hint = f"One by itself: {shlex.join(['codespec', 'bench', *failed.step.arguments])}"
    return InputError(f"nothing was measured: {'; '.join(why)}", hint)


def headline(rows: Sequence[Row]) -> str:
    """One line of what a benchmark's rows say."""
    by_config = {str(row.get("config", "")): row for row in rows}
    return _HEADLINES[str(rows[0]["bench"])](rows, by_config)


def _curve(rows: Sequence[Row], _: dict[str, Row]) -> str:
    row = rows[-1]
    at = dict(zip(row["n"], row["ratio"], strict=True))
    wide = ", ".join(f"T({n}) {at[n]:.1f}" for n in (2, 8, 16) if n in at)
    return f"a pass over one token {row['t1_ms']:.2f} ms, in units of it: {wide}"


def _replay(_: Sequence[Row], by: dict[str, Row]) -> str:
    ours, theirs = by["codespec"], by["suffix-trie"]
    return (
        f"{ours['speedup']:.2f} times plain decoding, {ours['speedup'] / theirs['speedup']:.2f} "
        f"times the published rule, {ours['share_of_ideal']:.0%} of the ideal"
    )


def _replay_model(_: Sequence[Row], by: dict[str, Row]) -> str:
    ours = by["codespec"]
    return (
        f"{ours['speedup']:.2f} times plain decoding on the clock, {ours['mat']:.2f} tokens a pass"
    )


def _peers(rows: Sequence[Row], _: dict[str, Row]) -> str:
    said: list[str] = []
    for workload in ("edits", "fresh"):
        mine = {r["config"]: float(r["ratio_to_plain"]) for r in rows if r["workload"] == workload}
        others = {c: v for c, v in mine.items() if is_other(c)}
        best = max(others, key=others.__getitem__, default="")
        beside = f" (best other, {best}: {others[best]:.2f})" if best else ""
        said.append(f"{workload} {mine.get('codespec', 0.0):.2f} times plain{beside}")
    return "; ".join(said)


def _latency(rows: Sequence[Row], _: dict[str, Row]) -> str:
    return "; ".join(
        f"{row['config']}: in view {row['visible_ms_p50']:.0f} ms after a key, "
        f"p95 {row['visible_ms_p95']:.0f}"
        if "visible_ms_p50" in row
        else f"{row['config']}: the next key came before every suggestion"
        for row in rows
        if "debounce_ms" in row
    )


def _index(rows: Sequence[Row], _: dict[str, Row]) -> str:
    row = rows[0]
    found = (f"{k} {row[k]:.4g}" for k in ("bytes_per_token", "build_mtok_per_s") if k in row)
    return ", ".join(found) or "done"


def _quality(rows: Sequence[Row], _: dict[str, Row]) -> str:
    """With nothing but the file shown to the model."""
    return ", ".join(
        f"{row['kind']} {row['exact']:.0%} exact, similarity {row['similarity']:.2f}"
        for row in rows
        if row["config"] == "file" and row["language"] == "all"
    )


def _models(rows: Sequence[Row], _: dict[str, Row]) -> str:
    return ", ".join(
        f"{row['model']} {row['bits_per_byte']:.3f} bits a byte"
        for row in rows
        if "bits_per_byte" in row
    )


_HEADLINES: dict[str, Callable[[Sequence[Row], dict[str, Row]], str]] = {
    "curve": _curve,
    "replay": _replay,
    "replay-model": _replay_model,
    "peers": _peers,
    "latency": _latency,
    "index": _index,
    "quality": _quality,
    "models": _models,
}
