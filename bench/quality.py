"""`codespec bench quality`: what is suggested at places of real files, against what stood there.

One row each for kind of place and configuration; the same places for all. Configurations switch
sources of context on and off, so the table says what each is worth with this model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

from codespec.backends.fake import ByteTokenizer
from codespec.config import Settings
from codespec.engine.local import LocalEngine
from codespec.engine.postprocess import Place as Cursor
from codespec.engine.postprocess import UnitStop, finish, shape_at
from codespec.engine.postprocess.scan import scan
from codespec.index.build import build_index
from codespec.index.trees import ParsedDocument, Trees, n_errors
from codespec.index.words import WordEncoder
from codespec.types import Completion, CompletionRequest

from .places import Place
from .surroundings import before

MAX_GOING_ON = 300
_SEPARATORS = (",", ";")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(slots=True)
class Scores:
    """Of one kind of place under one configuration. Similarity and identifiers are over all
    places, an empty suggestion counts as zero; repeats and breaks are shares of those shown."""

    n: int = 0
    n_shown: int = 0
    n_exact: int = 0
    n_identifiers: int = 0
    n_repeat: int = 0
    n_break: int = 0
    n_break_strict: int = 0
    similarity: list[float] = field(default_factory=list[float])
    ms: list[float] = field(default_factory=list[float])

    def add(self, place: Place, completion: Completion) -> None:
        text = completion.text
        self.n += 1
        self.ms.append(completion.trace.ms)
        self.similarity.append(similarity(text.strip(), place.truth.strip()))
        self.n_exact += text.strip() == place.truth.strip()
        self.n_identifiers += _IDENTIFIER.findall(text) == _IDENTIFIER.findall(place.truth)
        if text:
            self.n_shown += 1
            self.n_repeat += repeats_suffix(text, place)
            self.n_break += breaks(text, place)
            self.n_break_strict += breaks_strictly(text, place)

    def row(self) -> dict[str, Any]:
        shown = max(self.n_shown, 1)
        return {
            "n": self.n,
            "shown": self.n_shown / self.n,
            "exact": self.n_exact / self.n,
            "similarity": mean(self.similarity),
            "identifiers": self.n_identifiers / self.n,
            "repeats": self.n_repeat / shown,
            "breaks": self.n_break / shown,
            "breaks_strict": self.n_break_strict / shown,
            "ms_p50": median(self.ms),
        }


def run(
    places: Sequence[Place],
    configs: dict[str, Settings],
    progress: Callable[[int, int], None] = lambda i, n: None,
) -> list[dict[str, Any]]:
    """Rows for each configuration, kind and language, and for all languages together.

    The workspace's index is built first; a place's own file never drafts from it. The first rows,
    "truth", have no model: what post-processing leaves of the true text when a model writes it and
    then the rest of the file.
    """
    table = _Table()
    for place in places:
        table.add("truth", place, _said(place, place.truth + place.suffix[:MAX_GOING_ON]))
    n_total, done = len(places) * len(configs), 0
    for name, settings in configs.items():
        engine = LocalEngine(settings)
        _index({place.root for place in places}, engine, settings)
        for place in places:
            for request in before(place):
                engine.open(request)
            table.add(name, place, engine.complete(request_of(place, settings)))
            done += 1
            progress(done, n_total)
        table.model = engine.info.name
        engine.close()
    return table.rows()


class _Table:
    def __init__(self) -> None:
        self.model = ""
        self._scores: dict[tuple[str, str, str], Scores] = {}

    def add(self, config: str, place: Place, completion: Completion) -> None:
        for language in (place.language, "all"):
            key = (config, place.kind, language)
            self._scores.setdefault(key, Scores()).add(place, completion)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"config": c, "kind": kind, "language": language, "model": self.model, **scores.row()}
            for (c, kind, language), scores in self._scores.items()
        ]


def _said(place: Place, text: str) -> Completion:
    """The suggestion where a model says `text`."""
    whole = (place.prefix + place.suffix).encode()
    parsed = Trees().update(str(place.path), "", whole)
    here = Cursor(place.prefix, place.suffix, place.language, parsed)
    shape = shape_at(here)
    stop = UnitStop(ByteTokenizer(), shape, here)
    emitted: list[int] = []
    for token in text.encode():
        emitted.append(token)
        if stop(emitted):
            break
    said = bytes(emitted).decode("utf-8", "ignore")
    return Completion(finish(said, stop.end(said), "length", shape, here).text)


def request_of(place: Place, settings: Settings) -> CompletionRequest:
    return CompletionRequest(
        place.prefix,
        place.suffix,
        path=str(place.path),
        workspace=str(place.root),
        max_tokens=settings.completion.max_tokens,
    )


def _index(roots: set[Path], engine: LocalEngine, settings: Settings) -> None:
    for root in sorted(roots):
        build_index(root, WordEncoder(engine.tokenizer), settings.index)


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


def repeats_suffix(text: str, place: Place) -> bool:
    """Whether what would be inserted stands after the cursor already, where the true text does not
    repeat it just so."""
    return _ends_like(text, place) and not _ends_like(place.truth, place)


def _ends_like(text: str, place: Place) -> bool:
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


def _closes(text: str, place: Place) -> bool:
    """Whether more brackets are closed than the line opened."""
    line, rest = place.prefix.rsplit("\n", 1)[-1], place.suffix.split("\n", 1)[0]
    before, after = (scan(line + said + rest, place.language).extra for said in ("", text))
    return len(after) > len(before)


def breaks(text: str, place: Place) -> bool:
    """Whether the file, which parses, would not with `text` in the place of what was cut out."""
    parsed = ParsedDocument(place.language)
    parsed.update((place.prefix + text + place.suffix).encode())
    return parsed.root is None or n_errors(parsed.root) > 0


def breaks_strictly(text: str, place: Place) -> bool:
    """The same after Python's own parser, which is stricter, for files that it accepts."""
    if place.language != "python":
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
