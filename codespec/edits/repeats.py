"""Next edits without a model: what was changed is changed elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from codespec.documents.edit_history import LineChange
from codespec.edits import ranking
from codespec.edits.base import CursorLine, LineEdit, Texts
from codespec.edits.candidate_edits import CandidateEdit, CandidateSearch
from codespec.edits.dismissals import AnyDismissed, Dismissals
from codespec.edits.edit_session import ChangeReader, EditSession
from codespec.edits.features import PatternFeatures, session_features
from codespec.edits.line_features import OF_OTHER_IMPORT, is_member_use
from codespec.edits.local_names import is_own_variable
from codespec.edits.ranking import Ranking


class Repeats:
    """Proposes to repeat changes. One thread only."""

    def __init__(self, ranked_by: Ranking | None = None) -> None:
        """ranked_by: None for the ranking that comes with codespec."""
        self._ranking = ranking.shipped() if ranked_by is None else ranked_by
        self._lessons = ChangeReader()
        self._search = CandidateSearch()

    def propose(
        self,
        changes: Sequence[LineChange],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Collection[AnyDismissed] = (),
    ) -> list[LineEdit]:
        """See `Proposer`."""
        found = [
            (candidate, row)
            for candidate, row in self.candidates(changes, texts, cursor, dismissed)
            if not (row[OF_OTHER_IMPORT] and _is_imported(candidate))
            and not _may_mean_another(candidate)
        ]
        if not found:
            return []
        chances = self._ranking.chances([row for _, row in found])
        edits: list[LineEdit] = []
        for i in (-chances).argsort(kind="stable"):
            edit = edit_of(found[i][0], float(chances[i]))
            if not any(_overlap(edit, other) for other in edits):
                edits.append(edit)
        return edits

    def candidates(
        self,
        changes: Sequence[LineChange],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Collection[AnyDismissed] = (),
    ) -> list[tuple[CandidateEdit, dict[str, float]]]:
        """Edits that may be proposed, with what the ranking sees of each."""
        if not changes:
            return []
        open_texts = self._search.open_texts(texts)
        session = EditSession(changes, self._lessons, open_texts)
        unwanted = Dismissals(dismissed)
        found = self._search.candidates(session, open_texts, texts, cursor, unwanted)
        shared = session_features(session, len(unwanted))
        features = PatternFeatures(session, cursor, open_texts)
        return [
            (each, {**shared, **features.of(each.places.pattern), **features.at(each)})
            for each in found
        ]


def edit_of(candidate: CandidateEdit, chance: float) -> LineEdit:
    """A candidate as an edit to propose."""
    found = candidate.found
    return LineEdit(
        path=found.text.path,
        line=found.place.line,
        old=found.old,
        new=found.place.new,
        chance=chance,
        kind=candidate.places.pattern.kind,
    )


def _may_mean_another(candidate: CandidateEdit) -> bool:
    """True where a variable of one function got another name, and the place is in another function;
    and where a definition alone did, others of its name are left, and the place does not say which
    of them it means: in other files, after a dot, or beside another one."""
    places, (text, place) = candidate.places, candidate.found
    is_own = is_own_variable(places.pattern, places.home, text, place.line)
    if is_own is not None:
        return not is_own
    if not places.n_defining or len(places.pattern.numbers) > 1:
        return False
    name = places.pattern.removed.strip()
    is_at_home = text.path == place.making.change.path
    return not is_at_home or is_member_use(text.body(place.line), name) or text.defines(name)


def _is_imported(candidate: CandidateEdit) -> bool:
    """True for the use of a name that its document imports, where a definition was renamed that had
    the same name."""
    return candidate.found.text.brings_in(candidate.places.pattern.removed.strip(), at_top=True)


def _overlap(a: LineEdit, b: LineEdit) -> bool:
    """True if two edits meet; insertions at one place do."""
    if a.path != b.path:
        return False
    a_end, b_end = a.line + len(a.old), b.line + len(b.old)
    if not a.old or not b.old:
        return a.line <= b_end and b.line <= a_end
    return a.line < b_end and b.line < a_end
