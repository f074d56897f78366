"""Making a suggestion fit its place: brackets and quotes that balance with the text after the
cursor, and a document that parses where it did before.

Of the variants of a text, longest first, the first that all judges take is taken. They are the
grammar where the language has one, for Python its own parser as well, and the balance of brackets
elsewhere; what the lines below close; and that nothing after the cursor is said again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from codespec.engine.postprocess import tags, words
from codespec.engine.postprocess.balance import balances, blocks_balance
from codespec.engine.postprocess.below import wanted_openers
from codespec.engine.postprocess.grammar import follows_grammar
from codespec.engine.postprocess.place import Place, lead_of
from codespec.engine.postprocess.python import is_python
from codespec.engine.postprocess.readings import readings
from codespec.engine.postprocess.scan import CLOSER_OF, IN_TAG, scan
from codespec.engine.postprocess.trials import Late, TooLateError, Trials, never
from codespec.engine.postprocess.trim import places_of, without_suffix
from codespec.index.languages import NOTATIONS

MAX_VARIANTS = 24
_WITH_SEMICOLONS = ("c", "cpp", "java", "rust", "csharp", "php")
_LAST_CLOSER = re.compile(r"[)\]}>\"'`;,:]\s*\Z")


def fit(text: str, place: Place, late: Late = never) -> str:
    """The longest variant that breaks nothing, "" if there is none.

    Raises: TooLateError, where `late` turns true before that is known.
    """
    fits = _judge(place)
    tried: set[str] = set()
    try:
        for variant in _variants(text, place):
            if variant not in tried and variant.strip():
                tried.add(variant)
                if fits(variant, late):
                    return variant
                if len(tried) == MAX_VARIANTS:
                    break
    except TooLateError:
        _judge.cache_clear()  # what it remembers was left half-way
        raise
    return ""


@lru_cache(maxsize=1)  # candidates for a place are judged one after the other
def _judge(place: Place) -> Callable[[str, Late], bool]:
    trials = Trials(place.parsed) if place.parsed is not None else None
    others = (_reading(place, at) for at in readings(place, trials)) if trials else iter(())
    tried = [_reading(place, place, trials)]  # the first one tells `trials` how much time is left

    def fits(variant: str, late: Late) -> bool:
        if any(reads(variant, late) for reads in tried):
            return True
        for reads in others:
            tried.append(reads)
            if reads(variant, late):
                return True
        return False

    return fits


def _reading(place: Place, at: Place, trials: Trials | None = None) -> Callable[[str, Late], bool]:
    """at: the place in what its document may become. trials: of that document, if there are any."""
    if trials is None and at.parsed is not None:
        trials = Trials(at.parsed)
    judges = _judges(at, trials)
    # What is shorter may end just where the text after the cursor is said again.
    judges.insert(0, lambda variant: without_suffix(variant, place) == variant)

    def fits(variant: str, late: Late) -> bool:
        if late():
            raise TooLateError
        if trials is not None:
            trials.late = late
        return all(judge(variant) for judge in judges)

    return fits


def _judges(place: Place, trials: Trials | None) -> list[Callable[[str], bool]]:
    if trials is None:
        judges = [balances(place)]
        if place.language in NOTATIONS:
            judges.append(blocks_balance(place))
    else:
        judges = [follows_grammar(place, trials)]
        if place.language == "python":
            judges.append(is_python(place, trials))
    asked = wanted_openers(place)
    if asked is not None:
        judges.insert(0, _opens(place, *asked))
    return judges


def _opens(place: Place, above: str, wanted: tuple[str, str]) -> Callable[[str], bool]:
    def opens(variant: str) -> bool:
        found = scan(above + place.line_prefix + variant + place.rest, place.language)
        return not found.extra and "".join(bracket for bracket, _ in found.open) in wanted

    return opens


def _variants(text: str, place: Place) -> Iterator[str]:
    yield from _with_ends(text, place)
    line = text.split("\n", 1)[0]
    yield from _without_given_closers(line, place)
    shorter = "" if _begins_string(text, place) else text
    while _LAST_CLOSER.search(shorter) and "\n" not in text[len(shorter.rstrip()) - 1 :].strip():
        shorter = shorter.rstrip()[:-1]
        yield shorter
    yield from _without_rest(line, place.rest)
    while "\n" in text:
        text = text[: text.rfind("\n")].rstrip()
        yield from _with_ends(text, place)


def _with_ends(text: str, place: Place) -> Iterator[str]:
    """As it is, and with what ends the blocks that it leaves open."""
    yield text
    yield from _closed(text, place)
    yield from _ended(text, place)
    yield from _with_last_tags(text, place)


def _without_given_closers(line: str, place: Place) -> Iterator[str]:
    """The line up to each bracket that it closes without having opened it, where the text after the
    cursor begins with that bracket; longest first."""
    for at in reversed(scan(line, place.language).extra):
        if place.rest.lstrip()[:1] == line[at]:
            yield line[:at].rstrip()


def _without_rest(line: str, rest: str) -> Iterator[str]:
    """The line without an end that is how the rest begins, or that begins with all of it."""
    rest = "".join(rest.split())
    for at in places_of(rest[:1], line):
        tail = "".join(line[at:].split())
        if rest.startswith(tail) or tail.startswith(rest):
            yield line[:at].rstrip()


def _begins_string(text: str, place: Place) -> bool:
    """Whether it was cut off where a string begins, of which it holds nothing."""
    inside = scan(place.line_prefix + text, place.language).inside
    return inside not in ("", "comment") and text.rstrip().endswith(inside)


def _closed(text: str, place: Place) -> Iterator[str]:
    """With the brackets and quotes that it leaves open."""
    before = place.line_prefix
    found = scan(before + text, place.language)
    if not found.closers or found.inside == "comment" or _begins_string(text, place):
        return
    # What the suffix closes already, at the end of the cursor's line, needs no closing.
    given = len(scan(place.rest, place.language).extra)
    if "\n" not in text:
        for closers in (found.closers[: len(found.closers) - given], found.closers):
            yield text.rstrip() + closers
            if place.language in _WITH_SEMICOLONS:
                yield f"{text.rstrip()}{closers};"
        return
    # A block is closed on lines of its own, and documentation of several lines.
    closed = text.rstrip()
    if found.inside:
        is_own = before.lstrip().startswith(('"""', "'''"))
        closed += f"\n{lead_of(before)}{found.inside}" if is_own else found.inside
        yield closed
    begun = -1  # where the line begins whose brackets were closed last
    for bracket, at in reversed(found.open):
        start = (before + text).rfind("\n", 0, at) + 1
        lead = lead_of((before + text)[start : at + 1])
        closed += f"\n{lead}{CLOSER_OF[bracket]}" if start != begun else CLOSER_OF[bracket]
        begun = start
        yield closed


def _with_last_tags(text: str, place: Place) -> Iterator[str]:
    """With the tags that end the elements it leaves open, and the brackets between them."""
    whole, ended = place.line_prefix + text.rstrip(), text.rstrip()
    opened = () if place.rest.strip() else tags.open_in(whole, place.language) or ()
    begun = len(whole)  # where the line begins whose element was ended last
    for closer, at, _ in reversed(opened if any(tag.is_element for tag in opened) else ()):
        start = whole.rfind("\n", 0, at) + 1
        lead = lead_of(whole[start : at + 1])
        is_own = "\n" in whole[at:] and start != begun and closer != IN_TAG
        ended += f"\n{lead}{closer}" if is_own else closer
        begun = start
        yield ended


def _ended(text: str, place: Place) -> Iterator[str]:
    """With the words that end the blocks it leaves open."""
    ended = text.rstrip()
    for line in words.closing_lines(place.line_prefix + text, place.language):
        ended += f"\n{line}"
        yield ended
