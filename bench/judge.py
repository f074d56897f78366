"""The worth of a suggestion at a place whose true text is known."""

from __future__ import annotations

import ast
import json
import re

from codespec.languages.registry import record_of
from codespec.syntax.lexer import scan
from codespec.syntax.trees import ParsedDocument, n_errors

from .places import CutPlace
from .spans_of_literals import open_brackets

_SEPARATORS = (",", ";")


def similarity(a: str, b: str) -> float:
    """1 - indel distance / sum of lengths, in [0, 1].

    Source: the bit-parallel longest common subsequence of Hyyrö (2004), on Python's integers.
    """
    if not a or not b:
        return float(a == b)
    places: dict[str, int] = {}
    for i, c in enumerate(a):
        places[c] = places.get(c, 0) | 1 << i
    mask = (1 << len(a)) - 1
    v = mask
    for c in b:
        u = v & places.get(c, 0)
        v = ((v + u) | (v - u)) & mask
    n_common = len(a) - v.bit_count()
    return 2 * n_common / (len(a) + len(b))


def repeats_suffix(text: str, place: CutPlace) -> bool:
    """True if what would be inserted stands after the cursor already, where the true text does not
    repeat it just so."""
    return _ends_like(text, place) and not _ends_like(place.truth, place)


def _ends_like(text: str, place: CutPlace) -> bool:
    rest, _, below = place.suffix.partition("\n")
    rest, said = "".join(rest.split()), "".join(text.split())
    if rest and said.endswith(rest):
        # Brackets that close what the line opened are right.
        return bool(re.search(r"\w", rest)) or _closes(text, place) or rest in _SEPARATORS
    following = [line.strip() for line in below.split("\n") if line.strip()]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    lines[:1] = [(place.prefix.rsplit("\n", 1)[-1] + text.split("\n", 1)[0]).strip()]
    return any(
        lines[i:] == following[: len(lines) - i] and re.search(r"\w", "".join(lines[i:]))
        for i in range(len(lines))
    )


def _closes(text: str, place: CutPlace) -> bool:
    """True if more brackets are closed than the line opened."""
    line, rest = place.prefix.rsplit("\n", 1)[-1], place.suffix.split("\n", 1)[0]
    before, after = (scan(line + said + rest, place.language).extra for said in ("", text))
    return len(after) > len(before)


def breaks(text: str, place: CutPlace) -> bool:
    """True if the file, which parses, would not with `text` in the place of what was cut out. Where
    there is no grammar, it breaks if `text` leaves other brackets open than what stood there, and
    JSON if Python reads it no more."""
    if record_of(place.language).grammar is None:
        if place.language == ".json" and _is_json(place.prefix + place.truth + place.suffix):
            return not _is_json(place.prefix + text + place.suffix)
        return open_brackets(text) != open_brackets(place.truth)
    parsed = ParsedDocument(place.language)
    parsed.update((place.prefix + text + place.suffix).encode())
    return parsed.root is None or n_errors(parsed.root) > 0


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def breaks_strictly(text: str, place: CutPlace) -> bool:
    """The same after Python's own parser, which is stricter, for files that it accepts."""
    if record_of(place.language).checker != "ast":
        return breaks(text, place)
    try:
        ast.parse(place.prefix + place.truth + place.suffix)
    except (SyntaxError, ValueError, RecursionError):
        return breaks(text, place)
    try:
        ast.parse(place.prefix + text + place.suffix)
    except (SyntaxError, ValueError, RecursionError):
        return True
    return False


def wrote(said: str, place: CutPlace) -> bool:
    """True if a model that nothing stopped began with what stood there, and then with something
    else: the text's end, another line, or what follows there."""
    truth, said = place.truth.strip(), said.strip()
    if not said.startswith(truth):
        return False
    rest = said[len(truth) :].lstrip(" \t")
    return not rest or rest[0] == "\n" or place.suffix.lstrip(" \t").startswith(rest[0])
