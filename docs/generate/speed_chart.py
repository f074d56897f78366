"""The chart of speed beside peers: the rows of one measurement as the log has them, as bars."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

LOG = Path(__file__).parents[2] / "bench" / "log" / "2026-11.md"
HEADING = "## 2026-11-29 SmolLM2 beside its peers"
ROWS = {
    "codespec": "codespec",
    "prompt lookup in our loop, n=3, width 2 (the fastest other)": "prompt lookup, our kernels",
    "llama-server, its best kind of n-gram drafting": "llama-server, its best drafting",
    "llama-server, plain": "llama-server, plain",
}
"""Row of the log's table -> its name in the chart. One more bar is the unit: plain decoding."""
PLAIN = "plain, our kernels"
_INK, _GREY, _PAPER, _OURS, _OTHERS = "#24292f", "#57606a", "#ffffff", "#0969da", "#8c959f"
_WIDTH, _LEFT, _BAR, _STEP, _TOP = 640, 232, 20, 32, 62


def figures() -> dict[str, float]:
    """Name -> speed on replayed edits, plain decoding with our kernels = 1."""
    section = LOG.read_text("utf-8").partition(HEADING)[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| (.+?) \| ([\d.]+) \|", section, re.M))
    found = {name: float(rows[row]) for row, name in ROWS.items()}
    return dict(sorted((found | {PLAIN: 1.0}).items(), key=lambda row: -row[1]))


def svg() -> str:
    """The chart, with a title and a description for who cannot see it."""
    found = figures()
    height = _TOP + len(found) * _STEP + 14
    scale = (_WIDTH - _LEFT - 60) / max(found.values())
    said = "; ".join(f"{name} {times:.2f}" for name, times in found.items())
    title = "Tokens a second beside peers, SmolLM2-135M on a CPU"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="t d" '
        'font-family="system-ui, sans-serif" font-size="14">',
        f'<title id="t">{title}</title>',
        f'<desc id="d">Plain decoding with our kernels is 1: {escape(said)}.</desc>',
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="{_PAPER}"/>',
        _text(16, 26, title, _INK, "start", "600"),
        _text(16, 46, "replayed edits of requests, one thread, AVX-512; plain = 1", _GREY),
    ]
    for n, (name, times) in enumerate(found.items()):
        y, colour = _TOP + n * _STEP, _OURS if name == "codespec" else _OTHERS
        width = times * scale
        out += [
            _text(_LEFT - 10, y + 15, name, _INK, "end"),
            f'<rect x="{_LEFT}" y="{y}" width="{width:.0f}" height="{_BAR}" rx="3" '
            f'fill="{colour}"/>',
            _text(_LEFT + width + 8, y + 15, f"{times:.2f}", _INK),
        ]
    return "\n".join([*out, "</svg>\n"])


def _text(
    x: float, y: float, said: str, colour: str, anchor: str = "start", weight: str = "400"
) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(said)}</text>'
    )
