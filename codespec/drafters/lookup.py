"""Drafts from text that already exists: this document before and after the cursor, the workspace's
other files, other open documents, recent edits. The longest and most consistent match wins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from codespec.context.boundary import Ask, Boundary, Continuation, Query
from codespec.drafters.calibrate import AcceptanceTable, n_followed
from codespec.index.live import LiveDocument
from codespec.native import MAX_DEPTH, Proposal, SuffixAutomaton
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


@dataclass(slots=True)
class _Candidate:
    source: Source
    proposal: Continuation
    probs: npt.NDArray[np.float32]

    @property
    def expected(self) -> float:
        return float(np.cumprod(self.probs).sum())


class LookupDrafter:
    """`Drafter` over suffix automata of the document and a frozen index of the workspace.

    document:   gives the live document of a path, already brought up to date for the request.
    repository: gives the index of a workspace folder, or None where there is none (yet).
    neighbours: gives what else may be drafted from for a request; of one source's automata the
        one with the longest match speaks.
    overridden: gives the files whose stored text is not used in a request: open buffers are newer.
    boundary:   gives the cursor of a request, where it may stand inside a token.
    """

    name = "lookup"

    def __init__(
        self,
        document: Callable[[str], LiveDocument],
        repository: Callable[[str], Repository | None] = lambda workspace: None,
        table: AcceptanceTable | None = None,
        neighbours: Callable[[Context], Sequence[Neighbour]] = lambda context: (),
        overridden: Callable[[Context], Sequence[str]] = lambda context: (context.path,),
        boundary: Callable[[Context], Boundary] | None = None,
    ) -> None:
        self._open_document = document
        self._open_repository = repository
        self._find_neighbours = neighbours
        self._find_overridden = overridden
        self._make_boundary = boundary
        self._table = table or AcceptanceTable()
        self._document: LiveDocument | None = None
        self._repository: Repository | None = None
        self._neighbours: Sequence[Neighbour] = ()
        self._skip: Sequence[str] = ()
        self._boundary: Boundary | None = None
        self._context = Context(NO_TOKENS)
        self._candidates: list[_Candidate] = []

    def begin(self, context: Context) -> None:
        self._context = context
        self._document = self._open_document(context.path)
        self._repository = self._open_repository(context.workspace) if context.workspace else None
        self._neighbours = self._find_neighbours(context)
        self._skip = self._find_overridden(context)
        self._boundary = self._make_boundary(context) if self._make_boundary else None

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        if self._document is None:
            return NO_DRAFT
        if self._boundary is None:
            query = Query(np.concatenate([self._context.left, emitted]))
        else:
            query = self._boundary.query(emitted)
        best_of: dict[Source, Continuation] = {}
        for source, ask in self._sources(self._document):
            found = self._ask(query, n_max, ask)
            known = best_of.get(source)
            if known is None or found.match_length > known.match_length:
                best_of[source] = found
        self._candidates = [
            _Candidate(source, p, self._table.probs(source, p.match_lengths, p.counts, p.totals))
            for source, p in best_of.items()
            if len(p)
        ]
        if not self._candidates:
            return NO_DRAFT
        best = max(self._candidates, key=lambda c: c.expected)
        return Draft.chain(best.proposal.tokens, best.source, best.probs)

    def _ask(self, query: Query, n_max: int, ask: Ask) -> Continuation:
        if self._boundary is None:
            return Continuation.of(ask(query.context, n_max, None))
        return self._boundary.ask(query, n_max, ask)

    def _sources(self, document: LiveDocument) -> list[tuple[Source, Ask]]:
        def before(context: Tokens, n_max: int, allowed: Tokens | None) -> Proposal:
            document.follow(context)
            return document.before.draft_tail(n_max, allowed=allowed)

        def of(automaton: SuffixAutomaton) -> Ask:
            return lambda context, n_max, allowed: automaton.draft(
                context[-MAX_DEPTH:], n_max, allowed=allowed
            )

        found: list[tuple[Source, Ask]] = [
            (Source.PREFIX, before),
            (Source.SUFFIX, of(document.after)),
        ]
        repository, skip = self._repository, self._skip
        if repository is not None:
            found.append(
                (
                    Source.REPOSITORY,
                    lambda context, n_max, allowed: repository.draft(
                        context[-MAX_DEPTH:], n_max, skip, allowed
                    ),
                )
            )
        return found + [(source, of(automaton)) for source, automaton in self._neighbours]

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        for c in self._candidates:
            p = c.proposal
            n_right = n_followed(p.tokens, verdict)
            # Past the emitted tokens nobody knows what would have been right.
            n_known = min(len(p), len(verdict.emitted))
            self._table.learn(
                c.source,
                p.match_lengths[:n_known],
                p.counts[:n_known],
                p.totals[:n_known],
                n_right,
            )
        self._candidates = []
