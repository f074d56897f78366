"""Plots of results as SVG that is read on light and dark pages and on paper.

matplotlib draws them; text and axes take the page's own colour, series the palette of Okabe and
Ito (2008), which people of all colour visions tell apart.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from codespec.errors import InputError

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00", "#7f7f7f")
_STROKES = ("-", "--", ":", "-.")
# Written by matplotlib, replaced by the page's colour afterwards.
_INK = "#010203"
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "codespec",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": _INK,
    "text.parse_math": False,  # names of models may hold dollar signs
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
}

Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""Name -> x, y."""


def lines(series: Series, x: str, y: str, diagonal: bool = False) -> str:
    """One line a series. diagonal: also the line on which y equals x."""

    def draw(axes: Any) -> None:
        for name, (xs, ys) in series.items():
            axes.plot(xs, ys, marker="o", markersize=3, label=_label(name))
        if diagonal:
            axes.plot([0, 1], [0, 1], color=_INK, linewidth=0.5, linestyle=":")
        axes.set(xlabel=x, ylabel=y)
        axes.set_ylim(bottom=0)
        if len(series) > 1:
            _legend(axes)

    return _svg(draw, _height(series))


def bars(groups: Mapping[str, Mapping[str, float]], y: str, mark: float | None = None) -> str:
    """Horizontal bars: group -> name -> value. mark: a value to compare with."""
    names = list(dict.fromkeys(name for values in groups.values() for name in values))
    height = 0.8 / max(len(groups), 1)

    def draw(axes: Any) -> None:
        for i, (group, values) in enumerate(groups.items()):
            at = np.arange(len(names)) + (i - (len(groups) - 1) / 2) * height
            axes.barh(at, [values.get(n, np.nan) for n in names], height * 0.9, label=_label(group))
        axes.set_yticks(np.arange(len(names)), map(_label, names))
        axes.invert_yaxis()
        axes.set_xlabel(y)
        if mark is not None:
            axes.axvline(mark, color=_INK, linewidth=0.7, linestyle=":")
        if len(groups) > 1:
            _legend(axes)

    return _svg(draw, max(0.6 + 0.22 * len(names) * len(groups) ** 0.6, _height(groups, 0.0)))


def distribution(samples: Mapping[str, Sequence[float]], x: str) -> str:
    """Share of the samples at or below each value; the tail is what users notice."""
    series = {
        name: (np.sort(values).tolist(), (np.arange(1, len(values) + 1) / len(values)).tolist())
        for name, values in samples.items()
        if len(values)
    }

    def draw(axes: Any) -> None:
        for name, (xs, ys) in series.items():
            axes.step([*xs[:1], *xs], [0.0, *ys], where="post", label=_label(name))
        for share in (0.5, 0.95):
            axes.axhline(share, color=_INK, linewidth=0.4, linestyle=":")
        axes.set(xlabel=x, ylabel="share of requests", ylim=(0, 1.02))
        axes.set_xlim(left=0)
        _legend(axes)

    return _svg(draw, _height(series))


def _height(named: Collection[str], least: float = 3.0) -> float:
    """Inches that hold the legend, too."""
    n_lines = sum(_label(name).count("\n") + 1 for name in named)
    return max(least, 0.4 + 0.18 * n_lines) if len(named) > 1 else least


def _label(name: str) -> str:
    """In lines that leave room for the plot."""
    return textwrap.fill(name, 40)


def _legend(axes: Any) -> None:
    """Beside the plot, where it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.5)


def _svg(draw: Any, height: float) -> str:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8.0, height), layout="constrained")
        axes = figure.add_subplot()
        # With more than there are colours, these come again in other strokes.
        strokes = [stroke for stroke in _STROKES for _ in PALETTE]
        axes.set_prop_cycle(color=PALETTE * len(_STROKES), linestyle=strokes)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    start = text.find("<svg")
    if start < 0:
        raise InputError("matplotlib wrote no SVG")
    # Ids of several plots on one page must differ; none is referred to from outside.
    salt = f"p{abs(hash(text)) % 10**9}"
    text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{salt}", text[start:])
    return text.replace(_INK, "currentColor")
