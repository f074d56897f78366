"""The seam between an engine and drafters: rows of token ids in, a chain for each row out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from codespec.types import Tokens


class RequestPlace(NamedTuple):
    """The place a request asks about. workspace: id of a workspace, "" for none; path: of the file
    at hand, as the workspace names it, "" where it is not told; drafts: False to draft nothing."""

    workspace: str = ""
    path: str = ""
    drafts: bool = True


class RowState(NamedTuple):
    """A row of an engine's step, in the engine's own memory.

    key:      the engine's name of the request.
    ids:      (>= n,) ids of the row; the engine may write to them after the step.
    n:        tokens of the row.
    n_prompt: tokens of these that the client sent.
    n_max:    most tokens that may be drafted.
    """

    key: Hashable
    ids: npt.NDArray[np.int32]
    n: int
    n_prompt: int
    n_max: int
    place: RequestPlace = RequestPlace()


class RowStep(msgspec.Struct, frozen=True, eq=False):
    """A row as a drafter gets it. start: position of `tokens`, a copy, in the row; 0: they are the
    whole row, and the request begins, or begins again. The rest is as in `RowState`."""

    key: Hashable
    start: int
    tokens: Tokens
    n_prompt: int
    n_max: int
    place: RequestPlace


class RowDrafter(Protocol):
    """Proposes a chain for each row. It may be wrong in any way: `RowGuard` calls it."""

    def draft(
        self, steps: Sequence[RowStep], ended: Sequence[Hashable], ms: float
    ) -> Sequence[Sequence[int]]:
        """A chain for each row, of at most its `n_max` ids, empty for none.

        ended: requests that are over. ms: milliseconds after which the engine would rather go on.
        """
        ...


class RowFeed:
    """Memory of what a drafter was sent of each row, so that it is sent the rest alone."""

    def __init__(self) -> None:
        self._n_sent: dict[Hashable, int] = {}
        self._ended: list[Hashable] = []

    def steps(
        self, rows: Iterable[RowState], live: Iterable[Hashable]
    ) -> tuple[list[RowStep], list[Hashable]]:
        """(rows for the drafter, requests that are over). live: requests of the engine that may
        have rows again."""
        steps: list[RowStep] = []
        for row in rows:
            start = self._n_sent.get(row.key, 0)
            if start >= row.n:  # the engine took tokens back
                start = 0
            tokens = np.array(row.ids[start : row.n], np.int32)
            self._n_sent[row.key] = row.n
            steps.append(RowStep(row.key, start, tokens, row.n_prompt, row.n_max, row.place))
        over = self._n_sent.keys() - {*live, *(step.key for step in steps)}
        for key in over:
            del self._n_sent[key]
        self._ended += over
        ended, self._ended = self._ended, []
        return steps, ended

    def lost(self, ended: Iterable[Hashable]) -> None:
        """The drafter may not have read what it was sent last: rows are sent whole again, and what
        ended is told again."""
        self._n_sent = dict.fromkeys(self._n_sent, 0)
        self._ended += ended
