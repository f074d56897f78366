"""`codespec bench quality`: what is suggested at places of real files, against what stood there.

One row each for kind of place and configuration; the same places for all. Configurations switch
sources of context on and off, so the table says what each is worth with this model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from codespec.backends.fake import ByteTokenizer
from codespec.config import Settings
from codespec.engine.local import LocalEngine
from codespec.engine.postprocess import Place as Cursor
from codespec.engine.postprocess import UnitStop, finish, shape_at
from codespec.index.build import build_index
from codespec.index.trees import Trees
from codespec.index.words import WordEncoder
from codespec.requests import CompletionRequest

from .judge import breaks, breaks_strictly, repeats_suffix, similarity, wrote
from .places import FINISHED, Place
from .surroundings import before

MAX_GOING_ON = 300
N_RESAMPLES = 2000
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Answer:
    """text: the suggestion. said: what the model says there by itself, greedy, without the rules
    about where a suggestion ends and what is trimmed. n_snippets: texts of other files it saw."""

    config: str
    place: Place
    text: str
    said: str
    trimmed: tuple[str, ...] = ()
    n_snippets: int = 0
    ms: float = 0.0
    figures: dict[str, float] = field(init=False, default_factory=dict[str, float])

    def __post_init__(self) -> None:
        text, truth = self.text.strip(), self.place.truth.strip()
        shown = bool(text)
        self.figures.update(
            exact=text == truth,
            similarity=similarity(text, truth),
            identifiers=_IDENTIFIER.findall(text) == _IDENTIFIER.findall(truth),
            wrote=wrote(self.said, self.place),
            shown=shown,
            with_context=self.n_snippets > 0,
            repeats=shown and repeats_suffix(self.text, self.place),
            breaks=shown and breaks(self.text, self.place),
            breaks_strict=shown and breaks_strictly(self.text, self.place),
        )

    def as_row(self) -> dict[str, Any]:
        """With the text, for people who look for causes."""
        place = self.place
        return {
            "config": self.config,
            "path": str(place.path),
            "line": place.prefix.count("\n") + 1,
            "kind": place.kind,
            "language": place.language,
            "before": place.prefix.rsplit("\n", 1)[-1],
            "truth": place.truth,
            "after": place.suffix.split("\n", 1)[0],
            "text": self.text,
            "said": self.said,
            "trimmed": list(self.trimmed),
            **{name: float(value) for name, value in self.figures.items()},
        }


def run(
    places: Sequence[Place],
    configs: dict[str, Settings],
    progress: Callable[[int, int], None] = lambda i, n: None,
) -> tuple[list[dict[str, Any]], list[Answer]]:
    """(rows for each configuration, kind and language, and for all languages and kinds together;
    the answers that they count).

    The workspace's index is built first; a place's own file never drafts from it. No place knows
    of the one before it. The first rows, "truth", have no model: what post-processing leaves of the
    true text when a model writes it and then the rest of the file.
    """
    answers = [_said(place, place.truth + place.suffix[:MAX_GOING_ON]) for place in places]
    n_total, model = len(places) * len(configs), ""
    for name, settings in configs.items():
        engine = LocalEngine(settings)
        _index({place.root for place in places}, engine, settings)
        for place in places:
            answers.append(_asked(name, place, engine, request_of(place, settings)))
            progress(len(answers) - len(places), n_total)
        model = engine.info.name
        engine.close()
    return list(rows_of(answers, model)), answers


def _asked(name: str, place: Place, engine: LocalEngine, request: CompletionRequest) -> Answer:
    opened: dict[str, None] = {}
    for earlier in before(place):
        engine.open(earlier)
        opened[earlier.path] = None
    completion = engine.complete(request)
    context = engine.context(request)
    tokens, _ = engine.passes.decode(
        context, request.max_tokens, engine.chain(request.workspace, ())
    )
    said = engine.tokenizer.decode(tokens)
    # The model says by itself what was held back of the text before the cursor, or says no such.
    said = said[len(context.healed) :] if said.startswith(context.healed) else b""
    _leave(engine, request, (*opened, *(snippet.path for snippet in context.snippets)))
    trace = completion.trace
    return Answer(
        name,
        place,
        completion.text,
        said.decode("utf-8", "replace"),
        tuple(trace.trimmed),
        trace.n_snippets,
        trace.ms,
    )


def _leave(engine: LocalEngine, request: CompletionRequest, others: Sequence[str]) -> None:
    """Empty the documents and close them unsaved, which leaves nothing of them. Else the next place
    of this file were an edit of it: what is cut out there would count as deleted just now, and the
    model would be shown it."""
    for path in dict.fromkeys((*others, request.path)):
        empty = CompletionRequest("", "", path=path, workspace=request.workspace)
        # Of its own document, what was chosen for this line is chosen anew, too.
        engine.context(empty) if path == request.path else engine.open(empty)
        engine.closed(path)


def rows_of(answers: Sequence[Answer], model: str) -> Iterator[dict[str, Any]]:
    """Repeats and breaks are shares of what was shown; all else is over all places, where an empty
    suggestion has similarity zero. Gains are differences to the first configuration with a model
    at the same places, with 95 % bootstrap intervals (Efron 1979, percentile method)."""
    groups: dict[tuple[str, str, str], list[Answer]] = {}
    for answer in answers:
        config, kind, language = answer.config, answer.place.kind, answer.place.language
        # Where nothing is missing, "exact" says that nothing was suggested, which is another thing.
        whole = kind if kind == FINISHED else "all"
        for key in dict.fromkeys(((kind, language), (kind, "all"), (whole, "all"))):
            groups.setdefault((config, *key), []).append(answer)
    first = next((config for config, _, _ in groups if config != "truth"), "")
    for (config, kind, language), group in groups.items():
        columns = {name: [a.figures[name] for a in group] for name in group[0].figures}
        n_shown = sum(columns["shown"])
        row: dict[str, Any] = {
            "config": config, "kind": kind, "language": language, "model": model, "n": len(group),
        }  # fmt: skip
        for name, column in columns.items():
            of_shown = name in ("repeats", "breaks", "breaks_strict")
            row[name] = sum(column) / max(1, n_shown if of_shown else len(column))
        row["ms_p50"] = median(a.ms for a in group)
        if config not in ("truth", first):
            for name in ("exact", "similarity"):
                base = [a.figures[name] for a in groups[first, kind, language]]
                row |= _gain(name, columns[name], base)
        yield row


def _gain(name: str, values: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    differences = np.asarray(values, np.float64) - np.asarray(base, np.float64)
    gain = {f"{name}_gain": mean(differences.tolist())}
    if len(differences) < 2:  # nothing tells how another place would have come out
        return gain
    rng = np.random.default_rng(0)
    means = rng.choice(differences, (N_RESAMPLES, len(differences))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {**gain, f"{name}_gain_low": float(low), f"{name}_gain_high": float(high)}


def _said(place: Place, text: str) -> Answer:
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
    finished = finish(said, stop.end(said), "length", shape, here)
    return Answer("truth", place, finished.text, text, finished.trimmed)


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
