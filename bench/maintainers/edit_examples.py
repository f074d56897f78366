"""Examples that the ranking of next edits is fitted to: candidates of many asks, with what the
ranking sees of each and the verdict. Numbers only."""

from __future__ import annotations

import random
import zlib
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, repeat
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.edits.base import LineEdit
from codespec.edits.candidate_edits import CandidateEdit
from codespec.edits.line_tokens import defined_name
from codespec.edits.ranking import Ranking, RankingModel
from codespec.edits.repeats import Repeats
from codespec.edits.substitutions import substitution

from ..edit_session import CommitSession, Order, in_order
from ..edit_truth import PlacedLines, Substitution, aligned, matched, substitutions
from ..line_hunks import HunkCommit, HunkHistory, LineHunk
from ..parent_texts import ParentFiles

ORDERS = ("diff", "shuffled", "definition")
"""The order of the diff, a shuffled one, and one that begins with a definition's new name alone, as
people begin to rename; the rest of its hunk and the hunks below come next."""
REAL_ORDERS: tuple[Order, ...] = ("diff", "shuffled")
MAX_ASKS = 30
"""Asks of a commit and order, its last one always among them: large commits are alike inside."""
MAX_DEFINITIONS = 12
"""Renamed definitions of a commit that sessions begin with."""
N_AFTER_DEFINITION = 3
"""Asks of such a session."""
_N_TOGETHER = 8
_NONE = np.zeros((0, 1))
UNRANKED = Ranking((), RankingModel(0.0, np.zeros(0), _NONE.astype(np.int64), _NONE, _NONE))
"""All candidates are as likely: what is gathered depends on no earlier ranking."""


@dataclass(frozen=True, slots=True)
class Examples:
    """names: of the features.

    Of each candidate: features (n, n_features); right; ask, its number, ascending; edit and
    pattern, what tells it from others in its commit. Of each ask: commit, its number; repository
    and order, numbers of the names in `repositories` and `ORDERS`; is_active, something is
    outstanding; is_repeatable, it repeats something.
    """

    names: list[str]
    repositories: list[str]
    features: npt.NDArray[np.float32]
    right: npt.NDArray[np.bool_]
    ask: npt.NDArray[np.int64]
    edit: npt.NDArray[np.int64]
    pattern: npt.NDArray[np.int64]
    commit: npt.NDArray[np.int64]
    repository: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    is_active: npt.NDArray[np.bool_]
    is_repeatable: npt.NDArray[np.bool_]

    def of_asks(self, chosen: npt.NDArray[np.bool_]) -> Examples:
        """Those of some asks. chosen: (n_asks,)."""
        found = self.of_rows(chosen[self.ask])
        numbers = np.cumsum(chosen) - 1
        asks = {name: getattr(self, name)[chosen] for name in _OF_ASKS}
        return replace(found, ask=numbers[found.ask], **asks)

    def of_rows(self, kept: npt.NDArray[np.bool_]) -> Examples:
        """Those of some candidates. kept: (n,)."""
        rows = {name: getattr(self, name)[kept] for name in _OF_CANDIDATES}
        return replace(self, **rows)


_OF_CANDIDATES = ("features", "right", "ask", "edit", "pattern")
_OF_ASKS = ("commit", "repository", "order", "is_active", "is_repeatable")


@dataclass(slots=True)
class Gathered:
    """Examples as they are gathered, see `Examples`."""

    rows: list[list[float]]
    right: list[bool]
    ask: list[int]
    edit: list[int]
    pattern: list[int]
    asks: list[tuple[int, int, bool, bool]]
    """(commit, order, is_active, is_repeatable)"""
    names: list[str]


def gather(root: Path, n_commits: int, n_older: int = 0, paths: Sequence[str] = ()) -> Examples:
    """The examples of a repository's last commits, in all orders. n_older: commits before them that
    are asked on from their renamed definitions alone."""
    commits = HunkHistory(root, paths).line_commits(n_commits + n_older)
    older = [each for each in commits[:-n_commits] if any(renamed_definitions(each.hunks))]
    tasks = [
        (part[i : i + _N_TOGETHER], orders)
        for part, orders in ((older, ORDERS[2:]), (commits[-n_commits:], ORDERS))
        for i in range(0, len(part), _N_TOGETHER)
    ]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(gathered, repeat(root), repeat(paths), *zip(*tasks, strict=True)))
    return joined([_examples(part, root.name) for part in found if part.rows])


def joined(parts: Sequence[Examples]) -> Examples:
    """All of them in one. All have the same features."""
    names = parts[0].names
    assert all(part.names == names for part in parts)
    repositories = list(dict.fromkeys(name for part in parts for name in part.repositories))
    n_asks = np.cumsum([0, *(len(part.commit) for part in parts)])
    n_commits = np.cumsum([0, *(1 + part.commit.max() for part in parts)])
    numbers = [np.array([repositories.index(n) for n in part.repositories]) for part in parts]

    def all_of(name: str) -> npt.NDArray[np.int64]:
        return np.concatenate([getattr(part, name) for part in parts])

    return Examples(
        names,
        repositories,
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.right for part in parts]),
        np.concatenate([part.ask + n for part, n in zip(parts, n_asks, strict=False)]),
        all_of("edit"),
        all_of("pattern"),
        np.concatenate([part.commit + n for part, n in zip(parts, n_commits, strict=False)]),
        np.concatenate([of[part.repository] for part, of in zip(parts, numbers, strict=True)]),
        all_of("order"),
        np.concatenate([part.is_active for part in parts]),
        np.concatenate([part.is_repeatable for part in parts]),
    )


