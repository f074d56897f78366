"""Drafts from text that already exists: this document before and after the cursor, the workspace's
other files, other open documents, recent edits. The longest and most consistent match wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from codespec.drafters.calibrate import AcceptanceTable, n_followed
from codespec.index.live import LiveDocument
from codespec.native import MAX_DEPTH, Proposal, SuffixAutomaton
from codespec.types import NO_DRAFT, NO_TOKENS, Context, Draft, Source, Tokens, Verdict


class Repository(Protocol):
    """What the drafter needs of a workspace index."""

    def draft(self, context: Tokens, n_max: int, skip_path: str = "") -> Proposal:
        """The best continuation in any file but `skip_path`."""
        ...


Neighbour: TypeAlias = tuple[Source, SuffixAutomaton]


@dataclass(slots=True)
class _Candidate:
    source: Source
    proposal: Proposal
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
    """

    name = "lookup"

    def __init__(
        self,
        document: Callable[[str], LiveDocument],
        repository: Callable[[str], Repository | None] = lambda workspace: None,
        table: AcceptanceTable | None = None,
        neighbours: Callable[[Context], Sequence[Neighbour]] = lambda context: (),
    ) -> None:
        self._open_document = document
        self._open_repository = repository
        self._find_neighbours = neighbours
        self._table = table or AcceptanceTable()
        self._document: LiveDocument | None = None
        self._repository: Repository | None = None
        self._neighbours: Sequence[Neighbour] = ()
        self._context = Context(NO_TOKENS)
        self._candidates: list[_Candidate] = []

    def begin(self, context: Context) -> None:
        self._context = context
        self._document = self._open_document(context.path)
        self._repository = self._open_repository(context.workspace) if context.workspace else None
        self._neighbours = self._find_neighbours(context)

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        if self._document is None:
            return NO_DRAFT
        text = np.concatenate([self._context.left, emitted])
        recent = text[-MAX_DEPTH:]
        self._document.follow(text)
        found = [
            (Source.PREFIX, self._document.before.draft_tail(n_max)),
            (Source.SUFFIX, self._document.after.draft(recent, n_max)),
        ]
        if self._repository is not None:
            proposal = self._repository.draft(recent, n_max, self._context.path)
            found.append((Source.REPOSITORY, proposal))
        best_of: dict[Source, Proposal] = {}
        for source, automaton in self._neighbours:
            proposal = automaton.draft(recent, n_max)
            if source not in best_of or proposal.match_length > best_of[source].match_length:
                best_of[source] = proposal
        found += best_of.items()
        self._candidates = [
            _Candidate(source, p, self._table.probs(source, p.match_lengths, p.counts, p.totals))
            for source, p in found
            if len(p)
        ]
        if not self._candidates:
            return NO_DRAFT
        best = max(self._candidates, key=lambda c: c.expected)
        return Draft.chain(best.proposal.tokens, best.source, best.probs)

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
