"""`codespec bench curve`: what a pass of a model costs on this machine, by its number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from codespec.backends.llama import kernels
from codespec.backends.registry import open_model, target_of
from codespec.config import Settings
from codespec.cost.cost_curve import CostCurve
from codespec.cost.measure import measure

from .results import Row


def run(
    settings: Settings,
    n_contexts: Sequence[int] = (64, 512, 1024),
    n_repeats: int = 9,
    progress: Callable[[int], None] = lambda n_context: None,
) -> list[Row]:
    """One row a context length: n_context, t1_ms, n, ratio, back; where products of matrices are
    our own, before those another with llama.cpp's. Raises: ModelError."""
    # A curve is measured in the first half of the cache.
    n_ctx, n_threads = 2 * max(n_contexts), settings.model.n_threads
    whose = ("llama.cpp", kernels.NAME) if kernels.NAME else ("llama.cpp",)
    rows: list[Row] = []
    for name in whose:
        with (
            nullcontext() if name == kernels.NAME else kernels.switched_off(),
            closing(open_model(target_of(settings.model))) as model,
            closing(model.context(n_ctx=n_ctx, n_threads=n_threads)) as target,
        ):
            for n_context in n_contexts:
                progress(n_context)
                curve = measure(target, n_context, n_repeats, budget_s=20.0)
                rows.append(
                    {
                        "model": model.info.name,
                        "backend": model.info.backend,
                        "kernels": name,
                        "n_threads": target.n_threads,
                        "n_context": n_context,
                        **as_ratios(curve),
                        "reads_again": not target.can.rolls_back,
                    }
                )
    return rows


def as_ratios(curve: CostCurve) -> Row:
    """The form of a curve file: {"t1_ms", "n", "ratio", "back"}, and "steady" where that was
    measured."""
    t1 = curve.points[1]
    steady = {str(n): round(ms / t1, 3) for n, ms in curve.steady.items()}
    return {
        "t1_ms": round(t1, 4),
        "n": list(curve.points),
        "ratio": [round(ms / t1, 3) for ms in curve.points.values()],
        "back": round(curve.back_ms / t1, 3),
        **({"steady": steady} if steady else {}),
    }


_SAVED = "t1_ms", "n", "ratio", "back", "steady", "reads_again"


def save(row: Row, path: Path) -> None:
    """One row as a file for `bench replay --curve`."""
    path.write_bytes(msgspec.json.encode({key: row[key] for key in _SAVED if key in row}))


def print_rows(rows: list[Row]) -> None:
    first = rows[0]
    table = Table(
        "tokens",
        title=f"{first['model']}, {first['backend']}, threads: {first['n_threads']}; "
        "a pass, in passes of one token",
    )
    for row in rows:
        table.add_column(f"{row['kernels']}, after {row['n_context']}", justify="right")
    table.add_row("1, ms", *(f"{row['t1_ms']:.3f}" for row in rows), end_section=True)
    for i, n in enumerate(first["n"]):
        table.add_row(str(n), *(f"{row['ratio'][i]:.2f}" for row in rows))
    for n in first.get("steady", ()):
        table.add_row(f"{n} after {n}", *(f"{row['steady'][n]:.2f}" for row in rows))
    table.add_row("more, going back", *(f"{row['back']:.2f}" for row in rows))
    Console(markup=False).print(table)
