"""The ranking's view of the line at a place, and of the lines around it, beside those that were
changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import log1p

from codespec.edits.candidate_edits import CandidateEdit
from codespec.edits.line_tokens import (
    KEYWORDS,
    defined_name,
    indentation,
    is_import,
    signs,
    words,
)
from codespec.edits.pattern import Making
from codespec.edits.searched_text import MAX_FOUND, SearchedText

_N_AROUND = 3
"""Lines above and below whose tokens are compared."""
_BEGUN = re.compile(r"(?:^|\s)(?://|#)|^\*")
_COMMENT = ("#", "//", "*", "/*", '"""')


def line_features(candidate: CandidateEdit, homes: Mapping[str, SearchedText]) -> dict[str, float]:
    """Features of a place's text. homes: the open documents."""
    text, place = candidate.found
    making, needle = place.making, candidate.places.pattern.needle
    home = homes.get(making.change.path)
    line = text.lines[place.line] if place.line < len(text.lines) else ""
    body = line.strip()
    end = making.change.line + len(making.change.new)
    made_on = making.old or (making.change.old or making.change.new)[0].strip()
    if not making.change.old and home is not None:
        made_on = home.body(end)
    n_signs = len(signs(body))
    prefix = indentation((making.change.old or making.change.new)[0])
    added = candidate.places.pattern.added.strip()
    is_definition = bool(defined_name(body))
    is_comment, is_quoted = body.startswith(_COMMENT), _is_quoted(body, needle)
    return {
        "likeness": _likeness(signs(made_on), signs(body)),
        "indentation_equal": indentation(line) == prefix,
        "quoted": is_quoted,
        "quoted_as_made": is_quoted == _is_quoted(making.old, needle),
        "is_definition": is_definition,
        "definition_as_made": is_definition == bool(defined_name(making.old)),
        "n_signs_on_line": log1p(n_signs),
        "ends_as_made": body != making.old and [line.strip() for line in place.new] == [making.new],
        "has_removed": candidate.places.pattern.removed.strip() in body,
        "has_added": bool(added) and added in body,
        "new_stands_already": _stands(place.new, text),
        "is_comment": is_comment,
        "is_import": is_import(body),
        "same_suffix": home is not None and home.suffix == text.suffix,
        **_shared_words(made_on, body, candidate, text),
        **_around(candidate, text, home, making),
        **_uses(candidate, body, home, is_said=is_comment or is_quoted),
    }


def _uses(
    candidate: CandidateEdit, body: str, home: SearchedText | None, is_said: bool
) -> dict[str, float]:
    """Features of the uses of a name whose definition was renamed. is_said: the place is a text or
    a comment."""
    places, (text, place) = candidate.places, candidate.found
    name, renames = places.pattern.removed.strip(), places.renames
    if not renames:
        return dict.fromkeys(_USES, 0.0)
    is_here = home is not None and text.path == home.path
    is_member = is_member_use(body, name)
    definition = next(m for m in places.pattern.makings if defined_name(m.old) == name)
    line = (
        home.lines[definition.line]
        if home is not None and definition.line < len(home.lines)
        else ""
    )
    found = (
        not is_said and is_member == is_member_definition(line),
        is_member,
        bool(re.search(rf"\b{re.escape(name)}\s*[(<!]", body)),
        is_here and not is_said,
        is_here and text.brings_in(name),
        not is_here and text.brings_in(name),
        is_import(body),
        place.n_occurrences > 1 and place.is_one,
    )
    return dict(zip(_USES, found, strict=True))


OF_OTHER_IMPORT = "use_of_other_import"
"""A feature: the document in which a definition was renamed imports the old name."""
_USES = (
    "use_as_defined",
    "use_of_member",
    "use_as_call",
    "use_at_home",
    OF_OTHER_IMPORT,
    "use_of_import",
    "use_in_import",
    "use_of_several",
)


def is_member_definition(line: str) -> bool:
    """True for the line of a definition that is reached through something: it is indented, or says
    of what it is a method."""
    return line[:1].isspace() or re.match(r"func\s*\(", line) is not None


def is_member_use(body: str, name: str) -> bool:
    """True if the name is reached through something at its first occurrence."""
    return re.search(rf"(?:\.|->|::)\s*{re.escape(name)}\b", body) is not None


def _shared_words(
    made_on: str, body: str, candidate: CandidateEdit, text: SearchedText
) -> dict[str, float]:
    """Features of the words around what is replaced that stand on both lines: one that hardly
    stands anywhere else tells more than many that stand everywhere."""
    pattern = candidate.places.pattern
    gone = {*words(pattern.removed), *words(pattern.added)} | KEYWORDS
    ours, theirs = set(words(made_on)) - gone, set(words(body)) - gone
    shared = ours & theirs
    rarest = min((len(text.find(word)) for word in shared), default=MAX_FOUND)
    return {
        "n_words_shared": log1p(len(shared)),
        "share_words": len(shared) / max(1, len(ours | theirs)),
        "no_words": not ours and not theirs,
        "rarest_shared": log1p(rarest),
    }


def _around(
    candidate: CandidateEdit, text: SearchedText, home: SearchedText | None, making: Making
) -> dict[str, float]:
    """Features of the lines above and below."""
    place = candidate.found.place
    if home is None:
        return dict.fromkeys(_AROUND, 0.0)
    first, end = making.change.line, making.change.line + len(making.change.new)
    there, there_end = place.line, place.line + place.n_old
    above, below = home.body(first - 1), home.body(end)
    around = home.found_once(("around", first, end), lambda: _signs_around(home, first, end))
    found = (
        bool(above) and text.body(there - 1) == above,
        bool(below) and text.body(there_end) == below,
        _likeness(signs(above), signs(text.body(there - 1))),
        _likeness(signs(below), signs(text.body(there_end))),
        _likeness(around[0], _signs_of(text, range(there - _N_AROUND, there))),
        _likeness(around[1], _signs_of(text, range(there_end, there_end + _N_AROUND))),
    )
    return dict(zip(_AROUND, found, strict=True))


_AROUND = (
    "above_equal",
    "below_equal",
    "above_likeness",
    "below_likeness",
    "lines_above_likeness",
    "lines_below_likeness",
)


def _signs_around(text: SearchedText, first: int, end: int) -> list[frozenset[str]]:
    """Tokens of the lines above and below the lines first..end - 1."""
    return [
        _signs_of(text, range(first - _N_AROUND, first)),
        _signs_of(text, range(end, end + _N_AROUND)),
    ]


def _signs_of(text: SearchedText, numbers: range) -> frozenset[str]:
    return frozenset[str]().union(*(signs(text.body(number)) for number in numbers))


def _likeness(ours: Iterable[str], theirs: Iterable[str]) -> float:
    """Share of all different tokens that stand in both; 0 where there are none."""
    a, b = frozenset(ours), frozenset(theirs)
    return len(a & b) / max(1, len(a | b))


def _is_quoted(line: str, needle: str) -> bool:
    """True if the first occurrence is in a string or comment of the line, as its signs tell."""
    before = line[: max(0, line.find(needle))]
    n_quotes = before.count('"'), before.count("'")
    return any(n % 2 for n in n_quotes) or _BEGUN.search(before) is not None


def _stands(new: Sequence[str], text: SearchedText) -> bool:
    """True if one of the new lines stands in the text already."""
    bodies = [line.strip() for line in new]
    return any(
        text.body(number) == body for body in bodies if len(body) > 3 for number in text.find(body)
    )
