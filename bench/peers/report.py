"""The comparison for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Column, Table

from ..results import Row
from .run import PLAIN, Missing, is_other


def print_rows(rows: Sequence[Row]) -> None:
    out = Console(markup=False)
    for workload in dict.fromkeys(str(row["workload"]) for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        table = Table(
            Column(),
            title=f"{workload}: {mine[0]['n_requests']} requests to {mine[0]['model']} "
            f"on {mine[0]['backend']}",
            caption="tok/s, in units of plain decoding's, with its 95 % interval; predicted by "
            "passes and our own work; tokens a pass; accepted of drafted; same text as plain",
            box=box.SIMPLE_HEAD,
            padding=0,
        )
        for column in ("tok/s", "ratio", "95 %", "pred.", "a pass", "acc.", "same"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in sorted(mine, key=lambda row: -float(row["ratio_to_plain"])):
            table.add_row(
                row["config"],
                f"{row['tok_per_s']:.0f}",
                f"{row['ratio_to_plain']:.2f}",
                f"{row['ratio_low']:.2f}-{row['ratio_high']:.2f}" if "ratio_low" in row else "",
                f"{row['predicted_ratio']:.2f}" if "predicted_ratio" in row else "",
                f"{row['mat']:.2f}",
                f"{row['accepted'] / row['drafted']:.0%}" if row["drafted"] else "",
                f"{row['same']:.0%}",
                style="bold" if row["config"] == "codespec" else "",
            )
        out.print(table)
        _print_best(out, mine)


def _print_best(out: Console, rows: Sequence[Row]) -> None:
    for row in rows:
        # Of those that answered as many requests, as the ratio is.
        best = max(
            (
                other
                for other in rows
                if is_other(str(other["config"])) and other["n_requests"] == row["n_requests"]
            ),
            key=lambda other: float(other["tok_per_s"]),
            default=None,
        )
        if "ratio_to_best_other" in row and row["config"] != PLAIN and best is not None:
            low, high = (row.get(f"ratio_to_best_other_{end}") for end in ("low", "high"))
            interval = "" if low is None else f" (95 %: {low:.2f} to {high:.2f})"
            own = (
                f"; of its own {row['begin_ms']:.2f} ms a request and {row['own_us']:.0f} us a pass"
                if "own_us" in row
                else ""
            )
            out.print(
                f"{row['config']}: {row['ratio_to_best_other']:.2f} times {best['config']}, the "
                f"fastest other{interval}{own}",
                highlight=False,
                soft_wrap=True,
            )


def print_missing(missing: Sequence[Missing]) -> None:
    out = Console(stderr=True)
    for how, why, hint in dict.fromkeys((peer.how, peer.why, peer.hint) for peer in missing):
        configs = ", ".join(peer.config for peer in missing if peer.why == why)
        out.print(f"{how}: {configs}: {why}. {hint}".strip(), markup=False, soft_wrap=True)
