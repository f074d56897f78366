"""The ranking's view of a candidate: numbers by name, without any text.

Counts are logarithms of one more than the count. Names of kinds and classes of tokens are flags.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import log1p
from os.path import dirname

from codespec.edits.base import CursorLine, LineChange
from codespec.edits.candidate_edits import CandidateEdit
from codespec.edits.edit_session import EditSession
from codespec.edits.line_features import line_features
from codespec.edits.line_tokens import defined_name, has_word, is_import, signs
from codespec.edits.pattern import Making, Pattern
from codespec.edits.searched_text import SearchedText

KINDS = (
    "replace",
    "insert",
    "delete",
    "block",
    "add_lines",
    "template",
    "analogy",
    "block_analogy",
    "import",
)
TOKEN_CLASSES = (
    "name",
    "attribute",
    "call",
    "import",
    "literal",
    "assigned",
    "signs",
    "several",
    "lines",
)
"""Classes of tokens that a substitution replaces."""
_FAR = 9999
"""Lines to a place in another document."""
_N_NEWEST = 40
"""Latest changes whose new text is searched for the old one."""


def token_class(making: Making) -> str:
    """The class of what a making replaces, one of `TOKEN_CLASSES`."""
    made = making.substitution
    if made is None:
        return "lines"
    if is_import(making.old):
        return "import"
    if not has_word(made.removed + made.added):
        return "signs"
    removed = made.removed.strip() or made.added.strip()
    if re.fullmatch(r"\w+", removed):
        at = making.old.find(made.found)
        before, after = making.old[:at], making.old[at + len(made.found) :]
        if removed[0].isdigit():
            return "literal"
        if before.endswith("."):
            return "attribute"
        if after.startswith("("):
            return "call"
        return "assigned" if re.match(r"\s*=(?!=)", after) else "name"
    if removed[0] in "\"'`" or removed[0].isdigit():
        return "literal"
    if not made.removed and re.search(r"\w\s*[=:]\s*\S", removed):
        return "assigned"
    return "several"


def session_features(session: EditSession, n_dismissed: int) -> dict[str, float]:
    """Features that all candidates of one question share. n_dismissed: edits that the user did
    not want."""
    changes = session.changes
    n_changes = len(changes)
    return {
        "n_changes": log1p(n_changes),
        "share_repeats": sum(session.repeats) / n_changes,
        "share_insertions": sum(not change.old for change in changes) / n_changes,
        "share_deletions": sum(not change.new for change in changes) / n_changes,
        "n_documents": log1p(len(session.paths)),
        "last_repeats": session.repeats[-1],
        "recent_repeats": sum(session.repeats[-4:]) / len(session.repeats[-4:]),
        "n_dismissed": log1p(n_dismissed),
    }


class PatternFeatures:
    """Features of the patterns of one session."""

    def __init__(
        self, session: EditSession, cursor: CursorLine, homes: dict[str, SearchedText]
    ) -> None:
        self._session = session
        self._cursor = cursor
        self._homes = homes
        self._order = {change.number: i for i, change in enumerate(session.changes)}
        self._newest = ["\n".join(change.new) for change in session.changes[-_N_NEWEST:]]
        self._ways = _ways(session.changes)
        self._known: dict[int, dict[str, float]] = {}
        self._n_by_needle: dict[str, int] = {}
        for pattern in session.patterns.values():
            if pattern.kind in ("replace", "insert", "delete"):
                n_same = self._n_by_needle.get(pattern.needle, 0)
                self._n_by_needle[pattern.needle] = n_same + 1

    def of(self, pattern: Pattern) -> dict[str, float]:
        """Features of a pattern, whatever the place."""
        known = self._known.get(id(pattern))
        if known is None:
            known = self._known[id(pattern)] = self._of(pattern)
        return known

    def _of(self, pattern: Pattern) -> dict[str, float]:
        session, makings = self._session, pattern.makings
        n_made, n_changes = len(makings), len(pattern.numbers)
        n_since = len(session.changes) - 1 - self._order[pattern.newest]
        last = makings[-1]
        kind_of_tokens = token_class(last)
        removed, added = pattern.removed, pattern.added
        sought = pattern.needle or removed
        n_again = sum(text.count(sought) for text in self._newest) if sought else 0
        if sought and sought in added:
            n_again -= n_made
        return {
            **{f"kind_{kind}": pattern.kind == kind for kind in KINDS},
            **{f"tokens_{name}": kind_of_tokens == name for name in TOKEN_CLASSES},
            "n_made": log1p(n_made),
            "made_once": n_changes == 1,
            "made_twice": n_changes == 2,
            "made_often": n_changes > 2,
            "n_documents_made": log1p(len({making.change.path for making in makings})),
            "n_since": log1p(n_since),
            "is_newest": n_since == 0,
            "share_of_changes": n_changes / len(session.changes),
            "n_signs_removed": log1p(len(signs(removed))),
            "n_signs_added": log1p(len(signs(added))),
            "n_chars_removed": log1p(len(removed)),
            "n_chars_added": log1p(len(added)),
            "removes_nothing": not removed,
            "adds_nothing": not added,
            "n_rules_for_same": log1p(self._n_by_needle.get(pattern.needle, 1)),
            "n_written_again": log1p(max(0, n_again)),
            "n_old_lines": log1p(len(last.change.old)),
            "n_new_lines": log1p(len(last.change.new)),
            "rate": n_changes / (len(session.changes) - self._order[makings[0].change.number]),
            **self._definitions(pattern),
            "n_context_made": log1p(
                max(len(m.substitution.left) if m.substitution else 0 for m in makings[-3:])
            ),
        }

    def _definitions(self, pattern: Pattern) -> dict[str, float]:
        """Features of names: a name that is defined no more is renamed everywhere."""
        old, new = pattern.removed.strip(), pattern.added.strip()
        return {
            "made_on_definition": bool(old)
            and any(defined_name(making.old) == old for making in pattern.makings),
            "old_is_defined": self._is_defined(old),
            "new_is_defined": self._is_defined(new),
        }

    def _is_defined(self, name: str) -> bool:
        """True if an open document defines a name."""
        if not re.fullmatch(r"\w{2,}", name):
            return False
        return any(text.defines(name) for text in self._homes.values())

    def _direction(self, candidate: CandidateEdit) -> dict[str, float]:
        """Features of where a place is from the cursor, for sessions that go downwards and for
        those that go to and fro."""
        text, place = candidate.found
        cursor = self._cursor
        share_down, share_returns = self._ways
        here = text.path == cursor.path
        is_above = here and place.line < cursor.line
        is_left = not here and text.path in self._session.paths
        n_passed = log1p(_n_at_least(candidate.places.passed_contexts, candidate.context))
        return {
            "share_down": share_down,
            "share_returns": share_returns,
            "is_above": is_above,
            "above_of_down": is_above * share_down,
            "below_of_down": candidate.is_below * share_down,
            "is_left": is_left,
            "left_of_no_return": is_left * (1 - share_returns),
            "passed_of_down": n_passed * share_down * (1 - share_returns),
        }

    def at(self, candidate: CandidateEdit) -> dict[str, float]:
        """Features of a place."""
        text, place = candidate.found
        places, cursor = candidate.places, self._cursor
        pattern = places.pattern
        path, here = text.path, text.path == cursor.path
        n_made, n_changes = len(pattern.makings), len(pattern.numbers)
        n_made_here = sum(making.change.path == path for making in pattern.makings)
        n_left, n_edited = places.n_left[path], places.n_left_edited
        context = candidate.context
        n_passed_alike = _n_at_least(places.passed_contexts, context)
        n_as_good = _n_at_least(places.contexts, context)
        n_sides = place.n_left + place.n_right
        made = place.making.substitution
        n_around = len(made.left) + len(made.right) if made else 6
        distance = abs(place.line - cursor.line) if here else _FAR
        is_passed = place.line < places.last_lines.get(path, -1)
        both = place.n_left >= 1 and place.n_right >= 1
        return {
            "n_left_here": log1p(n_left),
            "n_left_edited": log1p(n_edited),
            "n_left": log1p(places.n_left.total()),
            "share_made": n_made / (n_made + n_edited),
            "share_made_here": n_made_here / (n_made_here + max(1, n_left)),
            "n_passed_here": log1p(places.n_passed[path]),
            "is_passed": is_passed,
            "n_passed_elsewhere": log1p(places.n_passed_elsewhere),
            "n_passed_alike": log1p(n_passed_alike),
            "none_passed_alike": n_passed_alike == 0,
            "n_as_good": log1p(n_as_good),
            "share_as_good": 1 / max(1, n_as_good),
            "share_made_as_good": n_changes / (n_changes + n_as_good),
            "left": place.n_left,
            "right": place.n_right,
            "sides": n_sides,
            "whole": place.whole,
            "both_sides": both,
            "both_sides_two": place.n_left >= 2 and place.n_right >= 2,
            "share_of_context": n_sides / (1 + n_around),
            "sides_over_passed": min(8, n_sides) / (1 + n_passed_alike),
            "times_and_sides": min(4, n_changes) * min(6, n_sides),
            "is_cursor_document": here,
            "is_made_document": n_made_here > 0,
            "is_edited": path in self._session.paths,
            "is_open": text.is_open,
            "is_cursor_folder": dirname(path) == dirname(cursor.path),
            "is_test": _is_test(path),
            "is_test_as_made": _is_test(path) == _is_test(place.making.change.path),
            "is_below": candidate.is_below,
            "distance": log1p(distance),
            "rank_below": log1p(candidate.rank_below),
            "n_occurrences": place.n_occurrences,
            "is_one": place.is_one,
            "n_agreeing": log1p(candidate.n_agreeing),
            "n_rivals": log1p(candidate.n_rivals),
            "n_companions": log1p(candidate.n_companions),
            "n_pattern_dismissed": log1p(places.n_dismissed),
            "renames": places.renames,
            "n_defining": log1p(places.n_defining),
            **self._direction(candidate),
            **line_features(candidate, self._homes),
        }


def _ways(changes: Sequence[LineChange]) -> tuple[float, float]:
    """(share of steps within a document that go downwards, share of steps to another document that
    return to one with changes), both drawn to a half while there are few."""
    n_down = n_within = n_returns = n_across = 0
    seen: set[str] = set()
    for before, after in pairwise(changes):
        seen.add(before.path)
        if before.path == after.path:
            n_within += 1
            n_down += after.line > before.line
        else:
            n_across += 1
            n_returns += after.path in seen
    return (n_down + 1) / (n_within + 2), (n_returns + 1) / (n_across + 2)


def _n_at_least(ascending: Sequence[int], least: int) -> int:
    return len(ascending) - bisect_left(ascending, least)


def _is_test(path: str) -> bool:
    return "test" in path.lower()
