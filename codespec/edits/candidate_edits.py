"""Candidate edits: the places that the patterns of a session fit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from codespec.edits.base import CursorLine, Texts
from codespec.edits.dismissals import Dismissals
from codespec.edits.edit_session import EditSession
from codespec.edits.import_pattern import RemovedImportPattern
from codespec.edits.line_tokens import defined_name, words
from codespec.edits.pattern import FittingPlace, Pattern, renames_definition
from codespec.edits.searched_text import SearchedText, SearchedTexts

N_PATTERNS = 36
"""The newest patterns that are looked for."""
N_REPEATED = 15
"""Older patterns that were made more than once, beside those."""
N_REMOVED = 6
"""The newest patterns of names that are imported no more, beside those."""
N_PLACES = 10
"""Places of one pattern that are ranked."""
N_FOUND = 250
"""Places of one pattern that are looked at, those in the cursor's document first."""
N_FOUND_ALIKE = 100
"""The same for patterns whose places are compared one by one."""
N_ALL_FOUND = 2000
"""Places of all patterns that are looked at; beyond, older patterns are left out."""
N_CANDIDATES = 70
"""Places of all patterns that are ranked."""
N_FILES = 30
"""Files that are not open and are searched for one pattern."""
N_ALL_FILES = 200
"""Such files that are searched for one question; beyond, no more are asked for."""
_N_WORDS = 6
"""Words of a pattern that a file has to hold, the longest."""
_NEAR = 8
"""Lines between places of patterns that belong together."""
_BLOCK = "block"
_BY_SHAPE = frozenset({"template"})
_BY_ANALOGY = frozenset({"analogy", "block_analogy"})


class FoundPlace(NamedTuple):
    """A place and the text that it stands in."""

    text: SearchedText
    place: FittingPlace

    @property
    def edit(self) -> tuple[str, int, int, tuple[str, ...]]:
        """The edit: path, first line, number of lines, new lines."""
        return self.text.path, self.place.line, self.place.n_old, self.place.new

    @property
    def lines(self) -> range:
        """Numbers of the lines that would be replaced."""
        return range(self.place.line, self.place.line + self.place.n_old)

    @property
    def old(self) -> tuple[str, ...]:
        """The lines that would be replaced."""
        return tuple(self.text.lines[self.place.line : self.place.line + self.place.n_old])

    def is_among(self, dismissed: Dismissals) -> bool:
        """True for an edit that the user did not want here."""
        edit = self.text.path, self.old, self.place.new
        return dismissed.has(edit, self.text.lines, self.place.line)


@dataclass(frozen=True, slots=True)
class PatternPlaces:
    """All places that are left for one pattern.

    n_left: places by path. n_left_edited: of them in documents with changes.
    contexts: how much context agrees, of each place, ascending.
    passed_contexts: the same of the places that the user passed over: those above the last one made
        in their document, and those in other documents with changes.
    n_passed: such places by path. n_passed_elsewhere: of them outside the cursor's document.
    last_lines: line of the lowest making, by path.
    n_dismissed: its proposals that the user did not want.
    home: the open document in which it was made last; None where it is closed.
    renames: the name of a definition was replaced, which nothing defines any more.
    n_defining: of the places, those that define the name still, where a definition was renamed.
    """

    pattern: Pattern
    home: SearchedText | None
    n_left: Counter[str]
    n_left_edited: int
    contexts: list[int]
    passed_contexts: list[int]
    n_passed: Counter[str]
    n_passed_elsewhere: int
    last_lines: Mapping[str, int]
    n_dismissed: int
    renames: bool
    n_defining: int


@dataclass(slots=True)
class CandidateEdit:
    """An edit that may be proposed.

    rank_below: how many places of its pattern stand between the cursor and it.
    n_agreeing: other patterns that say the same. n_rivals: edits of the same lines that say
    otherwise. n_companions: other patterns of the same change that fit near it.
    """

    found: FoundPlace
    places: PatternPlaces
    is_below: bool
    rank_below: int
    n_agreeing: int = 0
    n_rivals: int = 0
    n_companions: int = 0

    @property
    def context(self) -> int:
        """How much of the context agrees."""
        return context_of(self.found.place)


def context_of(place: FittingPlace) -> int:
    """Tokens or lines that agree around a place; six more where all of the line does."""
    return place.n_left + place.n_right + 6 * place.whole


