"""Fill-in-the-middle: where a document is cut, and how the three parts become one training
sequence.

The serving prompt must be what was trained, so the two layouts here are a contract with the prompt
builder:

    PSM  <|fim_prefix|> P <|fim_suffix|> S <|fim_middle|> L M <|endoftext|>
    SPM  <|fim_prefix|> <|fim_suffix|> S <|fim_middle|> P L M <|endoftext|>

L is what stands before the cursor in its line; P, L, S and M are tokenised apart, so a middle may
begin inside what would have been one token, as a cursor does. A quarter of the PSM sequences have L
at the end of P, as other programs prompt.

Source: Bavarian et al. 2022 (both orders, cuts on characters); the cut points follow how people
complete code: to the end of a line, inside one, over a few lines, to the end of a syntactic unit
(compare Gong et al. 2024, structure-aware FIM), and where nothing is missing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from tokenizers import Tokenizer
from tree_sitter import Node

from codespec.languages.registry import record_of
from codespec.syntax.parse import syntax_tree
from codespec.train import bpe
from codespec.training import qwen2
from codespec.training.line_cuts import (
    Span,
    at_word,
    cut_in_line,
    few_lines,
    further_lines,
    late_position,
    line_bounds,
    rest_of_line,
)

# Characters, about 350 tokens: longer than any inline completion people read before they take it.
MAX_MIDDLE = 1_200
MIN_UNIT = 3  # characters of a syntactic unit worth leaving out
PSM_AT_CURSOR_RATE = 0.25
FINISHED_RATE = 0.15
CLOSED_RATE = 0.5
MAX_DRAWS = 8

# The closing brackets and quotes that a line ends with.
_CLOSED_END = re.compile(r"(?<=[\w)\]}\"'])[)\]}\"'`]+[;:,]?[ \t]*\Z")


def indented_block(text: str, start: int) -> Span:
    """From `start`, inside a line, to the end of the block that the line opens or stands in, by
    indentation, which nearly all code has.
    """
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


def nothing(text: str, rng: random.Random) -> Span:
    """An empty middle where a line is finished, or all but the brackets that an editor closes: most
    of what is typed wants nothing more there, and a model that never saw that makes something up.
    """
    start, end = line_with_code(text, rng)
    closed = _CLOSED_END.search(text, start, end)
    at = closed.start() if closed and rng.random() < CLOSED_RATE else end
    return at, at


def lines_below(text: str, rng: random.Random) -> Span:
    """From the end of a finished line over some lines, or to the end of the block."""
    start = line_with_code(text, rng)[1]
    if rng.random() < 0.5:
        return indented_block(text, start)
    end = further_lines(text, start, rng)[1]
    return start, start + len(text[start:end].rstrip())


def line_with_code(text: str, rng: random.Random) -> Span:
    """Start and end, without blanks at its end, of a line that is not blank, where there is one."""
    start, end = 0, len(text)
    for _ in range(MAX_DRAWS):
        start, end = line_bounds(text, late_position(text, rng))
        if text[start:end].strip():
            break
    return start, start + len(text[start:end].rstrip())


class Units:
    """The syntactic units of a text: what a grammar has a node for. Parsed when first asked."""

    def __init__(self, text: str, language: str) -> None:
        """language: as the index names it; of a language without a grammar there are none."""
        self._text, self._language = text, language
        self._raw = b""
        self._root: Node | None = None

    def around(self, position: int, *, in_line: bool) -> list[Span]:
        """Spans in characters around a position, smallest first, of MIN_UNIT to MAX_MIDDLE
        characters. in_line: those with something after them in their only line.
        """
        if record_of(self._language).grammar is None:
            return []
        if not self._raw:
            self._raw = self._text.encode("utf-8", "replace")
            tree = syntax_tree(self._language, self._raw)
            self._root = tree.root_node if tree else None
        if self._root is None:
            return []
        at = len(self._text[:position].encode("utf-8", "replace"))
        node = self._root.descendant_for_byte_range(at, at)
        spans: list[Span] = []
        while node is not None and node.end_byte - node.start_byte <= 4 * MAX_MIDDLE:
            span = self._characters(node)
            if node.is_named and (not spans or spans[-1] != span) and self._serves(span, in_line):
                spans.append(span)
            node = node.parent
        return spans

    def _characters(self, node: Node) -> Span:
        start = len(self._raw[: node.start_byte].decode("utf-8", "replace"))
        text = self._raw[node.start_byte : node.end_byte].decode("utf-8", "replace")
        return start, start + len(text.rstrip())

    def _serves(self, span: Span, in_line: bool) -> bool:
        start, end = span
        if not MIN_UNIT <= end - start <= MAX_MIDDLE:
            return False
        line_end = line_bounds(self._text, start)[1]
        return not in_line or (end < line_end and not self._text[end:line_end].isspace())


def within_line(text: str, rng: random.Random, units: Units) -> Span:
    """A syntactic unit, or its rest, that text follows in the line; without a grammar, a piece of
    the line that ends with a word.
    """
    start = cut_in_line(text, rng)
    found = units.around(start, in_line=True)
    if found:
        return rest_of_unit(text, rng.choice(found), rng)
    end = line_bounds(text, start)[1]
    ends = [start + m.end() for m in re.finditer(r"\w+", text[start:end]) if start + m.end() < end]
    return (start, rng.choice(ends)) if ends else further_lines(text, start, rng)


def whole_unit(text: str, rng: random.Random, units: Units) -> Span:
    """A syntactic unit of any size, an argument or a body, or its rest from its first line on;
    without a grammar, to the end of an indented block.
    """
    found = units.around(cut_in_line(text, rng), in_line=False)
    return (
        rest_of_unit(text, rng.choice(found), rng)
        if found
        else indented_block(text, cut_in_line(text, rng))
    )


def rest_of_unit(text: str, unit: Span, rng: random.Random) -> Span:
    """The unit, or as often what is left of it from a place in its first line."""
    start, end = unit
    if rng.random() < 0.5:
        start = max(start, at_word(text, rng.randrange(start, first_line_end(text, unit)), rng))
    return start, end


def first_line_end(text: str, span: Span) -> int:
    return min(span[1], max(span[0] + 1, line_bounds(text, span[0])[1]))


Rules = tuple[tuple[float, str, Callable[[str, random.Random, Units], Span]], ...]
# Share, name and rule. The name says what the middle is.
CUTS: Rules = (
    (0.30, "line", lambda text, rng, _: rest_of_line(text, rng)),
    (0.15, "within", within_line),
    (0.20, "lines", lambda text, rng, _: few_lines(text, rng)),
    (0.25, "unit", whole_unit),
    (0.10, "any", lambda text, rng, _: any_span(text, rng)),
)
# The same where a line is finished.
CUTS_OF_FINISHED: Rules = (
    (0.7, "nothing", lambda text, rng, _: nothing(text, rng)),
    (0.3, "below", lambda text, rng, _: lines_below(text, rng)),
)


class Cut(NamedTuple):
    """A middle, in characters of its text, and the name of the rule that chose it."""

    start: int
    end: int
    kind: str


def choose_cut(
    text: str, rng: random.Random, language: str = "", finished_rate: float = FINISHED_RATE
) -> Cut:
    """The middle of a text that is not empty; at most MAX_MIDDLE long. language: as the index names
    it; its grammar says where units end. finished_rate: share of cuts where a line is finished.
    """
    cuts = CUTS_OF_FINISHED if rng.random() < finished_rate else CUTS
    _, kind, rule = rng.choices(cuts, [share for share, _, _ in cuts])[0]
    start, end = rule(text, rng, Units(text, language))
    return Cut(start, min(max(start, end), start + MAX_MIDDLE), kind)


class Fim:
    """Builds training sequences with one tokenizer. Cost: tokenisation, about 3 MB/s."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = bpe.as_text(tokenizer)
        self.end = bpe.token_id(tokenizer, qwen2.END)
        self.prefix = bpe.token_id(tokenizer, qwen2.FIM_PREFIX)
        self.suffix = bpe.token_id(tokenizer, qwen2.FIM_SUFFIX)
        self.middle = bpe.token_id(tokenizer, qwen2.FIM_MIDDLE)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def sequence(
        self,
        text: str,
        rng: random.Random,
        max_tokens: int,
        language: str = "",
        finished_rate: float = FINISHED_RATE,
    ) -> list[int]:
        """One FIM sequence of at most max_tokens tokens from a text, in either order with equal
        chance.

        What is too long is cut where the serving prompt is cut: far from the cursor. An empty list
        means that the middle alone left no room.
        """
        start, end, _ = choose_cut(text, rng, language, finished_rate)
        psm = rng.random() < 0.5
        line = start if psm and rng.random() < PSM_AT_CURSOR_RATE else line_bounds(text, start)[0]
        prefix, begun, middle, suffix = (
            self.encode(part)
            for part in (text[:line], text[line:start], text[start:end], text[end:])
        )
        room = max_tokens - len(begun) - len(middle) - 4
        if room < max_tokens // 4:
            return []
        n_suffix = min(len(suffix), max(room - len(prefix), int(room * rng.uniform(0.1, 0.4))))
        n_prefix = min(len(prefix), room - n_suffix)
        prompt = self.prompt(
            prefix[len(prefix) - n_prefix :], suffix[:n_suffix], psm=psm, begun=begun
        )
        return [*prompt, *middle, self.end]

    def prompt(
        self, prefix: list[int], suffix: list[int], *, psm: bool, begun: list[int] | None = None
    ) -> list[int]:
        """The prompt whose continuation is the middle. begun: what stands before the cursor in its
        line, where that is not the end of the prefix already.
        """
        begun = begun or []
        if psm:
            return [self.prefix, *prefix, self.suffix, *suffix, self.middle, *begun]
        return [self.prefix, self.suffix, *suffix, self.middle, *prefix, *begun]
