"""Making a suggestion fit its place: brackets and quotes that balance with the text after the
cursor, and a document that parses where it did before.

The judge is the parser where the language has one, and the balance of brackets elsewhere. Of the
variants of a text, longest first, the first that fits is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from codespec.engine.postprocess.place import Place, indentation
from codespec.engine.postprocess.scan import scan
from codespec.index.trees import error_spans, n_errors

MAX_VARIANTS = 24
_MAX_REACH = 200
_WITH_SEMICOLONS = ("c", "cpp", "java", "rust")
_LAST_CLOSER = re.compile(r"[)\]}>\"'`;,:]\s*\Z")


def fit(text: str, place: Place) -> str:
    """The longest variant that breaks nothing, "" if there is none."""
    fits = _parses(place) if place.parsed is not None else _balances(place)
    tried: set[str] = set()
    for variant in _variants(text, place):
        if variant not in tried and variant.strip():
            tried.add(variant)
            if fits(variant):
                return variant
            if len(tried) == MAX_VARIANTS:
                break
    return ""


def _variants(text: str, place: Place) -> Iterator[str]:
    yield text
    yield from _closed(text, place)
    shorter = text
    while _LAST_CLOSER.search(shorter) and "\n" not in text[len(shorter.rstrip()) - 1 :].strip():
        shorter = shorter.rstrip()[:-1]
        yield shorter
    yield from _without_rest(text.split("\n", 1)[0], place.rest)
    while "\n" in text:
        text = text[: text.rfind("\n")].rstrip()
        yield text
        yield from _closed(text, place)


def _without_rest(line: str, rest: str) -> Iterator[str]:
    """The line without an end that is how the rest begins, or that begins with all of it."""
    rest = "".join(rest.split())
    for at in range(len(line) if rest else 0):
        tail = "".join(line[at:].split())
        if tail and (rest.startswith(tail) or tail.startswith(rest)):
            yield line[:at].rstrip()


def _closed(text: str, place: Place) -> Iterator[str]:
    """With the brackets and quotes that it leaves open."""
    before = place.line_prefix
    found = scan(before + text, place.language)
    if not found.closers or found.inside == "comment":
        return
    # What the suffix closes already, at the end of the cursor's line, needs no closing.
    given = len(scan(place.rest, place.language).extra)
    if "\n" not in text:
        for closers in (found.closers[: len(found.closers) - given], found.closers):
            yield text.rstrip() + closers
            if place.language in _WITH_SEMICOLONS:
                yield f"{text.rstrip()}{closers};"
        return
    # A block is closed on lines of its own.
    closed = text.rstrip()
    for bracket, at in reversed(found.open):
        line = (before + text)[: at + 1].rsplit("\n", 1)[-1]
        lead = line[: len(line) - len(line.lstrip())]
        closed += f"\n{lead}{'}' if bracket == '{' else ')' if bracket == '(' else ']'}"
        yield closed


@lru_cache(maxsize=1)  # candidates for a place are judged one after the other
def _parses(place: Place) -> Callable[[str], bool]:
    parsed = place.parsed
    assert parsed is not None
    at = len(place.prefix.encode())
    line = len(place.line_prefix.encode())
    rest = len(place.rest.encode())

    def errors(start: int, end: int, new: str) -> int:
        root = parsed.with_change(start, end, new.encode())
        return n_errors(root) if root is not None else 0

    @cache
    def allowed() -> int:
        """Errors of the document that are not the cursor's line's fault: what is left without it,
        and, where some of that is beside it, what the line as it is leaves, or the line with
        something simple in the place of the suggestion."""
        first, last = at - line, at + rest
        root = parsed.with_change(first, last, b"")
        spans = error_spans(root) if root is not None else []
        n_above, n_below = _reach(place)
        if not any(first - n_above <= end and start <= first + n_below for start, end in spans):
            return len(spans)
        n = min(len(spans), n_errors(parsed.root) if parsed.root is not None else 0)
        for probe in _probes(place):
            if not n:
                break
            n = min(n, errors(at, at, probe))
        return n

    def fits(variant: str) -> bool:
        if _lacks_body(variant, place):
            return False
        n = errors(at, at, variant)
        return not n or n <= allowed()

    return fits


def _reach(place: Place) -> tuple[int, int]:
    """(bytes before the cursor's line, bytes after it) where an error may be the line's fault: up
    to a line that is indented less, down to the next that is not indented more."""
    indent = indentation(place.line_prefix + place.rest)
    above = place.prefix[: len(place.prefix) - len(place.line_prefix)].split("\n")[:-1]
    below = place.suffix.split("\n")[1:]
    n_above = _n_until(reversed(above[-_MAX_REACH:]), lambda line: indentation(line) < indent)
    n_below = _n_until(iter(below[:_MAX_REACH]), lambda line: indentation(line) <= indent)
    lines_above, lines_below = above[len(above) - n_above :], below[:n_below]
    return sum(len(s.encode()) + 1 for s in lines_above), sum(
        len(s.encode()) + 1 for s in lines_below
    )


def _n_until(lines: Iterator[str], is_last: Callable[[str], bool]) -> int:
    """How many lines up to the first that is not blank and is the last, it included."""
    n = 0
    for n, line in enumerate(lines, 1):  # noqa: B007
        if line.strip() and is_last(line):
            break
    return n


def _probes(place: Place) -> Iterator[str]:
    """Texts that may make a whole of the lines around: a name, what is open closed, and what opens
    a bracket or a block that is closed below."""
    closers = scan(place.line_prefix, place.language).closers
    for end in ("", "(", "[", " {", ":"):
        yield f"x{closers}{end}"
    yield from (" = {", "() {", "x() {")


def _lacks_body(variant: str, place: Place) -> bool:
    """Whether the last of several lines opens a block that has no line; Python's grammar here is
    more patient than Python."""
    if place.language != "python" or "\n" not in variant.strip():
        return False
    last = variant.rstrip().rsplit("\n", 1)[-1]
    if not scan(last, place.language).code.rstrip().endswith(":"):
        return False
    return indentation(place.line_below) <= indentation(last)


def _balances(place: Place) -> Callable[[str], bool]:
    def imbalance(text: str) -> int:
        found = scan(place.line_prefix + text + place.rest, place.language)
        return len(found.open) + len(found.extra)

    before = imbalance("")
    floor = indentation(place.line_prefix)

    def fits(variant: str) -> bool:
        # Without a parser, text that opens a block on its last line is not at fault.
        last = variant.rsplit("\n", 1)[-1]
        opens = indentation(last) >= floor and last.rstrip().endswith(("{", "(", "["))
        return imbalance(variant) <= before + opens

    return fits