class CandidateSearch:
    """Looks for candidates in texts that it keeps from one question to the next."""

    def __init__(self) -> None:
        self._open = SearchedTexts(256)
        self._files = SearchedTexts(512)

    def open_texts(self, texts: Texts) -> dict[str, SearchedText]:
        """The open documents, by path."""
        known = {path: self._open.get(path, text, True) for path, text in texts.open.items()}
        self._open.keep(set(known))
        return known

    def candidates(
        self,
        session: EditSession,
        open_texts: Mapping[str, SearchedText],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Dismissals,
    ) -> list[CandidateEdit]:
        """At most `N_CANDIDATES` edits, none twice, none of lines that were changed already."""
        ranked: list[tuple[float, CandidateEdit]] = []
        among = _Searched(open_texts, texts, self._files, cursor.path)
        n_found = 0
        for pattern in _looked_for(session):
            if n_found >= N_ALL_FOUND:
                break
            n_most = N_FOUND if pattern.everywhere else N_FOUND_ALIKE
            found = list(islice(self._places(pattern, session, among), n_most))
            n_found += len(found)
            wanted = [f for f in found if not f.is_among(dismissed)] if dismissed else found
            if wanted:
                home = open_texts.get(pattern.makings[-1].change.path)
                contexts = [context_of(each.place) for each in wanted]
                n_dismissed = len(found) - len(wanted)
                places = _summary(pattern, home, session, wanted, contexts, cursor, n_dismissed)
                ranked += _best(places, session, wanted, contexts, cursor)
        ranked = _without_parts(sorted(ranked, key=lambda each: -each[0]))
        by_edit: dict[object, CandidateEdit] = {}
        by_place: dict[tuple[str, int], set[tuple[str, ...]]] = defaultdict(set)
        for _, candidate in ranked:
            edit = candidate.found.edit
            known = by_edit.setdefault(edit, candidate)
            if known is not candidate:
                known.n_agreeing += 1
            by_place[edit[0], edit[1]].add(edit[3])
        chosen = list(by_edit.values())[:N_CANDIDATES]
        for candidate in chosen:
            edit = candidate.found.edit
            candidate.n_rivals = len(by_place[edit[0], edit[1]]) - 1
        _count_companions([candidate for _, candidate in ranked])
        return chosen

    def _places(
        self, pattern: Pattern, session: EditSession, among: _Searched
    ) -> Iterator[FoundPlace]:
        home = among.open_texts.get(pattern.makings[-1].change.path)
        for text in among.of(pattern, session, home):
            is_edited = text.path in session.paths
            for place in pattern.places(text, home):
                found = FoundPlace(text, place)
                is_made = is_edited and session.covers(text.path, place.line, place.n_old)
                if not is_made and found.old != place.new:
                    yield found


class _Searched:
    """The texts in which one question looks for places. Each set of words is asked for once."""

    def __init__(
        self,
        open_texts: Mapping[str, SearchedText],
        texts: Texts,
        files: SearchedTexts,
        first: str,
    ) -> None:
        """first: path of the document that is searched before all others."""
        self.open_texts = open_texts
        self._order = sorted(open_texts.values(), key=lambda text: text.path != first)
        self._texts = texts
        self._files = files
        self._held: dict[tuple[str, ...], list[SearchedText]] = {}
        self._paths: set[str] = set()

    def of(
        self, pattern: Pattern, session: EditSession, home: SearchedText | None
    ) -> Iterator[SearchedText]:
        """Texts for places of a pattern. home: the text in which it was made last."""
        if pattern.everywhere:
            yield from self._order
            yield from self._holding(pattern.needle)
            return
        suffix = home.suffix if home is not None else ""
        for text in self._order:
            if text.path in session.paths and text.suffix == suffix:
                yield text

    def _holding(self, needle: str) -> list[SearchedText]:
        needed = tuple(sorted(set(words(needle)), key=lambda word: (-len(word), word))[:_N_WORDS])
        known = self._held.get(needed)
        if known is None:
            known = self._held[needed] = []
            if needed and len(self._paths) < N_ALL_FILES:
                for path, text in self._texts.holding(needed, N_FILES):
                    if path not in self.open_texts:
                        self._paths.add(path)
                        known.append(self._files.get(path, text, False))
        return known


def _looked_for(session: EditSession) -> list[Pattern]:
    """The newest patterns, older ones that were made more than once, and beside them the newest of
    names that are imported no more."""
    patterns = sorted(
        session.patterns.values(), key=lambda p: (p.newest, len(p.makings)), reverse=True
    )
    removed = [pattern for pattern in patterns if isinstance(pattern, RemovedImportPattern)]
    others = [pattern for pattern in patterns if not isinstance(pattern, RemovedImportPattern)]
    older = [pattern for pattern in others[N_PATTERNS:] if len(pattern.numbers) > 1]
    return others[:N_PATTERNS] + older[:N_REPEATED] + removed[:N_REMOVED]


