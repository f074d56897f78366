"""Prompt lookup drafting: drafts copied from text that exists, without a draft model.

Sources are this document before and after the cursor, the workspace's other files, other open
documents and recent edits. Each finds the longest suffix of the context in its suffix automaton or
segment and proposes what followed there; `Planner` merges the proposals into one draft.

Source: prompt lookup decoding (Saxena 2023); suffix automata of text (Blumer et al. 1985), as
SuffixDecoding (Oliaro et al. 2024) drafts from suffix trees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.documents.live import LiveDocument
from codespec.documents.sources import PREFIX, REPOSITORY, SUFFIX, Neighbour
from codespec.drafters.base import Drafter, Traits
from codespec.native import Boundary, Drafting, Planner, Segment, Sources, SuffixAutomaton
from codespec.types import (
    NO_DRAFT,
    NO_TOKENS,
    Context,
    Draft,
    PassState,
    Source,
    Tokens,
    Verdict,
)
from codespec.verify.tree import path_probs


class Repository(Protocol):
    """A workspace index, as far as the drafter needs it."""

    def segments(
        self, skip: Collection[str] = ()
    ) -> Sequence[tuple[Segment, npt.NDArray[np.bool_] | None]]:
        """The index's segments, each with a (n_docs,) mask of documents not to draft from; None:
        all may be used. skip: paths of files whose documents are masked, too."""
        ...


# Wider passes count as nearly free where this many more tokens cost less than half a pass.
_FEW, _CHEAP = 4, 1.5
# Branches of a draft tree that a second lookup extends.
_MAX_PATHS = 4

Ends: TypeAlias = npt.NDArray[np.uint8]
_NO_ENDS: Ends = np.zeros(0, np.uint8)


class LookupDrafter(Drafter):
    """`Drafter` over suffix automata of the document and a frozen index of the workspace.

    document:   path, or other name of a document -> its live document, up to date for the request.
    planner:    workspace folder -> its planner.
    repository: workspace folder -> its index, None where there is none (yet).
    neighbours: request -> automata of other texts to draft from; of one source's automata the one
        with the longest match proposes.
    overridden: request -> paths of files whose indexed text is masked, as open buffers are newer.
    boundary:   request -> its cursor, which may stand inside a token; None: it never does.
    curve, max_leaves: cost of the target's passes, most branches of a draft tree.
    """

    name = "lookup"
    traits = Traits(cuts=True, is_native=True)

    def __init__(
        self,
        document: Callable[[str], LiveDocument],
        planner: Callable[[str], Planner],
        repository: Callable[[str], Repository | None] = lambda workspace: None,
        neighbours: Callable[[Context], Sequence[Neighbour]] = lambda context: (),
        overridden: Callable[[Context], Sequence[str]] = lambda context: (context.path,),
        boundary: Callable[[Context], Boundary] | None = None,
        curve: CostCurve = FLAT,
        max_leaves: int = 1,
    ) -> None:
        self._open_document = document
        self._open_planner = planner
        self._open_repository = repository
        self._find_neighbours = neighbours
        self._find_overridden = overridden
        self._make_boundary = boundary
        self._curve = curve
        self._max_leaves = max_leaves
        self._planner: Planner | None = None
        self._sources = Sources(NO_TOKENS)
        self._boundary: Boundary | None = None
        self._unread: list[int] = []  # emitted tokens that the planner has not learned from
        self._is_planned = False
        self._drafting: Drafting | None = None  # made for these costs
        self._costs: npt.NDArray[np.float64] | None = None

    def begin(self, context: Context) -> None:
        self._read()
        document = self._open_document(context.document or context.path)
        self._boundary = boundary = self._make_boundary(context) if self._make_boundary else None
        base = context.left if boundary is None else context.left[: boundary.n_base]
        self._sources = sources = Sources(base)
        sources.add_before(PREFIX, document.before)
        neighbours: dict[Source, list[SuffixAutomaton]] = {SUFFIX: [document.after]}
        for source, automaton in self._find_neighbours(context):
            neighbours.setdefault(source, []).append(automaton)
        for source, automata in neighbours.items():
            sources.add_automata(source, automata, source == SUFFIX)
        repository = self._open_repository(context.workspace) if context.workspace else None
        if repository is not None:
            skip = self._find_overridden(context)
            sources.add_segments(REPOSITORY, repository.segments(skip))
        self._planner = self._open_planner(context.workspace)
        self._planner.begin(context.left, context.right)
        self._unread = []
        self._is_planned = False
        self._drafting = None

    def native(self, state: PassState, n_max: int) -> Drafting | None:
        """Inputs for native code to draft chains as `propose` would; None where trees may pay."""
        if self._planner is None or self._most_leaves(state) > 1:
            return None
        self._read()
        costs = self._curve.either_first(state, n_max + 1)
        if self._drafting is None or costs is not self._costs:
            self._costs = costs
            self._drafting = Drafting(self._sources, self._boundary, self._planner, costs)
        self._drafting.is_back = state.after_single
        self._drafting.width = state.width if state.width <= 1 + n_max else 1
        return self._drafting

    def propose(self, state: PassState, n_max: int) -> Draft:
        self._sources.clear()
        draft = NO_DRAFT
        if self._look_up(state.emitted, NO_TOKENS, n_max):
            if self._trees_pay(state, n_max) and not self._is_within(state.emitted):
                self._sources.ask_last(n_max)
            draft = self._plan(state, n_max)
        return draft

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        self._unread += verdict.emitted
        if self._is_planned:
            self._read()

    def ended(self, n_emitted: int) -> None:
        self._read()
        if self._planner is not None:
            self._planner.ended(n_emitted)

    def _read(self) -> None:
        """Let the planner learn from the tokens emitted since its last plan, while nobody waits."""
        if self._planner is not None and self._unread:
            self._planner.learn(self._unread, len(self._unread))
        self._unread = []
        self._is_planned = False

    def _plan(self, state: PassState, n_max: int) -> Draft:
        draft, ends = self._planned(state, n_max)
        if draft.is_chain:
            return draft
        n_found = 0
        for path in _open_paths(draft, ends, n_max):
            said = np.concatenate([state.emitted, path])
            n_found += self._look_up(said, path, n_max - len(path))
        return self._planned(state, n_max)[0] if n_found else draft

    def _planned(self, state: PassState, n_max: int) -> tuple[Draft, Ends]:
        assert self._planner is not None
        if not self._is_planned:
            self._read()
        self._is_planned = True
        found = self._planner.plan(
            self._sources,
            n_max,
            self._most_leaves(state),
            self._curve.first(state, n_max + 1),
            self._curve.again_ms,
            self._curve.n_tail(state),
        )
        if found is None:
            return NO_DRAFT, _NO_ENDS
        tokens, parents, likely, sources, ends = found
        return Draft(tokens, parents, likely, sources), ends

    def _look_up(self, said: Tokens, path: Tokens, n_max: int) -> int:
        """Look up `said` in each source; matches become offers that follow the drafted `path`.
        Returns: how many sources matched."""
        if n_max <= 0:
            return 0
        if self._boundary is None:
            return self._sources.ask(said, path, n_max)
        return self._boundary.ask(said, path, n_max, self._sources)

    def _most_leaves(self, state: PassState) -> int:
        """Most branches of a draft; 1 in padded passes, which are over chains alone."""
        return self._max_leaves if state.width == 1 else 1

    def _is_within(self, emitted: Tokens) -> bool:
        return self._boundary is not None and self._boundary.is_within(emitted)

    def _trees_pay(self, state: PassState, n_max: int) -> bool:
        """True if a few more drafted tokens cost next to nothing, so that branches may pay."""
        if self._most_leaves(state) == 1:
            return False
        few_ms = self._curve.pass_ms(1 + min(n_max, _FEW))
        return few_ms < _CHEAP * self._curve.pass_ms(1)


def _open_paths(draft: Draft, ends: Ends, n_max: int) -> list[Tokens]:
    """Tokens of the likeliest branches whose ends no source was looked up after yet, root first."""
    likely = path_probs(draft)
    nodes: list[int] = np.flatnonzero(ends).tolist()
    nodes.sort(key=lambda i: -likely[i])
    parents, tokens = draft.parents.tolist(), draft.tokens.tolist()
    paths: list[Tokens] = []
    for node in nodes[:_MAX_PATHS]:
        path: list[int] = []
        while node >= 0:
            path.append(tokens[node])
            node = parents[node]
        if len(path) < n_max:
            paths.append(np.array(path[::-1], np.int32))
    return paths
