"""The part of an output that is likely enough to be kept, where a request asks for that.

The generation ends in the first line that is not, as nothing behind it will be shown, and the lines
before it are finished once. What is suggested does not depend on where it ended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from codespec.engine.generation import Generation, Suggested
from codespec.engine.output import Stop
from codespec.reasons import Trimming
from codespec.requests import Eagerness
from codespec.suggest import eagerness
from codespec.suggest.eagerness import LineScore
from codespec.types import Finish, Tokenizer
from codespec.usage.suppression import PlaceKind, kind_of_place

_MARGIN = 1e-6
"""Log-probability by which a line has to be too unlikely to end the generation before its end: more
than rounding makes of the same sum."""


def suggested(
    made: Generation, tokens: Sequence[int], tokenizer: Tokenizer, ended: Finish
) -> Suggested:
    """The suggestion for all tokens so far, cut before its first line that is not likely enough to
    be kept. ended: as in `Generation.finished`."""
    said, asked = made.said(tokenizer.decode(tokens), ended), made.request.eagerness
    if asked is None or made.is_verbatim or not said.text:
        return made.suggested(said)
    scores = scores_of(made, tokens, tokenizer, said.n_lines)
    chances, n = _judged(scores, kind_of(made, said.text), asked)
    if n == len(scores):
        found = made.suggested(said)
        chances = chances[: _n_lines(found)]
    else:
        found = first_lines(made, tokens, tokenizer, n) if n else Suggested(None, said.trimmed)
        found = replace(found, trimmed=(*found.trimmed, Trimming.UNLIKELY))
    has_log_probs = any(score.n_tokens for score in scores)
    n_likely = min(n, _n_lines(found))
    return replace(found, chances=chances, n_likely=n_likely, has_log_probs=has_log_probs)


def ends_of(made: Generation, tokenizer: Tokenizer) -> Stop:
    """The rule that ends an output: `Generation.ends`, or a line that is not likely enough."""
    ends, asked = made.ends(tokenizer), made.request.eagerness
    if asked is None or made.is_verbatim:
        return ends
    is_unlikely = UnlikelyLine(made, tokenizer, asked)
    return lambda emitted: ends(emitted) or is_unlikely(emitted)


class UnlikelyLine:
    """Stop rule: True once a line is not likely enough to be kept, whatever follows in it. Called
    after a token, with all tokens so far."""

    def __init__(self, made: Generation, tokenizer: Tokenizer, asked: Eagerness) -> None:
        self._made = made
        self._tokenizer = tokenizer
        self._asked = asked
        self._n_healed = len(made.context.healed)
        self._n_read = self._n_bytes = 0
        self._total = 0.0
        self._least: float | None = None
        """The log-probability that the line that is being written must have by now; None before its
        first token was looked at."""

    def __call__(self, emitted: Sequence[int]) -> bool:
        known = self._made.log_probs or []
        for n in range(self._n_read, len(emitted)):
            piece = self._tokenizer.piece(emitted[n])
            self._n_bytes += len(piece)
            if n < len(known) and self._n_bytes > self._n_healed:
                self._total += known[n]
            if b"\n" in piece:
                self._least = None
        self._n_read = len(emitted)
        if self._n_bytes <= self._n_healed:
            return False
        if self._least is None:
            raw = self._tokenizer.decode(emitted)
            kind = kind_of(self._made, raw[self._n_healed :].decode("utf-8", "ignore"))
            n_ended = raw.count(b"\n", self._n_healed)
            scores = scores_of(self._made, emitted, self._tokenizer, n_ended)
            if _judged(scores, kind, self._asked)[1] < n_ended:
                return True
            self._least = self._least_total(scores, kind) if known else -math.inf
        return self._total < self._least

    def _least_total(self, scores: Sequence[LineScore], kind: PlaceKind) -> float:
        """The log-probability that an output must have so that the line that is being written may
        still be likely enough."""
        if len(scores) < self._asked.n_shown:
            return -math.inf
        n_written = scores[-1].n_lines if scores else 0
        shift, n_most = _shift(self._asked, kind), n_written + 1
        leasts = (
            eagerness.least_total(kind.value, n, self._asked.bar, shift)
            for n in (n_written, n_most)
        )
        return min(leasts) - _MARGIN


def first_lines(made: Generation, tokens: Sequence[int], tokenizer: Tokenizer, n: int) -> Suggested:
    """The suggestion where the model wrote the first `n` lines of an output alone."""
    raw = tokenizer.decode(tokens)
    end = len(made.context.healed)
    for _ in range(n):
        end = raw.find(b"\n", end) + 1 or len(raw)
    return made.anew(tokenizer).finished(raw[:end], "deadline")


def kind_of(made: Generation, text: str) -> PlaceKind:
    """Kind of the place of a suggestion. text: of the output."""
    request = made.request
    before = request.prefix[request.prefix.rfind("\n") + 1 :]
    if text.startswith("\n") and before.strip():
        return PlaceKind.BELOW
    return kind_of_place(request.prefix, request.suffix)


def scores_of(
    made: Generation, tokens: Sequence[int], tokenizer: Tokenizer, n_lines: int
) -> list[LineScore]:
    """Scores of the first lines of an output."""
    ends = list(accumulate(len(tokenizer.piece(token)) for token in tokens))
    known = made.log_probs or []
    log_probs = known if len(known) >= len(tokens) else []
    n_healed = len(made.context.healed)
    return eagerness.line_scores(tokenizer.decode(tokens), n_healed, ends, log_probs, n_lines)


def _judged(
    scores: Sequence[LineScore], kind: PlaceKind, asked: Eagerness
) -> tuple[tuple[float, ...], int]:
    """(the probability that the text is kept up to each line, the first unlikely one at most;
    number of lines before that)."""
    chances = tuple(eagerness.chance(score, kind.value) for score in scores)
    n = eagerness.n_likely(chances, asked.bar, _shift(asked, kind), asked.n_shown)
    return chances[: n + 1], n


def _shift(asked: Eagerness, kind: PlaceKind) -> float:
    return asked.shift_below if kind is PlaceKind.BELOW else asked.shift


def _n_lines(found: Suggested) -> int:
    return found.edit.text.count("\n") + 1 if found.edit is not None else 0
