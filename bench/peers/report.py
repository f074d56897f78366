"""The comparison for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Column, Table

from ..results import Row
from .run import Missing


def print_rows(rows: Sequence[Row]) -> None:
    out = Console()
    for workload in dict.fromkeys(str(row["workload"]) for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        table = Table(
            Column(no_wrap=True),
            title=f"{workload}: {mine[0]['n_requests']} requests to {mine[0]['model']} "
            f"on {mine[0]['backend']}",
        )
        for column in (
            "tokens/s",
            "of plain",
            "predicted",
            "tokens a pass",
            "accepted",
            "same text",
        ):
            table.add_column(column, justify="right")
        for row in sorted(mine, key=lambda row: -float(row["ratio_to_plain"])):
            table.add_row(
                row["config"],
                f"{row['tok_per_s']:.0f}",
                f"{row['ratio_to_plain']:.2f}",
                f"{row['predicted_ratio']:.2f}" if "predicted_ratio" in row else "",
                f"{row['mat']:.2f}",
                f"{row['accepted'] / row['drafted']:.0%}" if row["drafted"] else "",
                f"{row['same']:.0%}",
                style="bold" if row["config"] == "codespec" else "",
            )
        out.print(table)


def print_missing(missing: Sequence[Missing]) -> None:
    out = Console(stderr=True)
    for peer in missing:
        out.print(f"left out: {peer.config}: {peer.why}. {peer.hint}", markup=False, soft_wrap=True)
