"""Ways to read a half-typed document, by what it may become: other texts around the cursor, in
which a suggestion is judged where it is refused in the document as it is.

An editor closes a bracket or a quote at once; what the statement needs behind it, `;`, `:`, a
body, is typed later. And where no editor closes anything, all blocks around the cursor are open
until they are written. So text that would stand after the cursor's line is tried, with something
simple at the cursor, and what leaves fewer errors than there are now is one more way to read the
document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from codespec.languages.registry import TEXT, record_of
from codespec.suggest import tags, words
from codespec.suggest.place import Place
from codespec.suggest.trials import Trials
from codespec.syntax.lexer import CLOSER_OF, NOTHING, OPENER_OF, has_block_comments, joined
from codespec.syntax.trees import n_errors

_CLOSES = re.compile(r"[ \t]*[)\]}>\"'`]+[ \t]*")
# After what closes the line's brackets, which is in the place of the dot.
_TAILS = (
    *("·", "·;", "· {}", "·,", "· {", "·:", "·: x,", "· = x;", "· => {"),
    *(" {", ",", ", () => {}·", ", () => {"),
)
_PROBES = ("x", "", "x, x", "x x", "x;", "x: x,", ";;")
_MOST_READINGS = 2
_MAX_MISSING = 12
_MANY = 1_000
"""More errors than are counted."""


def readings(place: Place, trials: Trials) -> Iterator[Place]:
    """The place in what its document may become, best first; nothing where the document as it is
    needs nothing. Raises: TooLateError."""
    found = _helpful(place, trials, _tails(place)) or _helpful(
        place, trials, _missing(place), (*_completing(place), *_PROBES)
    )
    yield from (_with(place, text) for text in found)


def opens_comment(place: Place) -> bool:
    """True if the cursor is in a comment of lines that nothing closes."""
    end = place.suffix.find("*/")
    return (end < 0 or 0 <= place.suffix.find("/*") < end) and in_comment(place)


def in_comment(place: Place) -> bool:
    """True if the cursor is in a comment of lines, as far as the text before it tells; in a
    language that is not known, in text that looks like one."""
    start = place.prefix.rfind("/*")
    if start < 0 or place.prefix.find("*/", start) >= 0:
        return False
    before = place.prefix[place.prefix.rfind("\n", 0, start) + 1 : start]
    may_be = place.language in ("", TEXT) or has_block_comments(place.language)
    return not before.strip() and may_be


def _tails(place: Place) -> Iterator[str]:
    """Texts that a statement may need behind brackets that stand after the cursor."""
    if not place.rest.strip() or not _CLOSES.fullmatch(place.rest):
        return
    closers = place.whole_line.closers
    facts = record_of(place.language)
    if facts.import_head and re.match(facts.import_head, place.line_prefix):
        yield f"{closers}{facts.import_tail}"
    if tagged := tags.open_in(place.line_prefix + place.rest, place.language):
        yield "".join(opened.closer for opened in reversed(tagged))
    if " ? " in place.line_prefix and facts.conditional:
        yield f" : x{closers}"
    for tail in facts.tails or _TAILS:
        if text := tail.replace("·", closers):
            yield text


def _missing(place: Place) -> Iterator[str]:
    """Texts that close the brackets which the lines above leave open and the lines below do not
    close."""
    if opens_comment(place):
        yield "\n*/"
        return
    if record_of(place.language).words is not None:
        lines, _ = words.left_open(place.lines_above, place.language)
        _, n = words.left_open(place.lines_below, place.language)
        if 0 < len(lines) - n <= _MAX_MISSING:
            yield "".join(f"\n{line}" for line in lines[: len(lines) - n])
        return
    above = joined([*place.lines_above, NOTHING], place.language)
    below = joined(place.lines_below, place.language)
    brackets = list(above.opened)
    closed = [OPENER_OF[bracket] for bracket in below.closed]
    n = len(closed)
    if above.inside or closed[::-1] != brackets[:n] or not 0 < len(brackets) - n <= _MAX_MISSING:
        return
    text = "".join(f"\n{CLOSER_OF[bracket]}" for bracket in reversed(brackets[n:]))
    yield from (text, f"{text};", f"{text},")


def _completing(place: Place) -> Iterator[str]:
    """Texts that make the cursor's line whole where it leaves something open."""
    if closers := place.line.closers:
        yield from (closers, f"x{closers}")
    for line in words.closing_lines(place.line):
        yield f"\n{line}"
    yield from record_of(place.language).probes


def _helpful(
    place: Place, trials: Trials, texts: Iterable[str], probes: tuple[str, ...] = _PROBES
) -> list[str]:
    """Texts after the cursor's line, of those given, that mend most, with one of some simple things
    at the cursor."""
    start, end = place.at, place.line_end

    @cache
    def errors(probe: str, text: str) -> int:
        return n_left(start, f"{probe}{place.rest}{text}")

    def n_left(start: int, new: str) -> int:
        root = trials.with_change(start, end, new.encode())
        return n_errors(root) if root is not None else 0

    found: list[tuple[int, str]] = []
    n_without = -1
    for text in texts:
        if n_without < 0:  # nothing is parsed where there is nothing to try
            n_without = n_left(place.line_start, "")
        fewest = _MANY
        for probe in probes:
            n_before = min(fewest, errors(probe, ""))
            if n_before and (n := errors(probe, text)) < n_before:
                fewest = n
            if fewest == 0:
                break
        if fewest < _MANY:
            found.append((fewest, text))
        if sum(n <= n_without for n, _ in found) == _MOST_READINGS:
            break
    found.sort(key=lambda f: f[0])
    return [text for _, text in found[:_MOST_READINGS]]


def _with(place: Place, text: str) -> Place:
    """The place with `text` after the cursor's line."""
    parsed = place.parsed
    if parsed is not None:
        parsed = parsed.changed(place.line_end, place.line_end, text.encode())
    return place.with_below(text, parsed)
