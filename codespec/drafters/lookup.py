"""Drafts from text that already exists: this document before and after the cursor, the workspace's
other files, other open documents, recent edits. The longest and most consistent match wins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from codespec.context.boundary import Ask, Boundary, Columns, Continuation, Query
from codespec.drafters.cost import FLAT, CostCurve
from codespec.index.live import LiveDocument
from codespec.native import MAX_DEPTH, Matcher, Planner, Proposal, SuffixAutomaton
from codespec.tree import path_probs
from codespec.types import NO_DRAFT, NO_TOKENS, Context, Draft, Source, Tokens, Verdict


class Repository(Protocol):
    """What the drafter needs of a workspace index."""

    def draft(
        self,
        context: Tokens,
        n_max: int,
        skip: Collection[str] = (),
        allowed: Tokens | None = None,
    ) -> Proposal:
        """The best continuation in any file but those to skip, that begins with an allowed id."""
        ...


Neighbour: TypeAlias = tuple[Source, SuffixAutomaton]

Offer: TypeAlias = tuple[int, int, Columns, Tokens]
"""source, distance, columns, path: see `native.Planner.plan`."""

_ELSEWHERE = -1

# Width is nearly free where this many tokens more cost less than half a pass.
_FEW, _CHEAP = 4, 1.5
# Branches of a tree that are looked up further.
_MAX_PATHS = 4

Ends: TypeAlias = npt.NDArray[np.uint8]


class LookupDrafter:
    """`Drafter` over suffix automata of the document and a frozen index of the workspace.

    document:   gives the live document of a path, already brought up to date for the request.
    planner:    gives the planner of a workspace folder.
    repository: gives the index of a workspace folder, or None where there is none (yet).
    neighbours: gives what else may be drafted from for a request; of one source's automata the
        one with the longest match speaks.
    overridden: gives the files whose stored text is not used in a request: open buffers are newer.
    boundary:   gives the cursor of a request, where it may stand inside a token.
    curve, max_leaves: cost of the target's passes, and the branches they can take.
    """

    name = "lookup"

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
        self._document: LiveDocument | None = None
        self._sources: list[tuple[Source, Ask]] = []
        self._boundary: Boundary | None = None
        self._context = Context(NO_TOKENS)
        self._offers: list[Offer] = []

    def begin(self, context: Context) -> None:
        self._context = context
        self._document = document = self._open_document(context.path)
        repository = self._open_repository(context.workspace) if context.workspace else None
        neighbours = [(Source.SUFFIX, document.after), *self._find_neighbours(context)]
        self._sources = [(Source.PREFIX, _before(document)), *_grouped(neighbours)]
        if repository is not None:
            skip = self._find_overridden(context)
            self._sources.append((Source.REPOSITORY, _within(repository, skip)))
        self._boundary = self._make_boundary(context) if self._make_boundary else None
        self._planner = self._open_planner(context.workspace)
        self._planner.begin(context.left, context.right)

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        self._offers = self._look_up(emitted, NO_TOKENS, n_max)
        if self._offers and self._trees_pay(n_max):
            self._offers += self._after_last(emitted, n_max)
        return self._plan(emitted, n_max, NO_DRAFT) if self._offers else NO_DRAFT

    def extend(self, emitted: Tokens, given: Draft, n_max: int) -> Draft:
        """The best of what `propose` saw last and a deterministic chain that another drafter gives,
        with what stands after that chain elsewhere."""
        self._offers += self._look_up(emitted, given.tokens, n_max)
        return self._plan(emitted, n_max, given)

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        if self._planner is not None:
            known = np.array(verdict.emitted, np.int32)
            self._planner.learn(known, len(known))

    def _plan(self, emitted: Tokens, n_max: int, given: Draft) -> Draft:
        draft, ends = self._planned(n_max, given)
        if draft.is_chain:
            return draft
        # What follows branches that no source went beyond?
        paths = _open_paths(draft, ends, n_max)
        more = [offer for path in paths for offer in self._look_up(emitted, path, n_max)]
        if not more:
            return draft
        self._offers += more
        return self._planned(n_max, given)[0]

    def _planned(self, n_max: int, given: Draft) -> tuple[Draft, Ends]:
        assert self._planner is not None
        costs = self._curve.first(n_max + 1)
        source = int(given.sources[0]) if len(given) else Source.DRAFT_MODEL
        probs = np.ascontiguousarray(given.probs, np.float32)
        tokens, parents, likely, sources, ends = self._planner.plan(
            self._offers, n_max, self._max_leaves, costs, given.tokens, probs, source
        )
        return Draft(tokens, parents, likely, sources) if len(tokens) else NO_DRAFT, ends

    def _look_up(self, emitted: Tokens, path: Tokens, n_max: int) -> list[Offer]:
        """What each source says after the context, `emitted`, and a path of drafted tokens."""
        n_max -= len(path)
        if self._document is None or n_max <= 0:
            return []
        said = np.concatenate([emitted, path]) if len(path) else emitted
        return self._offered(self._query(said), path, n_max)

    def _trees_pay(self, n_max: int) -> bool:
        """Whether some tokens more cost next to nothing, so that much is worth knowing."""
        costs = self._curve.first(min(n_max, _FEW) + 1)
        return self._max_leaves > 1 and bool(costs[-1] < _CHEAP * costs[0])

    def _after_last(self, emitted: Tokens, n_max: int) -> list[Offer]:
        """What follows the last token alone, wherever it stands."""
        query = self._query(emitted)
        return [] if query.wanted else self._offered(Query(query.context[-1:]), NO_TOKENS, n_max)

    def _query(self, said: Tokens) -> Query:
        if self._boundary is None:
            return Query(np.concatenate([self._context.left, said]))
        return self._boundary.query(said)

    def _offered(self, query: Query, path: Tokens, n_max: int) -> list[Offer]:
        offers: list[Offer] = []
        for source, ask in self._sources:
            found = self._ask(query, n_max, ask)
            if len(found):
                distance = self._distance(source, found.position)
                offers.append((int(source), distance, found.columns, path))
        return offers

    def _distance(self, source: Source, position: int) -> int:
        if source == Source.PREFIX and self._document is not None:
            return len(self._document.before) - position
        return position if source == Source.SUFFIX else _ELSEWHERE

    def _ask(self, query: Query, n_max: int, ask: Ask) -> Continuation:
        if self._boundary is None:
            return Continuation.of(ask(query.context, n_max, None))
        return self._boundary.ask(query, n_max, ask)


def _open_paths(draft: Draft, ends: Ends, n_max: int) -> list[Tokens]:
    """The likeliest branches of a tree after which no source was asked yet."""
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


def _before(document: LiveDocument) -> Ask:
    def ask(context: Tokens, n_max: int, allowed: Tokens | None) -> Proposal:
        if len(context) < 2:
            return document.before.draft(context, n_max, allowed=allowed)
        document.follow(context)
        return document.before.draft_tail(n_max, allowed=allowed)

    return ask


def _grouped(neighbours: Iterable[Neighbour]) -> list[tuple[Source, Ask]]:
    """One question for all automata of a source."""
    automata: dict[Source, list[SuffixAutomaton]] = {}
    for source, automaton in neighbours:
        automata.setdefault(source, []).append(automaton)
    return [(source, _of(Matcher(group))) for source, group in automata.items()]


def _of(matcher: Matcher) -> Ask:
    return lambda context, n_max, allowed: matcher.draft(context, n_max, allowed=allowed)


def _within(repository: Repository, skip: Sequence[str]) -> Ask:
    return lambda context, n_max, allowed: repository.draft(
        context[-MAX_DEPTH:], n_max, skip, allowed
    )
