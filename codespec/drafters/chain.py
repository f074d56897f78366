"""Several drafters as one, none of them trusted.

The chain asks its members in order and keeps the draft with the most expected tokens per
millisecond. A member that costs time to ask says first what it expects, and is asked only where
that is more than what is there already; what it says is then weighed together with what the others
know, and continued by them. A member may be wrong in any way: one that raises is left out for the
rest of the request, one that returns something malformed is ignored. Nothing a drafter does can
reach the output.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard, TypeVar

from codespec.drafters.cost import FLAT, CostCurve, best_width
from codespec.drafters.worth import Worth
from codespec.tree import limit_leaves, path_probs, prefix
from codespec.types import NO_DRAFT, NO_TOKENS, Context, Draft, Drafter, Tokens, Verdict
from codespec.verify import wellformed

log = logging.getLogger(__name__)

T = TypeVar("T")


class CostlyDrafter(Drafter, Protocol):
    """A `Drafter` that takes time to ask."""

    def plan(self, n_max: int) -> tuple[int, float]:
        """(tokens it would draft, expected tokens per millisecond, its own time included)."""
        ...


class ExtendingDrafter(Drafter, Protocol):
    """A `Drafter` that weighs and continues what others drafted, and that knows what passes cost:
    it drafts only what pays."""

    def extend(self, emitted: Tokens, given: Draft, n_max: int) -> Draft:
        """The best draft of what it proposed last and a deterministic chain of another."""
        ...


class DraftChain:
    """`Drafter` over its members.

    n_vocab:    ids at or above it are refused.
    max_leaves: most branches of a tree, see `TargetModel.max_leaves`.
    worth:      says when not to ask the members; None: ask them before each pass.
    """

    name = "chain"

    def __init__(
        self,
        drafters: Sequence[Drafter],
        n_vocab: int,
        max_leaves: int = 1,
        curve: CostCurve = FLAT,
        worth: Worth | None = None,
    ) -> None:
        self.drafters = list(drafters)
        self._n_vocab = n_vocab
        self._max_leaves = max_leaves
        self._curve = curve
        self._worth = worth
        self._context: Context | None = None  # of a request whose members have not begun
        self._begin_ms = 0.0  # what that took, until it is part of an asking
        self._took_ms: float | None = None  # to ask for the last draft; None: nobody was asked
        self._active: list[Drafter] = []
        self._proposed: dict[int, Draft] = {}

    def begin(self, context: Context) -> None:
        """The members begin when they are first asked, if that is not before the first pass: to
        look for what they may draft from takes as long as some askings."""
        self._active = list(self.drafters)
        self._proposed = {}
        self._context = context
        if self._worth is None or self._worth.is_asking:
            self._begin_members(NO_TOKENS)

    def _begin_members(self, emitted: Tokens) -> None:
        """emitted: since the request began."""
        context, self._context = self._context, None
        if context is None:
            return
        start = time.perf_counter()
        for drafter in self.drafters:
            self._guarded(drafter, drafter.begin, context)
        if len(emitted):
            said = Verdict(tuple(emitted.tolist()), ())
            for drafter in tuple(self._active):
                self._guarded(drafter, drafter.observe, emitted, NO_DRAFT, said)
        self._begin_ms = (time.perf_counter() - start) * 1e3

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        self._proposed = {}
        self._took_ms = None
        if n_max <= 0 or not self._active:
            return NO_DRAFT
        if self._worth is not None and not self._worth.ask():
            return NO_DRAFT
        self._begin_members(emitted)
        start = time.perf_counter()
        draft = self._ask(emitted, n_max)
        self._took_ms = self._begin_ms + (time.perf_counter() - start) * 1e3
        self._begin_ms = 0.0
        return draft

    def _ask(self, emitted: Tokens, n_max: int) -> Draft:
        best = NO_DRAFT
        for drafter in tuple(self._active):
            if not len(best) or self._promises_more(drafter, best, n_max):
                best = self._better(drafter, best, emitted, n_max)
        return best

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        """A member that proposed something is told what became of that."""
        if self._worth is not None and self._took_ms is not None:
            self._worth.learn(self._took_ms, len(draft), len(verdict.path))
        if self._context is not None:
            return
        for drafter in tuple(self._active):
            proposed = self._proposed.get(id(drafter), draft)
            self._guarded(drafter, drafter.observe, emitted, proposed, verdict)

    def _promises_more(self, drafter: Drafter, best: Draft, n_max: int) -> bool:
        if not _is_costly(drafter) or best.q is not None:
            return False
        plan = self._guarded(drafter, drafter.plan, n_max)
        return plan is not None and plan[1] > self._rate(best)

    def _better(self, drafter: Drafter, best: Draft, emitted: Tokens, n_max: int) -> Draft:
        draft = self._checked(drafter, drafter.propose, emitted, n_max)
        if not len(draft):
            return best
        self._proposed[id(drafter)] = draft
        if draft.q is not None:
            # Drawn already: to prefer another draft now would bias the law.
            return draft
        if _is_costly(drafter) and draft.is_chain:
            for other in list(self._active):
                if _is_extending(other):
                    extended = self._checked(other, other.extend, emitted, draft, n_max)
                    best = max(best, extended, key=self._rate)
        draft = self._cut(drafter, draft)
        return max(best, draft, key=self._rate) if len(best) else draft

    def _rate(self, draft: Draft) -> float:
        """Expected tokens per millisecond of the pass."""
        return (1.0 + sum(path_probs(draft))) / self._curve.pass_ms(1 + len(draft))

    def _checked(self, drafter: Drafter, ask: Callable[..., Draft], *args: Any) -> Draft:
        return self._guarded(drafter, self._wellformed, drafter, ask, *args) or NO_DRAFT

    def _wellformed(self, drafter: Drafter, ask: Callable[..., Draft], *args: Any) -> Draft:
        """What `ask` drafts; the last argument is how much it may."""
        draft = ask(*args)
        if not wellformed(draft, self._n_vocab, args[-1]):
            log.warning("the drafter %s returned a malformed draft", drafter.name)
            return NO_DRAFT
        return draft

    def _cut(self, drafter: Drafter, draft: Draft) -> Draft:
        """Only what pays. Sampled drafts stay whole: to cut them after the draw biases the law."""
        if not draft.is_chain:
            return limit_leaves(draft, self._max_leaves)
        if _is_extending(drafter):
            return draft
        width, _ = best_width(draft.probs.tolist(), self._curve)
        return prefix(draft, width)

    def _guarded(self, drafter: Drafter, call: Callable[..., T], *args: Any) -> T | None:
        try:
            return call(*args)
        except Exception:
            # Not `exception`: a traceback may carry source text in its values.
            log.warning("the drafter %s failed and is left out of this request", drafter.name)
            if drafter in self._active:
                self._active.remove(drafter)
            return None


def _is_costly(drafter: Drafter) -> TypeGuard[CostlyDrafter]:
    return hasattr(drafter, "plan")


def _is_extending(drafter: Drafter) -> TypeGuard[ExtendingDrafter]:
    return hasattr(drafter, "extend")
