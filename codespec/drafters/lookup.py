"""Drafts from text that already exists: this document before and after the cursor, the workspace's
other files, other open documents, recent edits. What they say is weighed together (`Planner`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from codespec.drafters.base import Drafter, Traits
from codespec.drafters.cost import FLAT, CostCurve
from codespec.drafters.mechanisms import PRODUCT, Mechanisms
from codespec.index.live import LiveDocument
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


class Repository(Protocol):
    """What the drafter needs of a workspace index."""

    def segments(
        self, skip: Collection[str] = ()
    ) -> Sequence[tuple[Segment, npt.NDArray[np.bool_] | None]]:
        """Its segments, each with documents not to use: those to skip among them. None: none."""
        ...


PREFIX = Source.register("prefix")  # the document, before the cursor
SUFFIX = Source.register("suffix")  # the document, after the cursor
REPOSITORY = Source.register("repository")  # other files of the workspace
EDITS = Source.register("edits")  # lines that the user changed or deleted lately
BUFFERS = Source.register("buffers")  # other open documents of the workspace
ANSWERS = Source.register("answers")  # what the target said lately in this document

Neighbour: TypeAlias = tuple[Source, SuffixAutomaton]


class LookupDrafter(Drafter):
    """`Drafter` over suffix automata of the document and a frozen index of the workspace.

    document:   gives the live document of a path, or of what else it is known by, already brought
        up to date for the request.
    planner:    gives the planner of a workspace folder.
    repository: gives the index of a workspace folder, or None where there is none (yet).
    neighbours: gives what else may be drafted from for a request; of one source's automata the
        one with the longest match speaks.
    overridden: gives the files whose stored text is not used in a request: open buffers are newer.
    boundary:   gives the cursor of a request, where it may stand inside a token.
    curve:      cost of the target's passes.
    mechanisms: which optional parts there are.
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
        mechanisms: Mechanisms = PRODUCT,
    ) -> None:
        self._open_document = document
        self._open_planner = planner
        self._open_repository = repository
        self._find_neighbours = neighbours
        self._find_overridden = overridden
        self._make_boundary = boundary
        self._curve = curve
        self._mechanisms = mechanisms
        self._planner: Planner | None = None
        self._sources = Sources(NO_TOKENS)
        self._boundary: Boundary | None = None
        self._unread: list[int] = []  # emitted, and not known to the planner
        self._is_planned = False
        self._drafting: Drafting | None = None  # by these costs
        self._costs: npt.NDArray[np.float64] | None = None

    def begin(self, context: Context) -> None:
        self._read()
        document = self._open_document(context.document or context.path)
        self._boundary = boundary = self._make_boundary(context) if self._make_boundary else None
        base = context.left if boundary is None else context.left[: boundary.n_base]
        self._sources = sources = Sources(base)
        sources.add_before(PREFIX, document.before)
        neighbours = [(SUFFIX, document.after), *self._find_neighbours(context)]
        for source, automata in _grouped(neighbours, self._mechanisms.sources_left_out).items():
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
        """Drafts as `propose` would."""
        if self._planner is None:
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
        if not self._look_up(state.emitted, n_max):
            return NO_DRAFT
        return self._plan(state, n_max)

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        self._unread += verdict.emitted
        if self._is_planned:
            self._read()

    def ended(self, n_emitted: int) -> None:
        self._read()
        if self._planner is not None:
            self._planner.ended(n_emitted)

    def _read(self) -> None:
        """Tell the planner what was emitted since its last plan, for which nobody waits."""
        if self._planner is not None and self._unread:
            self._planner.learn(self._unread, len(self._unread))
        self._unread = []
        self._is_planned = False

    def _plan(self, state: PassState, n_max: int) -> Draft:
        assert self._planner is not None
        if not self._is_planned:
            self._read()
        self._is_planned = True
        found = self._planner.plan(
            self._sources,
            n_max,
            self._curve.first(state, n_max + 1),
            self._curve.again_ms,
            self._curve.n_tail(state),
        )
        return NO_DRAFT if found is None else Draft(*found)

    def _look_up(self, said: Tokens, n_max: int) -> int:
        """Ask each source what follows. How many say anything."""
        if n_max <= 0:
            return 0
        if self._boundary is None:
            return self._sources.ask(said, NO_TOKENS, n_max)
        return self._boundary.ask(said, NO_TOKENS, n_max, self._sources)


def _grouped(
    neighbours: Iterable[Neighbour], left_out: Collection[str]
) -> dict[Source, list[SuffixAutomaton]]:
    automata: dict[Source, list[SuffixAutomaton]] = {}
    for source, automaton in neighbours:
        if source.label not in left_out:
            automata.setdefault(source, []).append(automaton)
    return automata
