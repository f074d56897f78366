"""`codespec bench report`: results as one HTML page that needs nothing else."""

from __future__ import annotations

import html
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from codespec.errors import InputError

from . import plots
from .latency import WORDS as LATENCIES
from .origins import told_apart
from .results import Row, figures, identity

Plots: TypeAlias = Iterable[tuple[str, str]]
"""Caption, SVG."""

_REFERENCES = frozenset(
    {"prompt-lookup", "fixed", "suffix-trie", "suffix-trie-tree", "ideal", "plain"}
)
"""Configurations of the replay that are not ours; plots of drafts show ours."""

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
figure { margin: 1.5rem 0; } figcaption { font-size: 13px; opacity: .75; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
.note { opacity: .75; }
@media print {
  body { max-width: none; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; }
  table { display: table; width: 100%; font-size: 6px; }
  th, td { padding: 1px 2px; } th { overflow-wrap: anywhere; } td { white-space: nowrap; }
  th:first-child, td:first-child { white-space: normal; }
}
"""


def page(rows: Sequence[Row]) -> str:
    """The whole report: a section a benchmark, in the order of their first rows.

    Raises: InputError where a figure to be drawn is none.
    """
    (rows,) = told_apart(rows)
    stamps = {str(row["machine"]): row["machine"] for row in rows if "machine" in row}
    parts = ["<h1>codespec: benchmark report</h1>", *_machines(list(stamps.values()))]
    if len(stamps) > 1:
        numbers = {stamp: f"machine {n}" for n, stamp in enumerate(stamps, 1)}
        rows = [{**row, "on": numbers.get(str(row.get("machine")), "no machine")} for row in rows]
    for bench in dict.fromkeys(str(row.get("bench", "")) for row in rows):
        mine = folded([row for row in rows if str(row.get("bench", "")) == bench])
        parts.append(f"<h2>{html.escape(bench)}</h2>")
        for draw in _PLOTS.get(bench, ()):
            try:
                parts += [_figure(caption, plot) for caption, plot in draw(mine)]
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
                raise InputError(
                    f"a result of {bench!r} is damaged: {e}", "Give what a benchmark wrote."
                ) from e
        parts.append(_table(mine))
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>codespec benchmark report</title><style>{_STYLE}</style></head>"
        f"<body>\n{body}\n</body></html>\n"
    )


def folded(rows: Sequence[Row]) -> list[Row]:
    """One row for what was measured several times on one machine: medians of its figures, all else
    as it was last."""
    runs: dict[object, list[Row]] = {}
    for row in rows:
        runs.setdefault((identity(row), str(row.get("machine"))), []).append(row)
    out: list[Row] = []
    for same in runs.values():
        middle = {
            name: statistics.median(figures(row)[name] for row in same if name in figures(row))
            for name in figures(same[-1])
        }
        out.append({**same[-1], **middle, **({"n_runs": len(same)} if len(same) > 1 else {})})
    return out


def write(rows: Sequence[Row], path: Path) -> None:
    """Raises: InputError."""
    try:
        path.write_text(page(rows), "utf-8")
    except OSError as e:
        raise InputError(f"{path}: {e.strerror}", "Give a file that can be written.") from e


def _figure(caption: str, plot: str) -> str:
    return f"<figure>{plot}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _machines(stamps: Sequence[Row]) -> Iterable[str]:
    """Numbered where there are several; one of another commit counts as another."""
    for n, machine in enumerate(stamps, 1):
        said = ", ".join(f"{key} {value}" for key, value in machine.items())
        number = f"machine {n}: " if len(stamps) > 1 else ""
        yield f'<p class="note">{html.escape(number + said)}</p>'


def _table(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in figures(row)))
    lines = ["<table><tr><th></th>" + "".join(f"<th>{html.escape(c)}</th>" for c in columns)]
    for row in rows:
        name = " ".join(text for key, text in identity(row) if key != "bench")
        cells = "".join(f"<td>{_number(figures(row).get(c))}</td>" for c in columns)
        lines.append(f"</tr><tr><td>{html.escape(name)}</td>{cells}")
    return "".join(lines) + "</tr></table>"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _grouped(rows: Sequence[Row], group: str, value: str) -> dict[str, dict[str, float]]:
    """Group -> configuration -> figure."""
    out: dict[str, dict[str, float]] = {}
    chosen = [row for row in rows if value in row and "config" in row]
    for name, row in _named(chosen, group, apart=("config",)):
        out.setdefault(name, {})[str(row["config"])] = float(row[value])
    return out


def _named(rows: Sequence[Row], *keys: str, apart: Sequence[str] = ()) -> Iterable[tuple[str, Row]]:
    """Rows with a name of their words under `keys`, and of whatever else tells apart those that
    would have one name and the same words under `apart`: repository, machine, model, ..."""
    words = [dict(identity(row)) for row in rows]
    alike: dict[str, dict[object, list[dict[str, str]]]] = {}
    for of in words:
        same = alike.setdefault(_name(of, *keys), {})
        same.setdefault(tuple(of.get(key) for key in apart), []).append(of)
    for of, row in zip(words, rows, strict=True):
        name = _name(of, *keys)
        differ = [
            key
            for key in of
            if key not in _NO_NAMES
            and any(len({o.get(key) for o in same}) > 1 for same in alike[name].values())
        ]
        yield ", ".join(filter(None, (name, _name(of, *differ)))), row


def _speed(rows: Sequence[Row]) -> Plots:
    groups = _grouped(rows, "curve", "speedup")
    if groups:
        plot = plots.bars(groups, "speed in units of plain decoding", 1.0)
        yield "Each way of drafting, with the true text in place of a model", plot


def _model_speed(rows: Sequence[Row]) -> Plots:
    groups = _grouped(rows, "model", "speedup")
    if groups:
        plot = plots.bars(groups, "speed in units of plain decoding", 1.0)
        yield "Whole completions by the model on the clock; the ideal is computed", plot


def _peers(rows: Sequence[Row]) -> Plots:
    groups = _grouped(rows, "workload", "ratio_to_plain")
    if groups:
        plot = plots.bars(groups, "tokens a second in units of plain decoding", 1.0)
        yield "The same requests to the same model", plot


def _acceptance(rows: Sequence[Row]) -> Plots:
    """by_source: source -> [accepted, drafted]; by_position: the same by place in the draft."""
    groups: dict[str, dict[str, float]] = {}
    series: dict[str, tuple[list[float], list[float]]] = {}
    for name, row in _named(rows, "config", "curve"):
        sources: dict[str, Any] = row.get("by_source", {})
        shares = {source: a / n for source, (a, n) in sources.items() if n}
        if shares and row.get("config") not in _REFERENCES:
            groups[name] = shares
        positions: list[Any] = row.get("by_position", [])
        points = [(i + 1, a / n) for i, (a, n) in enumerate(positions) if n]
        if points and row.get("config") not in _REFERENCES:
            series[name] = ([float(x) for x, _ in points], [y for _, y in points])
    if groups:
        yield (
            "Acceptance by source: share of the drafted tokens that the model agreed with",
            plots.bars(groups, "share of drafted tokens that were accepted"),
        )
    if series:
        yield (
            "Acceptance by place in the draft",
            plots.lines(series, "place in the draft", "share accepted"),
        )


def _curves(rows: Sequence[Row]) -> Plots:
    series = {
        " ".join(text for key, text in identity(row) if key not in _NO_NAMES): (
            row["n"],
            row["ratio"],
        )
        for row in rows
        if "ratio" in row and "n" in row
    }
    if series:
        plot = plots.lines(series, "tokens in the pass", "in passes of one token")
        yield "T(n), the cost of a pass", plot


def _latency(rows: Sequence[Row]) -> Plots:
    for title, row in _named(rows, "config"):
        samples: dict[str, list[float]] = row.get("samples", {})
        if any(samples.values()):
            named = {LATENCIES.get(name, name): values for name, values in samples.items()}
            yield f"Latency: {title}", plots.distribution(named, "ms")


def _reliability(rows: Sequence[Row]) -> Plots:
    """reliability: source -> [[how many, predicted, accepted], ...]."""
    for name, row in _named(rows, "config", "curve"):
        found: dict[str, list[list[float]]] = row.get("reliability", {})
        series = {
            source: ([p[1] for p in points], [p[2] for p in points])
            for source, all_points in found.items()
            if (points := [p for p in all_points if p[0] >= _FEW])
        }
        if series:
            plot = plots.lines(series, "predicted probability", "share accepted", diagonal=True)
            caption = f"Reliability of the calibration, {name}: on the diagonal is right"
            yield f"{caption}; points of fewer than {_FEW} tokens left out", plot


_FEW = 10
_NO_NAMES = frozenset({"bench", "step", "backend"})
"""Words of rows that names of lines and bars do without."""


def _name(row: Row, *keys: str) -> str:
    return ", ".join(str(row[key]) for key in keys if key in row)


_PLOTS: dict[str, tuple[Callable[[Sequence[Row]], Plots], ...]] = {
    "replay": (_speed, _acceptance, _reliability),
    "replay-model": (_model_speed, _acceptance),
    "peers": (_peers,),
    "curve": (_curves,),
    "gpu": (_curves, _speed, _peers, _acceptance),
    "latency": (_latency, _acceptance),
}
