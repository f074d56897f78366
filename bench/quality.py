"""`codespec bench quality`: what is suggested at places of real files, against what stood there.

One row each for kind of place and configuration; the same places for all. Configurations switch
sources of context on and off, so the table says what each is worth with this model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from codespec.backends.fake import ByteTokenizer
from codespec.config import Settings
from codespec.engine.local import LocalEngine
from codespec.index.build import build_index
from codespec.index.word_encoder import WordEncoder
from codespec.reasons import Trimming
from codespec.requests import CompletionRequest
from codespec.suggest import UnitStop, finish, place_in, shape_at
from codespec.syntax.trees import TreeCache

from .answers import gain, row_of
from .judge import breaks, breaks_strictly, repeats_suffix, similarity, wrote
from .places import FINISHED, CutPlace
from .surroundings import before

MAX_GOING_ON = 300
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class AnswerAtPlace:
    """text: the suggestion. said: what the model says there by itself, greedy, without the rules
    about where a suggestion ends and what is trimmed. n_snippets: texts of other files it saw."""

    config: str
    place: CutPlace
    text: str
    said: str
    trimmed: tuple[Trimming, ...] = ()
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
        return {
            "config": self.config,
            **row_of(self.place),
            "text": self.text,
            "said": self.said,
            "trimmed": [trimming.text for trimming in self.trimmed],
            **{name: float(value) for name, value in self.figures.items()},
        }


def run(
    places: Sequence[CutPlace],
    configs: dict[str, Settings],
    progress: Callable[[int, int], None] = lambda i, n: None,
) -> tuple[list[dict[str, Any]], list[AnswerAtPlace]]:
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
        index({place.root for place in places}, engine, settings)
        for place in places:
            answers.append(_asked(name, place, engine, request_of(place, settings)))
            progress(len(answers) - len(places), n_total)
        model = engine.info.name
        engine.close()
    return list(rows_of(answers, model)), answers


def _asked(
    name: str, place: CutPlace, engine: LocalEngine, request: CompletionRequest
) -> AnswerAtPlace:
    opened: dict[str, None] = {}
    for earlier in before(place):
        engine.open(earlier)
        opened[earlier.path] = None
    completion = engine.complete(request)
    context = engine.context(request)
    tokens, _ = engine.passes.decode(
        context, request.max_tokens, engine.drafter(request.workspace, ())
    )
    said = engine.tokenizer.decode(tokens)
    # The model says by itself what was held back of the text before the cursor, or says no such.
    said = said[len(context.healed) :] if said.startswith(context.healed) else b""
    leave(engine, request, (*opened, *(snippet.path for snippet in context.snippets)))
    trace = completion.trace
    edit = completion.edit
    behind = request.suffix[: edit.end - len(request.prefix)] if edit is not None else ""
    return AnswerAtPlace(
        name,
        place,
        completion.text.removesuffix(behind),  # stands there before and after
        said.decode("utf-8", "replace"),
        trace.trimmed,
        trace.n_snippets,
        trace.ms,
    )


def leave(engine: LocalEngine, request: CompletionRequest, others: Sequence[str]) -> None:
    """Empty the documents and close them unsaved, which leaves nothing of them. Else the next place
    of this file were an edit of it: what is cut out there would count as deleted just now, and the
    model would be shown it."""
    for path in dict.fromkeys((*others, request.path)):
        empty = CompletionRequest("", "", path=path, workspace=request.workspace)
        # Of its own document, what was chosen for this line is chosen anew, too.
        engine.context(empty) if path == request.path else engine.open(empty)
        engine.closed(path)


def rows_of(answers: Sequence[AnswerAtPlace], model: str) -> Iterator[dict[str, Any]]:
    """Repeats and breaks are shares of what was shown; all else is over all places, where an empty
    suggestion has similarity zero. Gains are differences to the first configuration with a model
    at the same places, with 95 % bootstrap intervals (Efron 1979, percentile method)."""
    groups: dict[tuple[str, str, str], list[AnswerAtPlace]] = {}
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
                row |= gain(name, columns[name], base)
        yield row


def _said(place: CutPlace, text: str) -> AnswerAtPlace:
    """The suggestion where a model says `text`."""
    here = place_in(TreeCache(), place.prefix, place.suffix, str(place.path))
    shape = shape_at(here)
    stop = UnitStop(ByteTokenizer(), shape, here)
    emitted: list[int] = []
    for token in text.encode():
        emitted.append(token)
        if stop(emitted):
            break
    said = bytes(emitted).decode("utf-8", "ignore")
    finished = finish(stop.candidate(said), stop.end(said), "length", shape)
    return AnswerAtPlace("truth", place, finished.text, text, finished.trimmed)


def request_of(place: CutPlace, settings: Settings) -> CompletionRequest:
    return CompletionRequest(
        place.prefix,
        place.suffix,
        path=str(place.path),
        workspace=str(place.root),
        max_tokens=settings.completion.max_tokens,
    )


def index(roots: set[Path], engine: LocalEngine, settings: Settings) -> None:
    for root in sorted(roots):
        build_index(root, WordEncoder(engine.tokenizer), settings.index)
