"""The judge by a grammar: a document has to follow it with a suggestion in its place. Errors that
the document has of its own are not the suggestion's fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tree_sitter import Node

from codespec.suggest.below import construct_ends
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import Place, indentation
from codespec.suggest.trials import Trials, once
from codespec.syntax.parse import facts_of
from codespec.syntax.trees import error_spans

_OVER_LINES = ('"""', "'''")


def follows_grammar(place: Place, parsed: Trials) -> Callable[[Candidate], bool]:
    """A judge of variants of the suggestion for one place."""
    at, line, rest = place.at, place.at - place.line_start, place.line_end - place.at

    def errors(start: int, end: int, new: str) -> int:
        return len(_spans(parsed.with_change(start, end, new.encode()), place.language))

    def beside() -> tuple[int, Iterator[str]]:
        """(errors of the document that are not the cursor's line's fault: what is left without it,
        and the line as it is; where some of that is beside it, probes that may leave fewer)."""
        first, last = at - line, at + rest
        spans = _spans(parsed.with_change(first, last, b""), place.language)
        if not spans:
            return 0, iter(())
        n = min(len(spans), len(_spans(parsed.root, place.language)))
        n_above, n_below = _reach(place)
        near = any(first - n_above <= end and start <= last + n_below for start, end in spans)
        return n, probes(place) if near else iter(())

    fewest: int | None = None
    untried: Iterator[str] = iter(())

    def allows(n: int) -> bool:
        """True if so many errors are not the line's fault. Asks no more probes than it takes."""
        nonlocal fewest, untried
        if fewest is None:
            fewest, untried = beside()
        while n <= fewest and (probe := next(untried, None)) is not None:
            fewest = min(fewest, errors(at, at, probe))
        return n <= fewest

    @once
    def is_whole_without() -> bool:
        """True if the document is without errors once the cursor's line is gone, with what is
        indented below it and what closes that."""
        return any(errors(at - line, at + n, "") == 0 for n in construct_ends(place))

    def in_line(spans: list[tuple[int, int]], n: int) -> bool:
        """True if an error reaches into the lines of the cursor and of `n` bytes after it."""
        return any(start <= at + n + rest and at - line <= end for start, end in spans)

    def opens_text(variant: Candidate) -> bool:
        """True if a string would reach from the line into what is sound without the line. Known
        without a parse, which would be one of all that follows."""
        text = variant.head + place.rest
        if not any(quotes in text for quotes in _OVER_LINES):
            return False
        return variant.whole.inside in _OVER_LINES and errors(at - line, at + rest, "") == 0

    def follows(variant: Candidate) -> bool:
        if opens_text(variant):
            return False
        new = variant.text.encode()
        spans = _spans(parsed.with_change(at, at, new), place.language)
        if not spans:
            return True
        return allows(len(spans)) and not (in_line(spans, len(new)) and is_whole_without())

    return follows


def _spans(root: Node | None, language: str) -> list[tuple[int, int]]:
    """`error_spans`, with the places of words too many that the grammar takes for names; another
    name of that length counts before and after."""
    if root is None:
        return []
    lengths = {len(word) for word in facts_of(language).strays}
    names = (c for c in root.children if c.type == "identifier") if lengths else ()
    ends = [(c.start_byte, c.end_byte) for c in names if c.end_byte - c.start_byte in lengths]
    return error_spans(root) + ends


def _reach(place: Place) -> tuple[int, int]:
    """(bytes before the cursor's line, bytes after it) where an error may be the line's fault: up
    to a line that is indented less, down to the next that is not indented more."""
    indent = indentation(place.line_prefix + place.rest)
    n_above = _n_until(reversed(place.above), lambda line: indentation(line) < indent)
    n_below = _n_until(iter(place.below), lambda line: indentation(line) <= indent)
    lines_above = place.above[len(place.above) - n_above :]
    lines_below = place.below[:n_below]
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


def probes(place: Place) -> Iterator[str]:
    """Texts that may make a whole of the lines around: a name, what is open closed, and what opens
    a bracket or a block that is closed below."""
    closers = place.line.closers
    if closers:
        yield "x"
    for end in ("", "(", "[", " {", ":"):
        yield f"x{closers}{end}"
    yield from (" = {", "() {", "x() {")
