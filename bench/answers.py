"""Answers at places, kept as rows: what is asked again at the same places by another version, and
how the two compare, place by place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from codespec.documents.from_disk import read_document
from codespec.errors import CodespecError, InputError

from . import results
from .places import CutPlace

N_RESAMPLES = 2000
COMPARED = ("shown", "exact", "similarity", "breaks")
_KEY = ("config", "path", "start", "kind", "truth", "after")


def row_of(place: CutPlace) -> dict[str, Any]:
    """A place as a row; the file itself has the rest of the text. start: characters before what is
    cut out."""
    return {
        "path": str(place.path),
        "root": str(place.root),
        "start": len(place.prefix),
        "line": place.prefix.count("\n") + 1,
        "kind": place.kind,
        "language": place.language,
        "before": place.prefix.rsplit("\n", 1)[-1],
        "truth": place.truth,
        "after": place.suffix.split("\n", 1)[0],
    }


def place_of(row: dict[str, Any]) -> CutPlace:
    """The place of a row.

    Raises: InputError where its file does not hold that text any more.
    """
    try:
        text = read_document(Path(row["path"]))
    except (OSError, CodespecError):
        text = ""
    prefix, truth = text[: row["start"]], row["truth"]
    if not text.startswith(truth, row["start"]) or not prefix.endswith(row["before"]):
        raise InputError(
            f"{row['path']} is not as it was at line {row['line']}",
            "Give answers at files as they are now.",
        )
    _, end, below = text[len(prefix) + len(truth) :].partition("\n")
    suffix = row["after"] + end + below
    names = (row["language"], row["kind"])
    return CutPlace(Path(row["path"]), Path(row["root"]), *names, prefix, truth, suffix)


def read(file: Path) -> list[dict[str, Any]]:
    """Rows of answers. Raises: InputError."""
    rows = [row for _, row in results.json_lines(file)]
    if any(name not in row for row in rows for name in (*_KEY, *COMPARED)):
        raise InputError(f"{file}: no answers", "Give a file written with --answers.")
    return rows


def places_of(rows: Iterable[dict[str, Any]]) -> list[CutPlace]:
    """The places of answers, each once. Raises: InputError."""
    once = {_key(row)[1:]: row for row in rows}
    return [place_of(row) for row in once.values()]


def gains(
    rows: Sequence[dict[str, Any]], base: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """How answers differ from earlier ones at the same places: for each configuration, kind and
    language, and for all kinds and languages ("all"), the means of both sides and their difference
    with its 95 % bootstrap interval. Shares are of all places, also that of breaks."""
    earlier = {_key(row): row for row in base}
    groups: dict[tuple[str, str, str], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for row in rows:
        if _key(row) not in earlier:
            continue
        pair = (earlier[_key(row)], row)
        config, kind, language = row["config"], row["kind"], row["language"]
        for of_kind, written_in in (
            ("all", "all"),
            (kind, "all"),
            ("all", language),
            (kind, language),
        ):
            groups.setdefault((config, of_kind, written_in), []).append(pair)
    for (config, kind, language), pairs in sorted(groups.items()):
        gained: dict[str, Any] = {
            "config": config, "kind": kind, "language": language, "n": len(pairs),
        }  # fmt: skip
        for name in COMPARED:
            old, new = ([float(pair[side][name]) for pair in pairs] for side in (0, 1))
            gained |= {f"{name}_before": mean(old), name: mean(new), **gain(name, new, old)}
        yield gained


def gain(name: str, values: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    """The mean difference at the same places, with its 95 % bootstrap interval (Efron 1979,
    percentile method), of which there is none for one place."""
    differences = np.asarray(values, np.float64) - np.asarray(base, np.float64)
    gained = {f"{name}_gain": mean(differences.tolist())}
    if len(differences) < 2:  # nothing tells how another place would have come out
        return gained
    rng = np.random.default_rng(0)
    means = rng.choice(differences, (N_RESAMPLES, len(differences))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {**gained, f"{name}_gain_low": float(low), f"{name}_gain_high": float(high)}


def is_loss(row: dict[str, Any]) -> bool:
    """True where an interval of `gains` lies on the wrong side of zero: fewer shown or exact, less
    alike, or more broken."""
    fewer = ("shown", "exact", "similarity")
    return row.get("breaks_gain_low", 0) > 0 or any(
        row.get(f"{name}_gain_high", 0) < 0 for name in fewer
    )


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)
