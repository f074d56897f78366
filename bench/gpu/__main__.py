"""`python -m codespec_bench.gpu`: what passes cost on this GPU, and what drafting gives there.

Results go to one file of JSON lines; a step whose results are in it is not done again, so an
interrupted run goes on where it ended.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from codespec.backends.base import Target
from codespec.backends.llama import LlamaTarget, LlamaTokenizer, LoadedModel, load_model
from codespec.config import load_settings
from codespec.cost.cost_curve import CostCurve
from codespec.cost.measure import measure
from codespec.errors import CodespecError, InputError
from codespec.models.resolve import draft_paths, target_path
from codespec.system import programs
from codespec.types import NO_DRAFT, Draft

from .. import results
from ..curve import as_ratios, save
from ..peers.run import PeerComparison
from ..replay_draft import opened
from ..replay_report import run as replay
from ..replay_report import run_model
from ..results import Row
from . import clock
from .shapes import SHAPES, SMALL, DecoderShape, write_random

CONTEXTS = (512, 2048)
TREE_NODES = (4, 8, 16, 32)
TREE_LEAVES = (2, 4, 8)
REPLAY_CURVES = ("7b-q8_0", "1.5b-q8_0")
ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = Path(__file__).resolve().parents[1] / "checkout"
"""Names the checkout, where this is the copy that `build.py` made of it."""
# How each row of ours begins.
_STEP = re.compile(rb'\{"bench": "gpu", "step": "[^"]*"')

out = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """The measurements to make. folder: for models, histories and curves; may be deleted
    afterwards. repositories: name -> bundle or folder. n_places: edits given to the bundled pair
    and to llama-server; quick: its defaults only. curves: model -> row of what is measured
    already."""

    shapes: Sequence[tuple[DecoderShape, str]]
    contexts: Sequence[int]
    n_commits: int
    folder: Path
    repositories: dict[str, Path]
    n_places: int = 20
    quick: bool = False
    curves: dict[str, Row] = field(default_factory=dict[str, Row])

    def steps(self) -> dict[str, Callable[[], list[Row]]]:
        """By name, in order."""
        found: dict[str, Callable[[], list[Row]]] = {"bundled": self._bundled}
        for shape, quantisation in self.shapes:
            name = f"{shape.name}-{quantisation}"
            found[f"curve {name}"] = lambda s=shape, q=quantisation: self._curve(s, q)
        measured = [f"{shape.name}-{quantisation}" for shape, quantisation in self.shapes]
        curves = [name for name in REPLAY_CURVES if name in measured] or measured[:1]
        for repository in self.repositories:
            for curve in curves:
                found[f"replay {repository} {curve}"] = lambda r=repository, c=curve: self._replay(
                    r, c
                )
            found[f"pair {repository}"] = lambda r=repository: self._pair(r)
            found[f"peers {repository}"] = lambda r=repository: self._peers(r)
        return found

    def _bundled(self) -> list[Row]:
        return self._curves("bundled", target_path(load_settings().model))

    def _curve(self, shape: DecoderShape, quantisation: str) -> list[Row]:
        name = f"{shape.name}-{quantisation}"
        file = self.folder / f"{name}.gguf"
        try:
            if not file.exists():
                write_random(file, shape, quantisation, target_path(load_settings().model))
            return self._curves(name, file)
        finally:  # the largest take as much disk as a machine may have
            file.unlink(missing_ok=True)

    def _curves(self, name: str, file: Path) -> list[Row]:
        """Chains at every context, trees at the first."""
        rows: list[Row] = []
        n_ctx, n_threads = 2 * max(self.contexts), load_settings().model.n_threads
        with (
            closing(load_model(file)) as model,
            closing(LlamaTarget(model, n_ctx=n_ctx, n_threads=n_threads)) as target,
        ):
            for n_context in self.contexts:
                curve = measure(target, n_context, n_repeats=15, budget_s=20.0)
                rows.append(_row(name, model, "chain", n_context, as_ratios(curve)))
            n_context = self.contexts[0]
            for n_leaves in TREE_LEAVES:
                ratios = tree_ratios(target, n_context, n_leaves)
                rows.append(_row(name, model, f"tree of {n_leaves} leaves", n_context, ratios))
            self.curves.update(curves_of(rows))
            for repository in self.repositories if name != "bundled" else ():
                rows += self._clock(repository, name, model, target)
        return rows

    def _clock(
        self, repository: str, name: str, model: LoadedModel, target: LlamaTarget
    ) -> list[Row]:
        """The true text as target, with this model's passes on the clock."""
        n_prompt = min(512, max(self.contexts) // 2)
        curve = measure(target, n_prompt, budget_s=5.0)
        tokenizer = LlamaTokenizer(model)
        drafts = draft_paths(load_settings().model, model.info.file_bytes)
        with opened(drafts, tokenizer, curve) as draft:
            root = self.clone(repository)
            replay = clock.ClockReplay(root, tokenizer, target, curve, draft, n_prompt)
            replay.run(max(1, self.n_commits // 4))
        if not replay.n_hunks:
            return []
        on = {"model": name, "backend": model.backend, "repository": repository}
        return [{**on, **row} for row in replay.clock_rows()]

    def _replay(self, repository: str, curve: str) -> list[Row]:
        """The true text as target, with a curve measured before; also with the bundled draft
        model, at what its passes cost here."""
        if curve not in self.curves:
            raise InputError(f"{curve} has no curve yet", f'Do this first: --only "curve {curve}".')
        file = self.folder / f"{curve}.curve.json"
        save(self.curves[curve], file)
        model = load_settings().model
        rows = replay(
            self.clone(repository),
            target_path(model),
            self.n_commits,
            "*.py",
            str(file),
            16,
            drafts=draft_paths(model, math.inf),
        )
        return [{**row, "curve": curve, "repository": repository} for row in rows]

    def _pair(self, repository: str) -> list[Row]:
        """The bundled pair as real target and draft, on the clock."""
        n_commits = max(1, self.n_commits // 4)
        rows = run_model(self.clone(repository), load_settings(), n_commits, "*.py")
        return [{**row, "curve": "bundled pair", "repository": repository} for row in rows]

    def _peers(self, repository: str) -> list[Row]:
        """The same beside llama-server, which LLAMA_SERVER names, and others that are there."""
        comparison = PeerComparison(
            self.clone(repository),
            load_settings(),
            n_commits=self.n_commits,
            n_places=self.n_places,
            n_repeats=1 if self.quick else 3,
            quick=self.quick,
        )
        rows = comparison.run()
        if comparison.ended:  # it keeps what it has, but the step is to be done again
            raise KeyboardInterrupt
        for missing in comparison.missing:
            out.print(f"left out: {missing.config}: {missing.why}")
        return [{**row, "repository": repository} for row in rows]

    def clone(self, repository: str) -> Path:
        """A folder with the history of that name, made of its bundle where it came as one."""
        source = self.repositories[repository]
        if source.is_dir():
            return source
        clone = self.folder / "repositories" / repository
        if not clone.exists():
            partial = clone.with_name(f"{repository}.part")
            shutil.rmtree(partial, ignore_errors=True)
            git("init", "--quiet", "--bare", str(partial))
            shallow = source.with_suffix(".shallow")
            if shallow.exists():
                (partial / "shallow").write_text(shallow.read_text())
            head = "refs/heads/main"
            git("-C", str(partial), "fetch", "--quiet", str(source.resolve()), f"HEAD:{head}")
            git("-C", str(partial), "symbolic-ref", "HEAD", head)
            partial.rename(clone)
        return clone


def tree_ratios(target: Target, n_context: int, n_leaves: int, n_repeats: int = 15) -> Row:
    """Passes over 1 + n tokens whose drafts are `n_leaves` chains from the root, as `as_ratios`."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, target.info.n_vocab, n_context + 1).astype(np.int32)
    points: dict[int, float] = {}
    for n in (0, *(n for n in TREE_NODES if n >= n_leaves)):
        drafted = rng.integers(0, target.info.n_vocab, n).astype(np.int32)
        # Nodes in levels: node i continues node i - n_leaves.
        parents = np.maximum(np.arange(n) - n_leaves, -1).astype(np.int32)
        draft = Draft(drafted, parents, np.ones(n, np.float32), np.zeros(n, np.int8))
        times: list[float] = []
        for _ in range(n_repeats + 1):
            target.prefill(tokens, lambda: False)
            tail = tokens[target.n_cached :]
            if len(tail) > 1:
                target.decode(tail, NO_DRAFT)
                target.keep([])
                target.prefill(tokens, lambda: False)
                tail = tokens[target.n_cached :]
            started = time.perf_counter()
            target.decode(tail, draft if n else NO_DRAFT)
            times.append((time.perf_counter() - started) * 1e3)
            target.keep([])
        points[n + 1] = min(times[1:])
    return as_ratios(CostCurve(points))


def curves_of(rows: Sequence[Row]) -> dict[str, Row]:
    """By model, those behind the longest context."""
    return {str(row["model"]): row for row in rows if row.get("draft") == "chain"}


def _row(name: str, model: LoadedModel, draft: str, n_context: int, ratios: Row) -> Row:
    return {
        "model": name,
        "backend": model.backend,
        "draft": draft,
        "n_context": n_context,
        **ratios,
    }


def git(*args: str) -> None:
    """Raises: InputError."""
    command = programs.command("git", *args)
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        first, _, _ = done.stderr.strip().partition("\n")
        raise InputError(f"git: {first.removeprefix('fatal: ')}")


def checkout() -> Path | None:
    """The folder with the history of this code; None where there is none."""
    root = Path(CHECKOUT.read_text("utf-8")) if CHECKOUT.exists() else ROOT
    return root if (root / ".git").exists() else None


def resume(output: Path) -> list[Row]:
    """Rows in the file of steps that were finished. Raises: InputError, OSError."""
    output.parent.mkdir(parents=True, exist_ok=True)
    results.append(output, [])  # where it cannot be written, that is said before the first step
    drop_cut_line(output)
    return results.read(output)


def keep(output: Path, rows: Sequence[Row]) -> None:
    """Raises: InputError, OSError."""
    drop_cut_line(output)  # of a step before, when the disk was full
    results.append(output, rows)


def drop_cut_line(output: Path) -> None:
    """Take a last line that was not finished out of the file, and the rows of its step before it:
    the step is to be done again."""
    *lines, cut = output.read_bytes().split(b"\n")
    if not cut:
        return
    step = _STEP.match(cut)
    while step and lines and lines[-1].startswith(step[0]):
        lines.pop()
    os.truncate(output, sum(len(line) + 1 for line in lines))


@click.command()
@click.option("--bundle", type=click.Path(path_type=Path, exists=True), help="From pack.py.")
@click.option(
    "--repo",
    "repos",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A clone to replay; may be given again.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("build/gpu"),
    show_default=True,
    help="For models and clones; the largest model takes 16 GB for a while.",
)
@click.option("--output", type=click.Path(path_type=Path), required=True, metavar="FILE")
@click.option("--minutes", default=9.0, show_default=True, help="No step is begun after this time.")
@click.option("--commits", default=25, show_default=True, help="Of each history.")
@click.option("--places", default=20, show_default=True, help="Edits, beside llama-server.")
@click.option(
    "--only", multiple=True, metavar="TEXT", help="Steps whose name begins so; may be given again."
)
@click.option(
    "--self-test",
    is_flag=True,
    help="Small models and little of everything, on this checkout's history: does it run here? "
    "Some minutes.",
)
def main(
    bundle: Path | None,
    repos: tuple[Path, ...],
    folder: Path,
    output: Path,
    minutes: float,
    commits: int,
    places: int,
    only: tuple[str, ...],
    self_test: bool,
) -> None:
    """Measure on this machine's GPU; run it again until it says that all is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = resume(output)
    except (CodespecError, OSError) as e:
        raise click.ClickException(str(e)) from e
    wanted = [(SMALL, "q8_0"), (SMALL, "f16")] if self_test else _usual()
    repositories = {path.stem: path for path in sorted(bundle.glob("*.bundle"))} if bundle else {}
    for path in dict.fromkeys(path.resolve() for path in repos):
        if path.name in repositories:  # steps, folders and rows go by the name
            raise click.ClickException(f"{path.name}: two repositories of that name; rename one")
        repositories[path.name] = path
    if self_test and not repositories and (root := checkout()):
        repositories = {root.name: root}
    if not repositories:
        out.print("no Git history (--bundle, --repo): replay, pair and peers are left out")
    curves = curves_of(known)
    if self_test:
        plan = GpuPlan(wanted, (64, 256), 4, folder, repositories, 2, quick=True, curves=curves)
    else:
        plan = GpuPlan(wanted, CONTEXTS, commits, folder, repositories, places, curves=curves)
    done = {row.get("step") for row in known}
    steps = {
        name: step
        for name, step in plan.steps().items()
        if name not in done and (not only or name.startswith(only))
    }
    run(steps, output, minutes)


def run(steps: dict[str, Callable[[], list[Row]]], output: Path, minutes: float) -> None:
    """Raises: ClickException where steps failed."""
    started, failed = time.monotonic(), list[str]()
    for name, step in steps.items():
        if time.monotonic() - started > 60 * minutes:
            out.print("time is up: run the same command again for the rest")
            return
        out.print(name)
        try:
            rows = [{"step": name, **row} for row in step()]
            keep(output, results.stamped("gpu", rows))
        except Exception as e:
            # It would fail the next time, too, and nothing after it were ever measured.
            out.print(f"{name}: {_in_a_line(e)}")
            failed.append(name)
    if failed:
        raise click.ClickException(f"all done but {', '.join(failed)}: {output}")
    out.print(f"all done: {output}")


def _in_a_line(e: Exception) -> str:
    said = ". ".join(line.strip() for line in str(e).splitlines())
    is_for_users = isinstance(e, (CodespecError, OSError))
    return said if is_for_users else f"{type(e).__name__}: {said}"


def _usual() -> list[tuple[DecoderShape, str]]:
    return [*((shape, "q8_0") for shape in SHAPES), (SHAPES[0], "f16"), (SHAPES[2], "f16")]


if __name__ == "__main__":
    main()
