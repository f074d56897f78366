"""Suggestions that are made unasked at places of real files, line by line, with what
`completion.eagerness` goes by: `codespec bench quality --eagerness`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from codespec.config import Settings
from codespec.engine.likely_lines import first_lines, kind_of, scores_of, suggested
from codespec.engine.local import LocalEngine
from codespec.requests import Eagerness
from codespec.restraint import NO_RESTRAINT
from codespec.suggest import eagerness
from codespec.suggest.eagerness import LineScore
from codespec.syntax.unasked import why_not_here

from .places import FINISHED, KINDS, CutPlace
from .quality import index, leave, request_of

ASKED = (*KINDS, FINISHED, "below")
"""Kinds of places that are asked about. At finished lines whatever is suggested is too much."""


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """A suggestion at a place. Lists have an element for each of its lines, and are of the text up
    to there, the last one of all of it.

    at, kind: kind of the place in `places`, and key of `PlaceKind`.
    n_chars:  characters; 0 where nothing is left of a text that is cut there.
    right:    True if that text stood there: all of what did, or its first lines.
    """

    repository: str
    language: str
    at: str
    kind: str
    scores: list[LineScore]
    n_chars: list[int]
    right: list[bool]

    @property
    def chances(self) -> list[float]:
        """Probability that the text is kept."""
        return [eagerness.chance(score, self.kind) for score in self.scores]


def lines_at_places(
    places: Sequence[CutPlace],
    settings: Settings,
    progress: Callable[[int, int], None] = lambda i, n: None,
) -> tuple[str, list[Lines]]:
    """(name of the model, the suggestions at places where one is made unasked). No place knows of
    the one before it."""
    engine = LocalEngine(settings)
    index({place.root for place in places}, engine, settings)
    found: list[Lines] = []
    for i, place in enumerate(places):
        lines = None if _is_suppressed(place) else _lines_at(place, engine, settings)
        found += [] if lines is None else [lines]
        progress(i + 1, len(places))
    model = engine.info.name
    engine.close()
    return model, found


def _is_suppressed(place: CutPlace) -> bool:
    path = str(place.path)
    return why_not_here(NO_RESTRAINT, place.prefix, place.suffix, path) is not None


def _lines_at(place: CutPlace, engine: LocalEngine, settings: Settings) -> Lines | None:
    request = replace(request_of(place, settings), eagerness=Eagerness())
    made, tokenizer = engine.generate(request), engine.tokenizer
    leave(engine, request, [snippet.path for snippet in made.context.snippets])
    whole = suggested(made, made.tokens, tokenizer, made.finish).edit
    if whole is None:
        return None
    scores = scores_of(made, made.tokens, tokenizer, whole.text.count("\n") + 1)
    parts = [first_lines(made, made.tokens, tokenizer, n + 1).edit for n in range(len(scores))]
    texts = [part.text.strip() if part is not None else "" for part in (*parts[:-1], whole)]
    return Lines(
        repository=place.root.name,
        language=place.language,
        at=place.kind,
        kind=kind_of(made, whole.text).value,
        scores=scores,
        n_chars=[len(text) for text in texts],
        right=[_stood_there(text, place.truth.strip()) for text in texts],
    )


def _stood_there(text: str, truth: str) -> bool:
    return bool(text) and (text == truth or truth.startswith(f"{text}\n"))
