"""Figures of `completion.eagerness`: what is shown at each of its values, how much of that is
right, and how the probabilities that were said compare with what stood there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from codespec.config import Settings
from codespec.suggest.eagerness import n_likely
from codespec.usage.kept_odds import BARS

from .eager_places import ASKED, Lines, lines_at_places
from .places import FINISHED, places_in

N_BINS = 5
Shown = Callable[[Lines], int]
"""The number of lines of a suggestion that a rule shows."""


def run(repos: Sequence[Path], settings: Settings, n: int) -> list[dict[str, Any]]:
    """`rows_of` for `n` places of each kind and language. Raises: InputError, ModelError."""
    places = [place for repo in repos for place in places_in(repo.resolve(), n, ASKED)]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("completing", total=None)
        model, found = lines_at_places(
            places, settings, lambda i, n: bar.update(task, completed=i, total=n)
        )
    return list(rows_of(found, model))


def rows_of(found: Sequence[Lines], model: str) -> Iterator[dict[str, Any]]:
    """A row for each kind of place, and rule: the values of `completion.eagerness`, and for each of
    these the rule by length alone that keeps as many right characters. exact: share of what is
    shown; exact_kept, exact_chars_kept: share of what is exact at "high". Rows of the kind "said"
    compare probabilities with what stood there, from the least likely fifth on."""
    kinds = sorted({lines.at for lines in found})
    for kind in (*kinds, "all"):
        of_kind = [lines for lines in found if kind in (lines.at, "all")]
        for rule, shown in _rules(of_kind):
            yield {"model": model, "kind": kind, "rule": rule, **figures(of_kind, shown)}
    yield from ({"model": model, "kind": "said", **row} for row in calibration(found))


def _rules(found: Sequence[Lines]) -> Iterator[tuple[str, Shown]]:
    yield "high", lambda lines: len(lines.scores)
    for level in ("medium", "low"):
        shown = by_chance(BARS[level])
        yield level, shown
        yield f"{level}, by length", best_by_length(found, figures(found, shown))


def by_chance(bar: float) -> Shown:
    """The rule of the product, without a user's own outcomes."""
    return lambda lines: n_likely(lines.chances, bar, 0.0, 0)


def by_length(n_chars: int, *, is_whole: bool) -> Shown:
    """The rule that shows as many lines as have so many characters; is_whole: all or none."""

    def shown(lines: Lines) -> int:
        n = sum(score.n_chars <= n_chars for score in lines.scores)
        return n if not is_whole or n == len(lines.scores) else 0

    return shown


def best_by_length(found: Sequence[Lines], least: dict[str, float]) -> Shown:
    """The rule by length that is right most often, of those that keep as many right characters as
    `least` has."""
    lengths = sorted({score.n_chars for lines in found for score in lines.scores})
    rules = [by_length(n, is_whole=whole) for n in lengths for whole in (False, True)]
    judged = [(figures(found, rule), i) for i, rule in enumerate(rules)]
    kept = "exact_chars_kept"
    fitting = [(f["exact"], -i) for f, i in judged if f[kept] >= least[kept]]
    return rules[-max(fitting)[1]] if fitting else lambda lines: len(lines.scores)


def figures(found: Sequence[Lines], shown: Shown) -> dict[str, float]:
    """Counts and shares of what a rule shows."""
    whole = _counts((lines, len(lines.scores)) for lines in found)
    n_shown, n_exact, n_chars, n_exact_chars = _counts((lines, shown(lines)) for lines in found)
    return {
        "n": len(found),
        "shown": n_shown,
        "shown_chars": n_chars,
        "exact": n_exact / max(1, n_shown),
        "exact_chars": n_exact_chars / max(1, n_chars),
        "exact_kept": n_exact / max(1, whole[1]),
        "exact_chars_kept": n_exact_chars / max(1, whole[3]),
    }


def _counts(shown: Iterable[tuple[Lines, int]]) -> tuple[int, int, int, int]:
    """(suggestions shown, exact ones of them, characters of both)"""
    n_shown = n_exact = n_chars = n_exact_chars = 0
    for lines, n in shown:
        chars = lines.n_chars[n - 1] if n else 0
        is_exact = chars > 0 and lines.right[n - 1]
        n_shown, n_chars = n_shown + (chars > 0), n_chars + chars
        n_exact, n_exact_chars = n_exact + is_exact, n_exact_chars + is_exact * chars
    return n_shown, n_exact, n_chars, n_exact_chars


def calibration(found: Sequence[Lines]) -> Iterator[dict[str, Any]]:
    """said: mean probability of whole suggestions in a bin; exact: share that stood there."""
    told = sorted((lines.chances[-1], lines.right[-1]) for lines in found)
    for i in range(N_BINS):
        part = told[len(told) * i // N_BINS : len(told) * (i + 1) // N_BINS]
        if part:
            said, exact = mean(p for p, _ in part), mean(float(right) for _, right in part)
            yield {"rule": f"bin {i + 1}", "n": len(part), "said": said, "exact": exact}


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Tables of these rows."""
    out = Console(markup=False)
    for kind in (*ASKED, "all"):
        of_kind = [row for row in rows if row["kind"] == kind]
        if of_kind:
            words = "nothing is exact here" if kind == FINISHED else ""
            table = Table(title=f"{kind}: {of_kind[0]['model']}", caption=words)
            for name in ("eagerness", "shown", "exact", "exact kept", "characters"):
                table.add_column(name, justify="left" if name == "eagerness" else "right")
            for row in of_kind:
                shares = (row[k] for k in ("exact", "exact_kept", "exact_chars_kept"))
                table.add_row(row["rule"], f"{row['shown']}", *(f"{s:.1%}" for s in shares))
            out.print(table)
    said = Table("said", "exact", "n", title="probability of whole suggestions")
    for row in rows:
        if row["kind"] == "said":
            said.add_row(f"{row['said']:.3f}", f"{row['exact']:.3f}", f"{row['n']}")
    out.print(said)
