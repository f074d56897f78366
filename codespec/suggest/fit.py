"""Making a suggestion fit its place: brackets and quotes that balance with the text after the
cursor, and a document that parses where it did before.

Of the variants of a text, longest first, the first that all judges take is taken. They are the
grammar where the language has one, for Python its own parser as well, and the balance of brackets
elsewhere; what the lines below close; and that nothing after the cursor is said again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from codespec.languages.registry import record_of
from codespec.suggest import words
from codespec.suggest.balance import balances, blocks_balance
from codespec.suggest.below import wanted_openers
from codespec.suggest.candidate import Candidate
from codespec.suggest.json_values import closes_values
from codespec.suggest.place import Place, lead_of
from codespec.suggest.python import is_python
from codespec.suggest.readings import readings
from codespec.suggest.rest_of_line import before_comment, keeps_rest
from codespec.suggest.syntax_check import follows_grammar
from codespec.suggest.trials import Late, TooLateError, Trials, never
from codespec.suggest.trim import places_of, runs_together, upto, without_suffix
from codespec.syntax.lexer import CLOSER_OF, IN_TAG, OPENER_OF, Lexed, joined

MAX_VARIANTS = 24
_CHECKERS = {"ast": is_python}
_LAST_CLOSER = re.compile(r"[)\]}>\"'`;,:]\s*\Z")


def fit(candidate: Candidate, judge: Judge, late: Late = never, said: str = "") -> str:
    """The longest variant that breaks nothing, "" if there is none.

    said: the model's own text, before anything was taken away.

    Raises: TooLateError, where `late` turns true before that is known.
    """
    tried: set[str] = set()
    for text in _variants(candidate):
        if text not in tried and text.strip():
            tried.add(text)
            variant = candidate.became(text)
            leads_on = said.startswith(text + variant.place.rest)
            if not runs_together(variant, said) and judge.takes(variant, late, leads_on=leads_on):
                return text
            if len(tried) == MAX_VARIANTS:
                break
    return ""


_Takes: TypeAlias = Callable[[Candidate, Late], bool]


class Judge:
    """Takes or refuses candidates for a place, in its document as it is or as it may become. What
    is learnt of the place with one candidate serves the next. Not thread-safe."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._trials = Trials(place.parsed) if place.parsed is not None else None
        self._keeps_rest = keeps_rest(place, self._trials)
        self._tried: list[_Takes] = []
        self._others: Iterator[_Takes] = iter(())

    def takes(self, candidate: Candidate, late: Late, *, leads_on: bool = False) -> bool:
        """leads_on: the model went on with the rest of the line, as in `al|l`.

        Raises: TooLateError, where `late` turns true before that is known.
        """
        if late():
            raise TooLateError
        # What is shorter may end just where the text after the cursor is said again.
        if not leads_on and without_suffix(candidate) != candidate.text:
            return False
        if self._trials is not None:
            self._trials.late = late
        try:
            return self._keeps_rest(candidate) and self._takes(candidate, late)
        except TooLateError:
            self._tried = []  # what they know was left half-way
            raise

    def _takes(self, candidate: Candidate, late: Late) -> bool:
        if not self._tried:
            place, trials = self._place, self._trials
            # The first one tells `trials` how much time is left.
            self._tried = [_reading(place, trials)]
            others = readings(place, trials) if trials is not None else iter(())
            self._others = (_reading(other) for other in others)
        if any(takes(candidate, late) for takes in self._tried):
            return True
        for takes in self._others:
            self._tried.append(takes)
            if takes(candidate, late):
                return True
        return False


def _reading(place: Place, trials: Trials | None = None) -> _Takes:
    """place: in what its document may become. trials: of that document, if there are any."""
    if trials is None and place.parsed is not None:
        trials = Trials(place.parsed)
    judges = _judges(place, trials)

    def takes(candidate: Candidate, late: Late) -> bool:
        if late():
            raise TooLateError
        if trials is not None:
            trials.late = late
        here = candidate.at(place)
        return all(judge(here) for judge in judges)

    return takes


def _judges(place: Place, trials: Trials | None) -> list[Callable[[Candidate], bool]]:
    facts = record_of(place.language)
    if trials is None:
        judges = [balances(place)]
        if facts.grammar is None and (facts.words is not None or facts.is_markup):
            judges.append(blocks_balance(place))
        if facts.json is not None:
            judges.append(closes_values(place))
    else:
        judges = [follows_grammar(place, trials)]
        if facts.checker:
            judges.append(_CHECKERS[facts.checker](place, trials))
    asked = None if facts.prose else wanted_openers(place)
    if asked is not None:
        judges.insert(0, _opens(*asked))
    return judges


def _opens(above: list[Lexed], wanted: tuple[str, str]) -> Callable[[Candidate], bool]:
    def opens(candidate: Candidate) -> bool:
        found = joined([*above, candidate.whole], candidate.place.language)
        return not found.extra and found.opened in wanted

    return opens


