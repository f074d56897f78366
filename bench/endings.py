"""What becomes of a suggestion whose model says what stood there.

    python -m codespec_bench.endings REPO [REPO ...]

Statements are cut out of source files, whole, from their middle on, or all but their first line,
and the true text is given for what a model says, with the rest of the file after it: what is shown
ought to be just what was cut out. "closed" is what stands between brackets, with the rest of the
line not yet typed: the editor has closed them. "words" are the last of a line, up to the signs that
it ends with, "whole" are lines, both in files without a grammar, too; there, statements are blocks,
told by their indentation and the line that closes them. "finished" is nothing, at the end of a
statement, and "below" the statement after that, the last of its block. No model is run, so the
figures are the same each time.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from codespec.backends.fake import ByteTokenizer
from codespec.engine.postprocess import UnitStop, finish, place_in, shape_at
from codespec.index.trees import Trees

from . import places

KINDS = ("statement", "rest", "under", "below", places.FINISHED, "words", "whole", "inline")
"""The last is asked as "closed"."""
TEXTS = (
    *(".bash", ".css", ".ex", ".exs", ".heex", ".html", ".json", ".kt", ".md", ".sh", ".svelte"),
    *(".toml", ".vue", ".yaml", ".yml", ".zsh"),
)
OUTCOMES = ("whole", "cut short", "too long", "other", "nothing")
N_AFTER = 600
"""Characters of the file that a model goes on with."""
STEP = 4
"""Characters a token."""


def without_line(place: places.Place) -> places.Place | None:
    """An "inline" one, as it is while its line is typed; None for the head of a body, and where no
    bracket is closed."""
    n_closing = len(place.suffix) - len(place.suffix.lstrip(")]}"))
    line, _, rest = place.suffix[n_closing:].partition("\n")
    if not n_closing or line.rstrip().endswith(("{", ":", "(", "[", ">")):
        return None
    return replace(place, kind="closed", suffix=f"{place.suffix[:n_closing]}\n{rest}")


def shown(place: places.Place) -> str:
    """What is suggested for the true text, STEP characters at a time."""
    at = place_in(Trees(), place.prefix, place.suffix, str(place.path))
    shape = shape_at(at)
    stop = UnitStop(ByteTokenizer(), shape, at)
    said = place.truth + place.suffix[:N_AFTER]
    lengths = range(STEP, len(said) + STEP, STEP)
    text = next((said[:n] for n in lengths if stop.end(said[:n]) is not None), said)
    end = stop.end(text)
    return finish(text, end, "length" if end is None else "stop", shape, at).text


def outcome(place: places.Place) -> str:
    """One of OUTCOMES."""
    text, truth = shown(place).rstrip(), place.truth.rstrip()
    if text == truth:
        return "whole"
    if not text.strip():
        return "nothing"
    if truth.startswith(text):
        return "cut short"
    return "too long" if text.startswith(truth) else "other"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m codespec_bench.endings", description=__doc__)
    parser.add_argument("repos", nargs="+", type=Path, metavar="REPO")
    parser.add_argument("--places", type=int, default=200, help="of each kind and language")
    given = parser.parse_args()
    table = Table("language", "kind", "places", *OUTCOMES, caption="per cent of the places")
    counts: dict[tuple[str, str], Counter[str]] = {}
    found = [
        place
        for repo in given.repos
        for place in places.places_in(repo, given.places, KINDS, per_file=8, texts=TEXTS)
    ]
    typed = [without_line(p) if p.kind == "inline" else p for p in found]
    found = [p for p in typed if p is not None]
    for place in track(found, "places", transient=True):
        counts.setdefault((place.language, place.kind), Counter())[outcome(place)] += 1
    for (language, kind), by_outcome in sorted(counts.items()):
        n = by_outcome.total()
        shares = (f"{100 * by_outcome[outcome] / n:.1f}" for outcome in OUTCOMES)
        table.add_row(language, kind, str(n), *shares)
    Console().print(table)


if __name__ == "__main__":
    main()