def _count_companions(candidates: list[CandidateEdit]) -> None:
    """Count the patterns of one change that fit near one another."""
    by_change: dict[tuple[str, int], list[CandidateEdit]] = defaultdict(list)
    for candidate in candidates:
        change = candidate.places.pattern.makings[-1].change.number
        by_change[candidate.found.text.path, change].append(candidate)
    for together in by_change.values():
        for candidate in together:
            line, pattern = candidate.found.place.line, candidate.places.pattern
            near = {
                other.places.pattern.needle
                for other in together
                if abs(other.found.place.line - line) <= _NEAR and other.found.place.line != line
            }
            candidate.n_companions = len(near - {pattern.needle, ""})


def _without_parts(
    ranked: list[tuple[float, CandidateEdit]],
) -> list[tuple[float, CandidateEdit]]:
    """The candidates without those lines of a block that stands there as a whole."""
    whole = {
        (candidate.found.text.path, line, candidate.places.pattern.newest)
        for _, candidate in ranked
        if candidate.places.pattern.kind == _BLOCK
        for line in candidate.found.lines
    }
    return [
        (score, candidate)
        for score, candidate in ranked
        if candidate.places.pattern.kind == _BLOCK
        or (
            candidate.found.text.path,
            candidate.found.place.line,
            candidate.places.pattern.newest,
        )
        not in whole
    ]


def _summary(
    pattern: Pattern,
    home: SearchedText | None,
    session: EditSession,
    found: Sequence[FoundPlace],
    contexts: Sequence[int],
    cursor: CursorLine,
    n_dismissed: int,
) -> PatternPlaces:
    last_lines: dict[str, int] = {}
    for making in pattern.makings:
        path = making.change.path
        last_lines[path] = max(last_lines.get(path, -1), making.line)
    n_left = Counter(text.path for text, place in found if not place.is_one)
    n_passed = Counter[str]()
    passed_contexts: list[int] = []
    left_over = session.paths - {cursor.path}
    for (text, place), context in zip(found, contexts, strict=True):
        path = text.path
        if place.is_one or path not in session.paths:  # or in last_lines
            continue
        is_above = place.line < last_lines.get(path, -1)
        n_passed[path] += is_above
        if is_above or path in left_over:
            passed_contexts.append(context)
    edited = sum(n for path, n in n_left.items() if path in session.paths)
    n_defining = 0
    if is_rename := renames_definition(pattern):
        name = pattern.removed.strip()
        n_defining = sum(defined_name(text.body(place.line)) == name for text, place in found)
    return PatternPlaces(
        pattern=pattern,
        home=home,
        n_left=n_left,
        n_left_edited=edited,
        contexts=sorted(c for (_, p), c in zip(found, contexts, strict=True) if not p.is_one),
        passed_contexts=sorted(passed_contexts),
        n_passed=n_passed,
        n_passed_elsewhere=edited - n_left[cursor.path] * (cursor.path in session.paths),
        last_lines=last_lines,
        n_dismissed=n_dismissed,
        renames=is_rename and not n_defining,
        n_defining=n_defining,
    )


def _best(
    places: PatternPlaces,
    session: EditSession,
    found: Sequence[FoundPlace],
    contexts: Sequence[int],
    cursor: CursorLine,
) -> Iterator[tuple[float, CandidateEdit]]:
    """(score, candidate) of the pattern's places that are most likely, by a plain rule. contexts:
    of each place, see `context_of`."""
    scored: list[tuple[int, int, int]] = []
    kind = places.pattern.kind
    times = 2 * min(3, len(places.pattern.numbers)) - 4 * (kind in _BY_SHAPE)
    times -= 5 * (kind in _BY_ANALOGY)
    for i, ((text, place), context) in enumerate(zip(found, contexts, strict=True)):
        path, line = text.path, place.line
        is_here = path == cursor.path
        score = context + 4 * (path in session.paths)
        score += (5 if line > cursor.line else 2) * is_here
        scored.append((-score, abs(line - cursor.line), i))
    n_below = 0
    for _, _, i in sorted(scored)[:N_PLACES]:
        text, place = found[i]
        is_below = text.path == cursor.path and place.line > cursor.line
        yield (
            contexts[i] + 3 * (text.path in session.paths) + 2 * is_below + times,
            CandidateEdit(found[i], places, is_below, n_below),
        )
        n_below += is_below
