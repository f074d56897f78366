"""Several drafters as one, none of them trusted.

The chain asks its members in order of preference and takes the first draft that has something
worth verifying, cut to what pays. A member may be wrong in any way: one that raises is left out for
the rest of the request, one that returns something malformed is ignored. Nothing a drafter does
can reach the output.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from codespec.drafters.cost import FLAT, CostCurve, best_width
from codespec.tree import limit_leaves, prefix
from codespec.types import NO_DRAFT, Context, Draft, Drafter, Tokens, Verdict
from codespec.verify import wellformed

log = logging.getLogger(__name__)


class DraftChain:
    """`Drafter` over its members.

    n_vocab:    ids at or above it are refused.
    max_leaves: most branches of a tree, see `TargetModel.max_leaves`.
    """

    name = "chain"

    def __init__(
        self,
        drafters: Sequence[Drafter],
        n_vocab: int,
        max_leaves: int = 1,
        curve: CostCurve = FLAT,
    ) -> None:
        self.drafters = list(drafters)
        self._n_vocab = n_vocab
        self._max_leaves = max_leaves
        self._curve = curve
        self._active: list[Drafter] = []

    def begin(self, context: Context) -> None:
        self._active = list(self.drafters)
        self._each(lambda drafter: drafter.begin(context))

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        if n_max <= 0:
            return NO_DRAFT
        for drafter in list(self._active):
            draft = self._guarded(drafter, lambda d=drafter: self._checked(d, emitted, n_max))
            if draft is not None and len(draft):
                return draft
        return NO_DRAFT

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        self._each(lambda drafter: drafter.observe(emitted, draft, verdict))

    def _checked(self, drafter: Drafter, emitted: Tokens, n_max: int) -> Draft:
        draft = drafter.propose(emitted, n_max)
        if not wellformed(draft, self._n_vocab, n_max):
            log.warning("the drafter %s returned a malformed draft", drafter.name)
            return NO_DRAFT
        return self._cut(draft)

    def _cut(self, draft: Draft) -> Draft:
        """Only what pays. Sampled drafts stay whole: to cut them after the draw biases the law."""
        if not len(draft) or draft.q is not None:
            return draft
        if not draft.is_chain:
            return limit_leaves(draft, self._max_leaves)
        width, _ = best_width(draft.probs, self._curve)
        return prefix(draft, width)

    def _each(self, call: Callable[[Drafter], None]) -> None:
        for drafter in list(self._active):
            self._guarded(drafter, lambda d=drafter: call(d))

    def _guarded(self, drafter: Drafter, call: Callable[[], Draft | None]) -> Draft | None:
        try:
            return call()
        except Exception:
            # Not `exception`: a traceback may carry source text in its values.
            log.warning("the drafter %s failed and is left out of this request", drafter.name)
            if drafter in self._active:
                self._active.remove(drafter)
            return None
