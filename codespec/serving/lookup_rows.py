"""Prompt lookup drafting for the rows of an engine: all of them in one native call.

Each request has the sources of `LookupDrafter` that a server knows: its own text before and after
the cursor, and the index of its workspace. Each has a planner of its own that starts from what its
workspace has learned; `native/calibration.h` says how that stays independent of their order.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from codespec.documents.sources import PREFIX, REPOSITORY, SUFFIX
from codespec.native import DraftedRequest, RowThreads, Sources, SuffixAutomaton
from codespec.serving.batch_cost import BatchCost
from codespec.serving.counters import RowCounters
from codespec.serving.prompt_document import document_in
from codespec.serving.rows import RowStep
from codespec.serving.served_workspaces import ServedWorkspaces
from codespec.types import FimTokens

MOST_REQUESTS = 1024
"""Most requests that are kept; of more, those without a row for longest begin again."""


class _Known(NamedTuple):
    """A request that has begun. n_read: tokens of its row that were read. workspace: the one that
    it drafts from, "" for none."""

    native: DraftedRequest
    n_read: int
    workspace: str = ""


class LookupRows:
    """`RowDrafter` by lookups. One thread only.

    fim:       markers of the target's prompts, None for a target without them.
    n_threads: threads of a native call, for steps of many rows.
    """

    def __init__(
        self,
        fim: FimTokens | None,
        workspaces: ServedWorkspaces,
        cost: BatchCost,
        counters: RowCounters,
        n_threads: int = 1,
    ) -> None:
        self._fim = fim
        self._workspaces = workspaces
        self._cost = cost
        self._counters = counters
        self._threads = RowThreads(n_threads)
        self._requests: OrderedDict[Hashable, _Known] = OrderedDict()

    def draft(
        self, steps: Sequence[RowStep], ended: Sequence[Hashable], ms: float
    ) -> list[list[int]]:
        start = time.perf_counter()
        for key in ended:
            self._end(key)
        asked: list[int] = []
        natives: list[DraftedRequest] = []
        fresh: list[list[int]] = []
        for i, step in enumerate(steps):
            try:
                known = self._known(step)
            except Exception:  # what one client sent is the loss of its row alone
                self._counters.n_failed += 1
                continue
            if known is None:
                continue
            n_read = step.start + len(step.tokens)
            self._requests[step.key] = known._replace(n_read=n_read)
            asked.append(i)
            natives.append(known.native)
            fresh.append(step.tokens[known.n_read - step.start :].tolist())
        n_max = [steps[i].n_max for i in asked]
        costs = self._cost.costs(max(1, len(asked)), max([0, *n_max]))
        left_ms = ms - (time.perf_counter() - start) * 1e3
        found, n_cut, n_failed = self._threads.draft(natives, fresh, n_max, costs, left_ms)
        self._counters.n_cut += n_cut
        self._counters.n_failed += n_failed
        chains: list[list[int]] = [[] for _ in steps]
        for i, chain in zip(asked, found, strict=True):
            chains[i] = chain
        while len(self._requests) > MOST_REQUESTS:
            self._end(next(iter(self._requests)))
        return chains

    def _known(self, step: RowStep) -> _Known | None:
        """The request of a row, begun if it is new; None where nothing is to be drafted for it."""
        if step.start == 0:
            self._end(step.key)
            return self._begun(step) if step.place.drafts else None
        known = self._requests.pop(step.key, None)
        if known is not None and known.n_read != step.start:
            self._count(known)
            return None
        return known

    def _begun(self, step: RowStep) -> _Known:
        start = time.perf_counter()
        prompt = np.ascontiguousarray(step.tokens[: step.n_prompt])
        place = step.place
        before, after = document_in(prompt, self._fim)
        sources = Sources(before)
        sources.add_before(PREFIX, SuffixAutomaton())
        behind = SuffixAutomaton()
        behind.extend(after)
        sources.add_automata(SUFFIX, [behind], True)
        said = step.tokens[step.n_prompt :]
        document = (np.concatenate([before, said]) if len(said) else before, after)
        segments = self._workspaces.segments(place.workspace, place.path, document)
        if segments:
            sources.add_segments(REPOSITORY, segments)
        calibration = self._workspaces.calibration(place.workspace)
        native = DraftedRequest(calibration, sources, before, after)
        self._counters.n_begun += 1
        self._counters.begin_ms += (time.perf_counter() - start) * 1e3
        return _Known(native, step.n_prompt, place.workspace if segments else "")

    def let_go(self, workspaces: Collection[str]) -> None:
        """End the requests that draft from these workspaces: the last ones hold what they read
        until a later step. One that goes on gets no drafts."""
        for key in [key for key, known in self._requests.items() if known.workspace in workspaces]:
            self._end(key)

    def _end(self, key: Hashable) -> None:
        known = self._requests.pop(key, None)
        if known is not None:
            self._count(known)

    def _count(self, known: _Known) -> None:
        known.native.end()
        self._counters.add(known.native.by_source, known.workspace)
