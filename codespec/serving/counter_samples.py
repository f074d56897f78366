"""Counters of drafts for an engine as samples of a metrics page. No text, no paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_PREFIX = "codespec_draft_"


class CounterSeries(NamedTuple):
    """A metric that only grows. name: without the suffix "_total", which formats add.

    labels: names of the labels. values: value by the labels' values.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]


_PLAIN = {
    "steps": ("n_steps", "Steps of the engine.", 1.0),
    "rows": ("n_rows", "Rows in these steps, those without drafts included.", 1.0),
    "requests": ("n_begun", "Requests that were drafted for.", 1.0),
    "tokens": ("n_drafted", "Tokens that were handed to the engine as drafts.", 1.0),
    "wait_seconds": ("ms", "Time that the engine waited for drafts.", 1e-3),
    "begin_seconds": ("begin_ms", "Part of it in which requests began.", 1e-3),
}
_LOST = {
    "late": "n_late",
    "busy": "n_left_out",
    "failed": "n_failed",
    "refused": "n_refused",
    "no_time": "n_cut",
}


def series_of(stats: Mapping[str, Any]) -> Iterator[CounterSeries]:
    """The metrics of `RowCounters.as_dict`. Raises: KeyError, TypeError for another thing."""
    for name, (field, meaning, unit) in _PLAIN.items():
        yield CounterSeries(_PREFIX + name, meaning, (), {(): unit * float(stats[field])})
    yield CounterSeries(
        f"{_PREFIX}lost",
        "Steps (late, busy, failed) and rows (failed, refused, no_time) that went without drafts.",
        ("why",),
        {(why,): float(stats[field]) for why, field in _LOST.items()},
    )
    drafted: dict[tuple[str, ...], float] = {}
    accepted: dict[tuple[str, ...], float] = {}
    for workspace, by_source in stats["by_workspace"].items():
        for source, counts in by_source.items():
            drafted[workspace, source] = float(counts["n_drafted"])
            accepted[workspace, source] = float(counts["n_accepted"])
    labels = ("workspace", "source")
    ended = 'by requests that ended; workspace "": of none'
    yield CounterSeries("codespec_drafted_tokens", f"Tokens drafted, {ended}.", labels, drafted)
    yield CounterSeries(
        "codespec_accepted_tokens", f"Of these, accepted, {ended}.", labels, accepted
    )
