"""Examples that the ranking of next edits is fitted to: candidates of many asks, with what the
ranking sees of each and the verdict. Numbers only."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.edits.base import LineEdit
from codespec.edits.candidate_edits import CandidateEdit
from codespec.edits.ranking import Ranking, RankingModel
from codespec.edits.repeats import Repeats

from ..edit_session import CommitSession, Order, in_order
from ..edit_truth import Substitution, matched, substitutions
from ..line_hunks import HunkCommit, HunkHistory
from ..parent_texts import ParentFiles

ORDERS: tuple[Order, ...] = ("diff", "shuffled")
MAX_ASKS = 30
"""Asks of a commit and order, its last one always among them: large commits are alike inside."""
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
class _Gathered:
    rows: list[list[float]]
    right: list[bool]
    ask: list[int]
    edit: list[int]
    pattern: list[int]
    asks: list[tuple[int, int, bool, bool]]
    """(commit, order, is_active, is_repeatable)"""
    names: list[str]


def gather(root: Path, n_commits: int, paths: Sequence[str] = ()) -> Examples:
    """The examples of a repository's last commits, in both orders."""
    commits = HunkHistory(root, paths).line_commits(n_commits)
    parts = [commits[i : i + _N_TOGETHER] for i in range(0, len(commits), _N_TOGETHER)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(_gathered, repeat(root), repeat(paths), parts))
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


def _gathered(root: Path, paths: Sequence[str], commits: Sequence[HunkCommit]) -> _Gathered:
    history = HunkHistory(root, paths)
    found = _Gathered([], [], [], [], [], [], [])
    with history.blobs() as blobs:
        files = ParentFiles(blobs)
        proposer = Repeats(UNRANKED)
        for commit in commits:
            files.move_to(history.parent_tree(commit))
            for order in ORDERS:
                _ask_on(proposer, commit, order, files, found)
    return found


def _ask_on(
    proposer: Repeats, commit: HunkCommit, order: Order, files: ParentFiles, found: _Gathered
) -> None:
    hunks = [hunk for hunk in commit.hunks if hunk.path in files]
    session = CommitSession(hunks, files)
    number = found.asks[-1][0] + 1 if found.asks else 0
    made: set[Substitution] = set()
    subs = [set(substitutions(hunk.old, hunk.new)) for hunk in hunks]
    numbers = in_order(len(hunks), order, commit.sha)
    chosen = random.Random(commit.sha).sample(range(len(hunks)), min(len(hunks), MAX_ASKS))
    for i, n in enumerate(numbers):
        session.make(n)
        made |= subs[n]
        if i not in chosen[: MAX_ASKS - 1] and i != len(hunks) - 1:
            continue
        outstanding = session.outstanding()
        for candidate, features in proposer.candidates(
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
        is_repeatable = any(subs[n] & made for n in numbers[i + 1 :])
        found.asks.append((number, ORDERS.index(order), bool(outstanding), is_repeatable))


def _edit(candidate: CandidateEdit) -> LineEdit:
    path, line, _, new = candidate.found.edit
    return LineEdit(path, line, candidate.found.old, new, 0.0, candidate.places.pattern.kind)


def _number(*of: object) -> int:
    return zlib.crc32(repr(of).encode("utf-8", "surrogatepass"))


def _examples(found: _Gathered, repository: str) -> Examples:
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