def save(path: Path, examples: Examples) -> None:
    kept = {name: getattr(examples, name) for name in Examples.__slots__}
    np.savez_compressed(path, allow_pickle=False, **kept)


def load(path: Path) -> Examples:
    with np.load(path, allow_pickle=False) as kept:
        of = {name: kept[name] for name in Examples.__slots__}
    return Examples(
        **{**of, "names": of["names"].tolist(), "repositories": of["repositories"].tolist()}
    )


def renamed_definitions(hunks: Sequence[LineHunk]) -> Iterator[tuple[int, PlacedLines]]:
    """(number of the hunk, line) where a definition gets another name, and nothing else changes on
    that line."""
    for number, hunk in enumerate(hunks):
        for i, j in aligned(hunk.old, hunk.new):
            old, new = hunk.old[i].strip(), hunk.new[j].strip()
            names = defined_name(old), defined_name(new)
            made = substitution(old, new) if all(names) and names[0] != names[1] else None
            if made is not None and (made.removed.strip(), made.added.strip()) == names:
                yield number, PlacedLines(hunk.path, hunk.line + i, (hunk.old[i],), (hunk.new[j],))


def gathered(
    root: Path, paths: Sequence[str], commits: Sequence[HunkCommit], orders: Sequence[str]
) -> Gathered:
    """Candidates of some commits. orders: `ORDERS`, or the last of them alone."""
    history = HunkHistory(root, paths)
    found = Gathered([], [], [], [], [], [], [])
    with history.blobs() as blobs:
        files = ParentFiles(blobs)
        proposer = Repeats(UNRANKED)
        for commit in commits:
            files.move_to(history.parent_tree(commit))
            hunks = [hunk for hunk in commit.hunks if hunk.path in files]
            chosen = random.Random(commit.sha).sample(range(len(hunks)), min(len(hunks), MAX_ASKS))
            asked = {*chosen[: MAX_ASKS - 1], len(hunks) - 1}
            for order in REAL_ORDERS if REAL_ORDERS[0] in orders else ():
                numbers = in_order(len(hunks), order, commit.sha)
                asking = _Asking(proposer, hunks, files, found)
                asking.make(numbers, asked, order)
            for n, definition in islice(renamed_definitions(hunks), MAX_DEFINITIONS):
                numbers = [*range(n, len(hunks)), *range(n)]
                asking = _Asking(proposer, hunks, files, found)
                asking.accept(definition, numbers)
                asking.make(numbers[: N_AFTER_DEFINITION - 1], range(len(hunks)), "definition")
    return found


class _Asking:
    """One session, with the candidates after its hunks and their verdicts, which are kept in
    `found`."""

    def __init__(
        self,
        proposer: Repeats,
        hunks: Sequence[LineHunk],
        files: ParentFiles,
        found: Gathered,
    ) -> None:
        self._proposer, self._found = proposer, found
        self._session = CommitSession(hunks, files)
        self._subs = [set(substitutions(hunk.old, hunk.new)) for hunk in hunks]
        self._made: set[Substitution] = set()
        self._number = found.asks[-1][0] + 1 if found.asks else 0

    def accept(self, definition: PlacedLines, numbers: Sequence[int]) -> None:
        """Make one line of a hunk, and ask. numbers: of all hunks, in their order from then on."""
        self._session.accept(definition)
        self._made.update(substitutions(definition.old, definition.new))
        self._ask("definition", numbers)

    def make(self, numbers: Sequence[int], asked: Collection[int], order: str) -> None:
        """Make hunks, and ask after some of them. asked: places in `numbers`."""
        for i, n in enumerate(numbers):
            self._session.make(n)
            self._made |= self._subs[n]
            if i in asked:
                self._ask(order, numbers[i + 1 :])

    def _ask(self, order: str, left: Sequence[int]) -> None:
        """left: numbers of the hunks that are made later."""
        session, found = self._session, self._found
        outstanding = session.outstanding()
        for candidate, features in self._proposer.candidates(
            session.history.changes(), session.texts, session.cursor
        ):
            found.names = found.names or list(features)
            found.rows.append([float(features[name]) for name in found.names])
            edit = _edit(candidate)
            found.right.append(matched(session.placed(edit), outstanding) is not None)
            found.ask.append(len(found.asks))
            found.edit.append(_number(edit.path, edit.old, edit.new))
            pattern = candidate.places.pattern
            found.pattern.append(_number(pattern.kind, pattern.removed, pattern.added))
        is_repeatable = any(self._subs[n] & self._made for n in left)
        asked = self._number, ORDERS.index(order), bool(outstanding), is_repeatable
        found.asks.append(asked)


def _edit(candidate: CandidateEdit) -> LineEdit:
    path, line, _, new = candidate.found.edit
    return LineEdit(path, line, candidate.found.old, new, 0.0, candidate.places.pattern.kind)


def _number(*of: object) -> int:
    return zlib.crc32(repr(of).encode("utf-8", "surrogatepass"))


def _examples(found: Gathered, repository: str) -> Examples:
    commit, order, active, repeatable = (np.array(of) for of in zip(*found.asks, strict=True))
    return Examples(
        found.names,
        [repository],
        np.array(found.rows, np.float32),
        np.array(found.right),
        np.array(found.ask),
        np.array(found.edit),
        np.array(found.pattern),
        commit,
        np.zeros(len(commit), np.int64),
        order,
        active,
        repeatable,
    )
