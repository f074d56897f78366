"""The figures of `codespec bench index` as tables, beside what they ought to be."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from .index import Result
from .peer import PACKAGE

# (what, key, goal: at most; negative: at least; 0: none was set)
_GOALS = (
    ("bytes a token", "bytes_per_token", 6),
    ("bytes a token, large vocabulary", "bytes_per_token_wide", 8),
    ("build, Mtok/s of one core", "build_mtok_per_s", -6),
    ("draft of 16, us p50", "lookup_us_p50", 4),
    ("draft of 16, us p99", "lookup_us_p99", 15),
    ("- a tenth of the documents dead, us p50", "lookup_dead_us_p50", 0),
    ("- a tenth of the documents dead, us p99", "lookup_dead_us_p99", 0),
    ("- caches evicted, us p50", "lookup_cold_us_p50", 0),
    ("- caches evicted, us p99", "lookup_cold_us_p99", 0),
    ("- first ones after opening, us p50", "lookup_first_us_p50", 0),
    ("- first ones after opening, us p99", "lookup_first_us_p99", 0),
    ("open, ms", "open_ms", 50),
    ("compare all checksums, ms", "check_ms", 0),
    ("edit until drafted from, ms", "edit_ms", 5),
    ("- of it the syntax tree, ms", "edit_tree_ms", 0),
    ("source files to searchable, MB/s", "source_mb_per_s", -4),
    ("- MB a second of CPU time", "source_mb_per_cpu_s", 0),
    ("branch switch, s", "switch_s", 2),
    ("- files it changes", "switch_files", 0),
    ("- s of CPU time", "switch_cpu_s", 0),
    ("- answers meanwhile", "switch_answers", 0),
    ("- longest wait for one, ms", "switch_longest_wait_ms", 0),
)


def print_rows(rows: list[Result]) -> None:
    """Print the rows as tables, for people."""
    (result,) = rows
    out = Console(highlight=False, markup=False)
    out.print(_goal_table("index", result, 1))
    if "scale" in result:
        out.print(_goal_table("scale test", result["scale"], 2))
    side = result["side_by_side"]
    table = Table(
        *("", "bytes/token", "Mtok/s", "us p50", "us p99", "accepted"),
        title=f"the same {side['n_tokens']:,} tokens",
    )
    sides = (
        ("segment", "segment"),
        ("automaton", "automaton (exact)"),
        ("peer", f"{PACKAGE} (exact)"),
    )
    for key, name in sides:
        if side[key] is not None:
            values = (f"{v:.2f}" for v in side[key].values())
            table.add_row(name, *values)
    out.print(table)
    if side["peer"] is None:
        out.print(f"for the peer: install the package {PACKAGE}, or give --peer its _C extension")
    out.print(f"peak memory of this process: {result['peak_gib']:.2f} GiB")
    machine = result["machine"]
    out.print(", ".join(f"{k} {v}" for k, v in machine.items()))


def _goal_table(what: str, result: Result, slack: int) -> Table:
    """slack: how many times its goal a figure may take."""
    table = Table("", "measured", "goal", title=f"{what}: {result['n_tokens']:,} tokens")
    for name, key, goal in _GOALS:
        if key in result:
            bound = f"<= {goal * slack}" if goal > 0 else f">= {-goal / slack:g}" if goal else ""
            table.add_row(name, f"{result[key]:.2f}", bound)
    return table