def _variants(candidate: Candidate) -> Iterator[str]:
    text, rest = candidate.text, candidate.place.rest
    yield from _with_ends(candidate)
    shorter = before_comment(candidate)
    if shorter != text:
        yield from _variants(candidate.became(shorter))
    yield from _without_given_closers(candidate)
    shorter = "" if _begins_string(candidate) else text
    while _LAST_CLOSER.search(shorter) and "\n" not in text[len(shorter.rstrip()) - 1 :].strip():
        shorter = shorter.rstrip()[:-1]
        yield shorter
    yield from _without_rest(text.split("\n", 1)[0], rest)
    yield from _upto_quote(candidate)
    while "\n" in candidate.text:
        text = candidate.text
        candidate = candidate.became(text[: text.rfind("\n")].rstrip())
        yield from _with_ends(candidate)


def _with_ends(candidate: Candidate) -> Iterator[str]:
    """The text as it is, and with what ends the blocks that it leaves open."""
    yield candidate.text
    yield from _closed(candidate)
    yield from _ended(candidate)
    yield from _with_last_tags(candidate)


def _upto_quote(candidate: Candidate) -> Iterator[str]:
    """The text up to where it closes the string that is closed right after the cursor."""
    text, place = candidate.text, candidate.place
    quote = place.line.inside
    if quote in ("", "comment") or not place.rest.startswith(quote):
        return
    for at in places_of(quote[0], text):
        if not candidate.became(text[: at + len(quote)]).line.inside:
            yield text[:at]
            return


def _without_given_closers(candidate: Candidate) -> Iterator[str]:
    """The first line up to each bracket that it closes without having opened it, where the text
    after the cursor begins with that bracket; longest first."""
    given = candidate.place.rest.lstrip()[:1]
    if given not in OPENER_OF:
        return
    line = candidate.first.text
    for at in reversed(candidate.first.extra):
        if line[at] == given:
            yield line[:at].rstrip()


def _without_rest(line: str, rest: str) -> Iterator[str]:
    """The line without an end that is how the rest begins, or that begins with all of it."""
    squeezed = "".join(rest.split())
    for at in places_of(squeezed[:1], line):
        tail = "".join(line[at:].split())
        if squeezed.startswith(tail) or tail.startswith(squeezed):
            yield upto(line, at, rest)


def _begins_string(candidate: Candidate) -> bool:
    """True if the text was cut off where a string begins, of which it holds nothing."""
    inside = candidate.line.inside
    return inside not in ("", "comment") and candidate.text.rstrip().endswith(inside)


def _closed(candidate: Candidate) -> Iterator[str]:
    """The text with the brackets and quotes that it leaves open."""
    text, place, found = candidate.text, candidate.place, candidate.line
    if not found.closers or found.inside == "comment" or _begins_string(candidate):
        return
    if "\n" not in text:
        # What the suffix closes already, at the end of the cursor's line, needs no closing.
        given = len(place.end_of_line.extra)
        for closers in (found.closers[: len(found.closers) - given], found.closers):
            yield text.rstrip() + closers
            if record_of(place.language).semicolons:
                yield f"{text.rstrip()}{closers};"
        return
    # A block is closed on lines of its own, and documentation of several lines.
    closed = text.rstrip()
    if found.inside:
        is_own = place.line_prefix.lstrip().startswith(('"""', "'''"))
        lead = lead_of(place.line_prefix)
        closed += f"\n{lead}{found.inside}" if is_own else found.inside
        yield closed
    begun = -1  # where the line begins whose brackets were closed last
    for bracket, at in reversed(found.open):
        start = found.text.rfind("\n", 0, at) + 1
        lead = lead_of(found.text[start : at + 1])
        closed += f"\n{lead}{CLOSER_OF[bracket]}" if start != begun else CLOSER_OF[bracket]
        begun = start
        yield closed


def _with_last_tags(candidate: Candidate) -> Iterator[str]:
    """The text with the tags that end the elements it leaves open, and the brackets between."""
    candidate = candidate.became(candidate.text.rstrip())
    whole, ended = candidate.head, candidate.text
    opened = () if candidate.place.rest.strip() else candidate.tags or ()
    begun = len(whole)  # where the line begins whose element was ended last
    for closer, at, _ in reversed(opened if any(tag.is_element for tag in opened) else ()):
        start = whole.rfind("\n", 0, at) + 1
        lead = lead_of(whole[start : at + 1])
        is_own = "\n" in whole[at:] and start != begun and closer != IN_TAG
        ended += f"\n{lead}{closer}" if is_own else closer
        begun = start
        yield ended


def _ended(candidate: Candidate) -> Iterator[str]:
    """The text with the words that end the blocks it leaves open."""
    ended = candidate.text.rstrip()
    for line in words.closing_lines(candidate.line):
        ended += f"\n{line}"
        yield ended
