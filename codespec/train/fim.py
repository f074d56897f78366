"""Fill-in-the-middle: where a document is cut, and how the three parts become one training
sequence.

The serving prompt must be what was trained, so the two layouts here are a contract with the prompt
builder:

    PSM  <|fim_prefix|> P <|fim_suffix|> S <|fim_middle|> M <|endoftext|>
    SPM  <|fim_prefix|> <|fim_suffix|> S <|fim_middle|> P M <|endoftext|>

P, S and M are tokenised apart, so a middle may begin inside what would have been one token, as a
cursor does.

Source: Bavarian et al. 2022 (both orders, cuts on characters); the cut points follow how people
complete code: to the end of a line, over a few lines, or to the end of an indented block (compare
Gong et al. 2024, structure-aware FIM).
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tokenizers import Tokenizer

from codespec.train import tokenizer as vocabulary

Span = tuple[int, int]
# Characters, about 350 tokens: longer than any inline completion people read before they take it.
MAX_MIDDLE = 1_200
LINE_START_RATE = 0.25


def line_bounds(text: str, position: int) -> Span:
    """Start and end (before its newline) of the line that holds position."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return start, len(text) if end < 0 else end


def cut_in_line(text: str, rng: random.Random) -> int:
    """A position where someone could be typing: in a line but not in its indentation.

    The line is the later of two draws, because a prompt holds more text before the cursor than
    after it; where its code begins is likelier than any other place, because editors indent.
    """
    position = max(rng.randrange(len(text)), rng.randrange(len(text)))
    start, end = line_bounds(text, position)
    code = start + len(text[start:end]) - len(text[start:end].lstrip())
    return code if rng.random() < LINE_START_RATE else rng.randint(code, end)


def rest_of_line(text: str, rng: random.Random) -> Span:
    """From inside a line to its end, the commonest inline completion; from its end, a few lines."""
    start = cut_in_line(text, rng)
    end = line_bounds(text, start)[1]
    return (start, end) if start < end else further_lines(text, start, rng)


def few_lines(text: str, rng: random.Random) -> Span:
    """From inside a line over one to five lines more."""
    return further_lines(text, cut_in_line(text, rng), rng)


def further_lines(text: str, start: int, rng: random.Random) -> Span:
    end = line_bounds(text, start)[1]
    for _ in range(rng.randint(1, 5)):
        if end < len(text):
            end = line_bounds(text, end + 1)[1]
    return start, end


def indented_block(text: str, rng: random.Random) -> Span:
    """From inside a line to the end of the block it opens or stands in, by indentation, which
    nearly all code has.
    """
    start = cut_in_line(text, rng)
    first, end = line_bounds(text, start)
    indent = indentation(text[first:end])
    if end < len(text):
        next_line = text[slice(*line_bounds(text, end + 1))]
        if next_line.strip() and indentation(next_line) > indent:
            # The line opens a block: stop where that ends, not where the outer one does.
            indent += 1
    while end < len(text):
        begin, stop = line_bounds(text, end + 1)
        line = text[begin:stop]
        if line.strip() and indentation(line) < indent:
            break
        end = stop
    return start, start + len(text[start:end].rstrip())


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def any_span(text: str, rng: random.Random) -> Span:
    """Uniform in both ends, as in the paper: keeps the model whole for cuts that the rules above
    never make.
    """
    start = rng.randrange(len(text))
    return start, min(len(text), start + rng.randint(1, MAX_MIDDLE // 4))


CUTS: tuple[tuple[float, Callable[[str, random.Random], Span]], ...] = (
    (0.40, rest_of_line),
    (0.25, few_lines),
    (0.20, indented_block),
    (0.15, any_span),
)


def choose_span(text: str, rng: random.Random) -> Span:
    """(start, end) of the middle in characters of a text that is not empty; at most MAX_MIDDLE
    long.
    """
    weights, rules = zip(*CUTS, strict=True)
    start, end = rng.choices(rules, weights)[0](text, rng)
    return start, min(max(start, end), start + MAX_MIDDLE)


class Fim:
    """Builds training sequences with one tokenizer. Cost: tokenisation, about 3 MB/s."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = vocabulary.as_text(tokenizer)
        self.end = vocabulary.token_id(tokenizer, vocabulary.END)
        self.prefix = vocabulary.token_id(tokenizer, vocabulary.FIM_PREFIX)
        self.suffix = vocabulary.token_id(tokenizer, vocabulary.FIM_SUFFIX)
        self.middle = vocabulary.token_id(tokenizer, vocabulary.FIM_MIDDLE)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def sequence(self, text: str, rng: random.Random, max_tokens: int) -> list[int]:
        """One FIM sequence of at most max_tokens tokens from a text, in either order with equal
        chance.

        What is too long is cut where the serving prompt is cut: far from the cursor. An empty list
        means that the middle alone left no room.
        """
        start, end = choose_span(text, rng)
        prefix, middle, suffix = (
            self.encode(part) for part in (text[:start], text[start:end], text[end:])
        )
        room = max_tokens - len(middle) - 4
        if room < max_tokens // 4:
            return []
        n_suffix = min(len(suffix), max(room - len(prefix), int(room * rng.uniform(0.1, 0.4))))
        n_prefix = min(len(prefix), room - n_suffix)
        return self.layout(
            prefix[len(prefix) - n_prefix :], suffix[:n_suffix], middle, psm=rng.random() < 0.5
        )

    def prompt(self, prefix: list[int], suffix: list[int], *, psm: bool) -> list[int]:
        """The prompt whose continuation is the middle."""
        if psm:
            return [self.prefix, *prefix, self.suffix, *suffix, self.middle]
        return [self.prefix, self.suffix, *suffix, self.middle, *prefix]

    def layout(
        self, prefix: list[int], suffix: list[int], middle: list[int], *, psm: bool
    ) -> list[int]:
        """Prompt, middle and end token."""
        return [*self.prompt(prefix, suffix, psm=psm), *middle, self.end]
