"""The fate of a suggestion whose model says what stood there.

    python -m codespec_bench.maintainers.endings REPO [REPO ...] [--answers FILE]
    python -m codespec_bench.maintainers.endings --said FILE [--answers FILE]
    python -m codespec_bench.maintainers.endings --against FILE [--answers FILE]

Statements are cut out of source files, whole, from their middle on, or all but their first line,
and the true text is given for what a model says, with the rest of the file after it: what is shown
ought to be just what was cut out. "closed" is what stands between brackets, with the rest of the
line not yet typed: the editor has closed them. "words" are the last of a line, up to the signs that
it ends with, "whole" are lines, both in files without a grammar, too; there, statements are blocks,
told by their indentation and the line that closes them. "finished" is nothing, at the end of a
statement, and "below" the statement after that, the last of its block. The other kinds stand in
`bench/places.py`. No model is run, so the figures are the same each time.

With --said, the places are those of answers of `codespec bench quality`, and what its model said
there is said again. With --against, they are those of answers that another version kept with
--answers, and the two are compared place by place: a version before a change asks first, with this
folder copied over its own `bench`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from codespec.backends.byte_tokens import ByteTokenizer
from codespec.engine.generation import generation_at
from codespec.requests import CompletionRequest
from codespec.syntax.trees import TreeCache
from codespec.types import NO_TOKENS, Context, Trace

from .. import answers, places, results
from ..gains_table import print_gains, told
from ..judge import breaks, similarity

KINDS = (
    *("statement", "rest", "under", "below", places.FINISHED, "words", "whole", "inline"),
    *(*places.LITERALS, *places.CLOSERS, *places.LAYOUT),
)
""" "inline" is asked as "closed"."""
OUTCOMES = ("whole", "cut short", "too long", "other", "nothing")
N_AFTER = 600
"""Characters of the file that a model goes on with."""
STEP = 4
"""Characters a token."""


def without_line(place: places.CutPlace) -> places.CutPlace | None:
    """An "inline" one, as it is while its line is typed; None for the head of a body, and where no
    bracket is closed."""
    n_closing = len(place.suffix) - len(place.suffix.lstrip(")]}"))
    line, _, rest = place.suffix[n_closing:].partition("\n")
    if not n_closing or line.rstrip().endswith(("{", ":", "(", "[", ">")):
        return None
    return replace(place, kind="closed", suffix=f"{place.suffix[:n_closing]}\n{rest}")


def shown(place: places.CutPlace, said: str) -> tuple[str, list[str]]:
    """(the suggestion where a model says that, STEP characters at a time; the rules that changed
    it); the suggestion without what stands behind the cursor and is put there again."""
    tokenizer = ByteTokenizer()
    request = CompletionRequest(place.prefix, place.suffix, path=str(place.path))
    context = Context(NO_TOKENS)
    made = generation_at(request, context, request.path, TreeCache(), tokenizer, Trace())
    stop = made.ends(tokenizer)
    emitted: list[int] = []
    for at in range(0, len(said), STEP):
        emitted += said[at : at + STEP].encode()
        if stop(emitted):
            finished = made.finished(bytes(emitted), "stop")
            break
    else:
        finished = made.finished(bytes(emitted), "length")
    rules, edit = [trimming.value for trimming in finished.trimmed], finished.edit
    if edit is None:
        return "", rules
    return edit.text.removesuffix(place.suffix[: edit.end - len(place.prefix)]), rules


def outcome(text: str, truth: str) -> str:
    """One of OUTCOMES."""
    text, truth = text.rstrip(), truth.rstrip()
    if text == truth:
        return "whole"
    if not text.strip():
        return "nothing"
    if truth.startswith(text):
        return "cut short"
    return "too long" if text.startswith(truth) else "other"


def answer(place: places.CutPlace, said: str = "") -> dict[str, Any]:
    """The suggestion at a place, as a row for `answers`. said: by a model, "" for one that says the
    true text and then what follows."""
    text, rules = shown(place, said or place.truth + place.suffix[:N_AFTER])
    became = outcome(text, place.truth)
    return {
        "config": "said" if said else "truth",
        **answers.row_of(place),
        "said": said,
        "text": text,
        "by_rule": rules,
        "outcome": became,
        "shown": float(bool(text.strip())),
        "exact": float(became == "whole"),
        "similarity": similarity(text.rstrip(), place.truth.rstrip()),
        "breaks": float(bool(text.strip()) and breaks(text, place)),
    }


def _found(repos: Sequence[Path], n: int) -> list[tuple[places.CutPlace, str]]:
    found = [
        place
        for repo in repos
        for place in places.places_in(repo.resolve(), n, KINDS, per_file=8, texts=places.TEXTS)
    ]
    typed = (without_line(p) if p.kind == "inline" else p for p in found)
    return [(place, "") for place in typed if place is not None]


def _kept(base: Sequence[dict[str, Any]], said: Path | None) -> list[tuple[places.CutPlace, str]]:
    """(place, what a model said there)"""
    rows = base
    if said is not None:
        rows = [r for r in answers.read(said) if r["config"] != "truth" and r["said"].strip()]
    return [(answers.place_of(row), row.get("said", "")) for row in rows]


def _outcomes(rows: Iterable[dict[str, Any]]) -> Table:
    """Shares of the outcomes, in per cent."""
    table = Table("language", "kind", "places", *OUTCOMES, box=None)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        counts.setdefault((row["language"], row["kind"]), Counter())[row["outcome"]] += 1
    for (language, kind), by_outcome in sorted(counts.items()):
        n = by_outcome.total()
        shares = (f"{100 * by_outcome[outcome] / n:.1f}" for outcome in OUTCOMES)
        table.add_row(language, kind, str(n), *shares)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repos", nargs="*", type=Path, metavar="REPO")
    parser.add_argument("--places", type=int, default=200, help="of each kind and language")
    parser.add_argument("--answers", type=Path, help="keep what came out, with its places")
    parser.add_argument("--against", type=Path, help="answers of another version")
    parser.add_argument("--said", type=Path, help="answers of `codespec bench quality`, said again")
    parser.add_argument("--json", action="store_true", help="one line of JSON, last")
    given = parser.parse_args()
    if sum(map(bool, (given.repos, given.against, given.said))) != 1:
        parser.error("give one of repositories, --against and --said")
    base = answers.read(given.against) if given.against else []
    asked = _found(given.repos, given.places) if given.repos else _kept(base, given.said)
    rows = [answer(*each) for each in track(asked, "places", console=Console(stderr=True))]
    if given.answers:
        results.append(given.answers, rows)
    gained = list(answers.gains(rows, base))
    if base:
        print_gains(gained)
    else:
        Console().print(_outcomes(rows))
    if given.json:
        print(json.dumps({"bench": "endings", "n": len(rows), "gains": told(gained)}))


if __name__ == "__main__":
    main()
