"""What a half-typed document may become: other texts around the cursor, in which a suggestion is
judged where it is refused in the document as it is.

An editor closes a bracket or a quote at once; what the statement needs behind it, `;`, `:`, a
body, is typed later. And where no editor closes anything, all blocks around the cursor are open
until they are written. So text that would stand after the cursor's line is tried, with something
simple at the cursor, and what leaves fewer errors than there are now is one more way to read the
document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from codespec.engine.postprocess import tags, words
from codespec.engine.postprocess.place import Place
from codespec.engine.postprocess.scan import CLOSER_OF, OPENER_OF, scan
from codespec.engine.postprocess.trials import Trials
from codespec.index.languages import TEXT
from codespec.index.trees import n_errors

_CLOSES = re.compile(r"[ \t]*[)\]}>\"'`]+[ \t]*")
# After what closes the line's brackets, which is in the place of the dot.
_TAILS = (
    *("·", "·;", "· {}", "·,", "· {", "·:", "·: x,", "· = x;", "· => {"),
    *(" {", ",", ", () => {}·", ", () => {"),
)
_TAILS_OF = {
    "python": ("·", "·:", "·: pass", "·,", "·: x,"),
    "ruby": ("·", "·,", "· do\nend", "\nend", "· do"),
    "lua": (
        *("·", "·,", "· then", "· do", "· end", "· then\nend"),
        *(", function()\nend·", ", function()"),
    ),
}
_IMPORTS = re.compile(r"\s*(?:import|export)\b[^('\"]*\{[^}'\"]*\Z")
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
    """Whether the cursor is in a comment of lines that nothing closes."""
    end = place.suffix.find("*/")
    return (end < 0 or 0 <= place.suffix.find("/*") < end) and in_comment(place)


def in_comment(place: Place) -> bool:
    """Whether the cursor is in a comment of lines, as far as the text before it tells; of a
    language that is not known, what looks like one."""
    start = place.prefix.rfind("/*")
    if start < 0 or place.prefix.find("*/", start) >= 0:
        return False
    before = place.prefix[place.prefix.rfind("\n", 0, start) + 1 : start]
    may_be = place.language in ("", TEXT) or scan("/*", place.language).inside == "comment"
    return not before.strip() and may_be


def _tails(place: Place) -> Iterator[str]:
    """What a statement may need behind brackets that stand after the cursor."""
    if not place.rest.strip() or not _CLOSES.fullmatch(place.rest):
        return
    closers = scan(place.line_prefix + place.rest, place.language).closers
    if place.language in ("javascript", "typescript", "tsx") and _IMPORTS.match(place.line_prefix):
        yield f'{closers} from "x"'
    if tagged := tags.open_in(place.line_prefix + place.rest, place.language):
        yield "".join(opened.closer for opened in reversed(tagged))
    if " ? " in place.line_prefix and place.language != "python":
        yield f" : x{closers}"
    for tail in _TAILS_OF.get(place.language, _TAILS):
        if text := tail.replace("·", closers):
            yield text


def _missing(place: Place) -> Iterator[str]:
    """What closes the brackets that the lines above leave open and the lines below do not close."""
    if opens_comment(place):
        yield "\n*/"
        return
    if place.language in words.LANGUAGES:
        lines, _ = words.left_open("\n".join(place.above), place.language)
        _, n = words.left_open("\n".join(place.below), place.language)
        if 0 < len(lines) - n <= _MAX_MISSING:
            yield "".join(f"\n{line}" for line in lines[: len(lines) - n])
        return
    above, below = "".join(f"{s}\n" for s in place.above), "\n".join(place.below)
    opened = scan(above, place.language)
    brackets = [bracket for bracket, _ in opened.open]
    closed = [OPENER_OF[below[at]] for at in scan(below, place.language).extra]
    n = len(closed)
    if opened.inside or closed[::-1] != brackets[:n] or not 0 < len(brackets) - n <= _MAX_MISSING:
        return
    text = "".join(f"\n{CLOSER_OF[bracket]}" for bracket in reversed(brackets[n:]))
    yield from (text, f"{text};", f"{text},")


def _completing(place: Place) -> Iterator[str]:
    """What makes the cursor's line whole that leaves something open."""
    if closers := scan(place.line_prefix, place.language).closers:
        yield from (closers, f"x{closers}")
    for line in words.closing_lines(place.line_prefix, place.language):
        yield f"\n{line}"
    if place.language == "lua":  # which has no statement that is merely a name
        yield from ("()", "x()", " then\nend", " do\nend")


def _helpful(
    place: Place, trials: Trials, texts: Iterable[str], probes: tuple[str, ...] = _PROBES
) -> list[str]:
    """Of these texts after the cursor's line those that mend most, with one of some simple things
    at the cursor."""
    start = len(place.prefix.encode())
    end = start + len(place.rest.encode())

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
            n_without = n_left(start - len(place.line_prefix.encode()), "")
        fewest = _MANY
        for probe in probes:
            if (n := errors(probe, text)) < min(fewest, errors(probe, "")):
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
    """With `text` after the cursor's line."""
    at = len(place.rest)
    parsed = place.parsed
    if parsed is not None:
        end = len(place.prefix.encode()) + len(place.rest.encode())
        parsed = parsed.changed(end, end, text.encode())
    suffix = place.suffix[:at] + text + place.suffix[at:]
    return replace(place, suffix=suffix, parsed=parsed)
