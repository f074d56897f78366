"""Probability that a suggestion is kept, line by line.

A logistic regression over the log-odds of the text under the model itself, its lines and the kind
of place. These log-odds mean the same with any tokenizer and any model, and the rest corrects them
(calibration: Platt 1999, Guo et al. 2017). A model without log-probabilities is judged by length
and place alone.

Each line is judged by the text up to its end and by nothing after it, so that a line can be shown
before the next one is written, and never has to be taken back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from codespec.suggest.eagerness_weights import BY_LENGTH, BY_LOG_PROBS

MOST_LOG_ODDS = 10.0


@dataclass(frozen=True, slots=True)
class LineScore:
    """Text of an output from its first character to the end of one of its lines.

    n_chars: characters, the first and last blanks left out.
    n_lines: lines with more than blanks.
    n_tokens: tokens; 0 where their probabilities are unknown.
    total:   sum of their log-probabilities.
    """

    n_chars: int
    n_lines: int
    n_tokens: int = 0
    total: float = 0.0


def line_scores(
    raw: bytes, n_healed: int, ends: Sequence[int], log_probs: Sequence[float], n_lines: int
) -> list[LineScore]:
    """Scores of the first `n_lines` lines of an output.

    raw:      its bytes, of which `n_healed` only repeat text before the cursor.
    ends:     offset in `raw` behind each token.
    log_probs: of each token, and of the token that ended the text; [] where they are unknown.
    """
    found: list[LineScore] = []
    at = n_healed
    n, total = 0, 0.0
    while n < len(ends) and ends[n] <= n_healed:
        n += 1
    n_repeating = n
    for _ in range(n_lines):
        newline = raw.find(b"\n", at)
        is_last = newline < 0
        at = len(raw) if is_last else newline + 1
        # A token belongs to the line that it begins in; behind the text stands what ended it.
        while n < len(log_probs) and (is_last or (n < len(ends) and _start(ends, n) < at)):
            total, n = total + log_probs[n], n + 1
        text = raw[n_healed:at].decode("utf-8", "replace")
        n_written = sum(1 for line in text.splitlines() if line.strip())
        n_tokens = n - n_repeating if log_probs else 0
        found.append(LineScore(len(text.strip()), n_written, n_tokens, total))
    return found


def chance(score: LineScore, kind: str) -> float:
    """Probability that the text up to this line is kept, 0 to 1. kind: key of a `PlaceKind`."""
    weights = BY_LOG_PROBS if score.n_tokens else BY_LENGTH
    odds = weights[kind]
    for name, value in features(score).items():
        odds += weights.get(name, 0.0) * value
    return probability(odds)


def features(score: LineScore) -> dict[str, float]:
    """Inputs of the regression by name, each of a size around 1."""
    length = math.log(max(1, score.n_chars)) / 3
    found = {"lines": math.log(max(1, score.n_lines))}
    if score.n_tokens:
        return {**found, "own": _own_log_odds(min(score.total, -1e-4)) / 3}
    return {**found, "length": length, "length_squared": length**2}


def probability(log_odds: float) -> float:
    """The probability of these log-odds."""
    return 1.0 / (1.0 + math.exp(-max(-MOST_LOG_ODDS, min(MOST_LOG_ODDS, log_odds))))


def log_odds(chance: float) -> float:
    """The log-odds of a probability."""
    least = probability(-MOST_LOG_ODDS)
    chance = min(max(chance, least), 1.0 - least)
    return math.log(chance / (1.0 - chance))


def n_likely(chances: Sequence[float], bar: float, shift: float, n_shown: int) -> int:
    """Number of lines, from the first one on, that are likely enough. shift: log-odds to add. The
    first `n_shown` are in any case."""
    n = min(n_shown, len(chances))
    while n < len(chances) and probability(log_odds(chances[n]) + shift) >= bar:
        n += 1
    return n


def least_total(kind: str, n_lines: int, bar: float, shift: float) -> float:
    """The log-probability from which on a text of so many lines is likely enough, with its
    log-probabilities known; minus infinity where any is. bar, shift: as in `n_likely`."""
    if bar <= 0.0:
        return -math.inf
    weights = BY_LOG_PROBS
    by_place = weights[kind] + weights["lines"] * math.log(max(1, n_lines))
    own = (log_odds(bar) - shift - by_place) * 3 / weights["own"]
    if own <= -MOST_LOG_ODDS:
        return -math.inf
    return -math.log1p(math.exp(-own))


def _start(ends: Sequence[int], n: int) -> int:
    return ends[n - 1] if n else 0


def _own_log_odds(total: float) -> float:
    """Log-odds of a text whose probability has this logarithm, below 0."""
    return max(-MOST_LOG_ODDS, min(MOST_LOG_ODDS, total - math.log(-math.expm1(total))))
