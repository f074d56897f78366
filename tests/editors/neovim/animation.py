"""An animated SVG of a terminal's frames: each row's content is drawn once, and shown while it
stands there. No script and no font is needed; where nothing moves, the last frame is seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from .painted import Painting, Style

_WIDTH, _HEIGHT, _MARGIN = 8.4, 19.0, 14.0
_END_S = 2.5
"""Seconds for which the last frame is shown."""
_TITLE = "codespec in Neovim"


def animated(paintings: Sequence[Painting], most_s: float, alternative: str = "") -> str:
    """The SVG. most_s: longest time of a frame. alternative: what happens, for who cannot see."""
    shown = [p for n, p in enumerate(paintings) if n == 0 or _looks(p) != _looks(paintings[n - 1])]
    times = _times(shown, most_s)
    total_s = times[-1] + _END_S
    n_columns = max(sum(len(text) for text, _ in row) for row in shown[0].rows)
    width, height = n_columns * _WIDTH + 2 * _MARGIN, len(shown[0].rows) * _HEIGHT + 2 * _MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-labelledby="t d" '
        "font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" "
        'font-size="14" xml:space="preserve">',
        f'<title id="t">{_TITLE}</title><desc id="d">{escape(alternative)}</desc>',
        f'<rect width="100%" height="100%" rx="8" fill="#{shown[0].paper:06x}"/>',
    ]
    spans: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for begin_s, end_s, painting in zip(times, [*times[1:], total_s], shown, strict=True):
        for number, drawn in enumerate(_rows(painting)):
            if not drawn:
                continue
            seen = spans[number, drawn]
            if seen and seen[-1][1] == begin_s:
                seen[-1] = (seen[-1][0], end_s)
            else:
                seen.append((begin_s, end_s))
    for (_, drawn), seen in spans.items():
        # Where nothing moves, the last frame is seen.
        hidden = "" if seen[-1][1] == total_s else ' display="none"'
        out.append(f"<g{hidden}>{drawn}{_animation(seen, total_s)}</g>")
    return "\n".join([*out, "</svg>\n"])


def _looks(painting: Painting) -> object:
    return painting.rows, painting.cursor, painting.is_inserting


def _times(paintings: Sequence[Painting], most_s: float) -> list[float]:
    """Seconds from the start to each frame, long waits cut."""
    found = [0.0]
    for before, after in pairwise(paintings):
        found.append(round(found[-1] + min(most_s, after.at_s - before.at_s), 3))
    return found


def _rows(painting: Painting) -> list[str]:
    """Drawings of each row, and of the cursor; "" for nothing."""
    found = [_row(n, runs, painting.paper) for n, runs in enumerate(painting.rows)]
    row, column = painting.cursor
    width = 2.0 if painting.is_inserting else _WIDTH
    return [*found, (
        f'<rect x="{_MARGIN + column * _WIDTH:.1f}" y="{_MARGIN + row * _HEIGHT:.1f}" '
        f'width="{width}" height="{_HEIGHT}" fill="#e0e2ea" fill-opacity="0.75"/>'
    )]  # fmt: skip


def _row(number: int, runs: Sequence[tuple[str, Style]], paper: int) -> str:
    y, column, out = _MARGIN + number * _HEIGHT, 0, list[str]()
    for text, style in runs:
        x, width = _MARGIN + column * _WIDTH, len(text) * _WIDTH
        column += len(text)
        if style.background != paper:
            out.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_HEIGHT}" '
                f'fill="#{style.background:06x}"/>'
            )
        said = text.rstrip()
        if not said.strip():
            continue
        n_blank = len(said) - len(said.lstrip())
        said = said.lstrip()
        more = ' font-weight="bold"' if style.bold else ""
        more += ' font-style="italic"' if style.italic else ""
        more += ' text-decoration="line-through"' if style.strikethrough else ""
        out.append(
            f'<text x="{x + n_blank * _WIDTH:.1f}" y="{y + 14.5:.1f}" '
            f'textLength="{len(said) * _WIDTH:.1f}" lengthAdjust="spacingAndGlyphs" '
            f'fill="#{style.foreground:06x}"{more}>{escape(said, quote=False)}</text>'
        )
    return "".join(out)


def _animation(seen: Sequence[tuple[float, float]], total_s: float) -> str:
    """Times at which a drawing is shown; nothing where it always is."""
    if list(seen) == [(0.0, total_s)]:
        return ""
    changes: dict[float, str] = {0.0: "none"}
    for begin_s, end_s in seen:
        changes[begin_s] = "inline"
        if end_s < total_s:
            changes[end_s] = "none"
    at = sorted(changes)
    return (
        f'<animate attributeName="display" dur="{total_s:.3f}s" repeatCount="indefinite" '
        f'calcMode="discrete" keyTimes="{";".join(f"{s / total_s:.5f}" for s in at)}" '
        f'values="{";".join(changes[s] for s in at)}"/>'
    )
