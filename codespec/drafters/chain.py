"""Several drafters as one, none of them trusted.

The chain asks its members in order and keeps the draft with the most expected tokens per
millisecond. A member that costs time to ask says first whether it may be worth it and what it
expects, and is asked only where that is more than what is there already; what it says is then
weighed together with what the others know, and continued by them. Or, where that is cheap, it is
asked what it thinks of what the others would draft. A member may be wrong in any way: one that
raises is left out for the rest of the request, one that returns something malformed is ignored.
Nothing a drafter does can reach the output.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard, TypeVar

import numpy as np

from codespec.backends.base import CancelledError
from codespec.drafters.cost import FLAT, CostCurve, best_width
from codespec.drafters.filler import Filler
from codespec.drafters.mechanisms import PRODUCT, Mechanisms
from codespec.drafters.worth import Worth
from codespec.native import Drafting, Stretch
from codespec.tree import limit_leaves, path_probs, prefix
from codespec.types import NO_DRAFT, NO_TOKENS, Context, Draft, Drafter, Tokens, Verdict
from codespec.verify import wellformed

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_PASSES = 256
"""In a row; as good as any number."""


class CostlyDrafter(Drafter, Protocol):
    """A `Drafter` that takes time to ask."""

    def is_due(self) -> bool:
        """Asked once before each pass: whether to ask any more than that."""
        ...

    @property
    def n_rest(self) -> int:
        """Passes to come before which it is not due."""
        ...

    def rested(self, n_passes: int) -> None:
        """So many of them have passed, without asking."""
        ...

    def plan(self, n_max: int) -> tuple[int, float]:
        """(tokens it would draft, expected tokens per millisecond, its own time included)."""
        ...


class ExtendingDrafter(Drafter, Protocol):
    """A `Drafter` that weighs and continues what others drafted, and that knows what passes cost:
    it drafts only what pays."""

    def extend(self, emitted: Tokens, given: Draft, n_max: int) -> Draft:
        """The best draft of what it proposed last and a deterministic chain of another."""
        ...

    def candidates(self, n_max: int) -> Draft:
        """A chain of what it saw when it proposed last, also where drafting it would not pay."""
        ...


class NativeDrafter(Drafter, Protocol):
    """A `Drafter` that native code can stand in for."""

    def alone(self, n_max: int) -> tuple[Drafting | None, int]:
        """(what drafts at most `n_max` tokens a pass, for how many passes from here on)."""
        ...


class JudgingDrafter(CostlyDrafter, Protocol):
    """A `CostlyDrafter` that can say what it thinks of what others would draft."""

    @property
    def is_cheap(self) -> bool:
        """Whether to ask it for that."""
        ...

    def judge(self, emitted: Tokens, seen: Draft, rate: float, n_max: int) -> Draft | None:
        """The best draft by what is known together, of a deterministic chain of others or its own;
        None where that is not worth the time. rate: expected tokens per millisecond without."""
        ...


class ReadingDrafter(Drafter, Protocol):
    """A `Drafter` that may have to read a prompt, which takes as long as many passes.

    interrupted: whether to leave off and raise CancelledError; what was read by then is kept.
    """

    interrupted: Callable[[], bool]

    def has_room(self, n_tokens: int) -> bool:
        """Whether it can read so many. If not, it is left alone for the rest of a request."""
        ...


class DraftChain:
    """`Drafter` over its members.

    n_vocab:    ids at or above it are refused.
    max_leaves: most branches of a tree, see `Capabilities.max_leaves`.
    worth:      says when not to ask the members; None: ask them before each pass.
    filler:     says how wide all passes are.
    mechanisms: which optional parts there are.
    """

    name = "chain"

    def __init__(
        self,
        drafters: Sequence[Drafter],
        n_vocab: int,
        max_leaves: int = 1,
        curve: CostCurve = FLAT,
        worth: Worth | None = None,
        filler: Filler | None = None,
        mechanisms: Mechanisms = PRODUCT,
    ) -> None:
        self.drafters = list(drafters)
        self._n_vocab = n_vocab
        self._max_leaves = max_leaves if mechanisms.trees else 1
        self._extends = mechanisms.extending
        self._curve = curve
        self._worth = worth
        self._filler = filler
        self._may_fill = False
        self._context: Context | None = None
        self._interrupted: Callable[[], bool] = lambda: False
        self._waiting: list[Drafter] = []  # members that have not begun
        self._begin_ms = 0.0  # what that took, until it is part of an asking
        self._took_ms: float | None = None  # to ask for the last draft; None: nobody was asked
        self._active: list[Drafter] = []
        self._proposed: dict[int, Draft] = {}
        self._knowing: list[ExtendingDrafter] = []  # asked already before this pass
        self._alone: Drafter | None = None  # stood in for by native code

    def begin(self, context: Context, interrupted: Callable[[], bool] = lambda: False) -> None:
        """The members begin when they are first asked, if that is not before the first pass: to
        look for what they may draft from takes as long as some askings. `propose` raises
        CancelledError where `interrupted` turns true while a member reads."""
        self._interrupted = interrupted
        for drafter in self.drafters:
            if _is_reading(drafter):
                drafter.interrupted = interrupted
        self._active = list(self.drafters)
        self._waiting = list(self.drafters)
        self._proposed = {}
        self._took_ms = None  # of what others drafted since, if the request was left off
        self._context = context
        self._curve.is_back = False  # a prompt is read by passes of other widths
        is_asking = self._worth is None or self._worth.is_asking
        if self._filler is not None:
            # Only what plans says what filling brings.
            self._may_fill = any(map(_is_native, self.drafters))
            self._filler.begin(is_asking and self._may_fill)
        else:
            self._curve.set_width(1)
        if is_asking:
            start = time.perf_counter()
            for drafter in self.drafters:
                if not _is_costly(drafter):
                    self._begin(drafter, NO_TOKENS)
            self._begin_ms = (time.perf_counter() - start) * 1e3

    def _begin(self, drafter: Drafter, emitted: Tokens) -> None:
        """emitted: since the request began."""
        assert self._context is not None
        self._waiting.remove(drafter)
        self._guarded(drafter, drafter.begin, self._context)
        if len(emitted) and drafter in self._active:
            said = Verdict(tuple(emitted.tolist()), ())
            self._guarded(drafter, drafter.observe, emitted, NO_DRAFT, said)

    def alone(self, n_max: int) -> tuple[Drafting | None, int]:
        """(what drafts natively, None for nothing; for how many passes to come no member has to be
        asked: 0 where one has to before the next)."""
        self._alone = None
        is_resting = self._worth is not None and self._worth.n_rest > 0
        if self._filler is not None:
            self._filler.step(self._may_fill and not is_resting)
        self._curve.set_tail(1)
        if self._worth is not None and is_resting:
            return None, self._worth.n_rest
        drafting, n_passes = None, MOST_PASSES
        for drafter in tuple(self._active):
            if _is_costly(drafter):
                n = drafter.n_rest
            elif drafter in self._waiting or self._alone is not None or not _is_native(drafter):
                n = 0
            else:
                found = self._guarded(drafter, drafter.alone, n_max)
                drafting, n = found or (None, 0)
                self._alone = drafter
            n_passes = min(n_passes, n)
        return drafting, n_passes

    def went(self, emitted: Sequence[int], stretch: Stretch) -> None:
        """A stretch of passes with what `alone` gave is over; emitted: by now."""
        n_passes = len(stretch.widths)
        if n_passes:
            self._curve.is_back = stretch.widths[-1] == 1
        if self._worth is not None and self._worth.n_rest:
            self._worth.rested(n_passes)
        elif self._worth is not None and self._alone is not None:
            asked = zip(stretch.draft_ms, stretch.n_drafted, stretch.n_accepted, strict=True)
            for took_ms, n_drafted, n_accepted in asked:
                self._worth.learn(self._begin_ms + took_ms, n_drafted, n_accepted)
                self._begin_ms = 0.0
        for drafter in tuple(self._active):
            if _is_costly(drafter) and drafter.n_rest:
                drafter.rested(n_passes)
            if drafter is not self._alone and drafter not in self._waiting:
                told = np.array(emitted, np.int32), NO_DRAFT, Verdict(tuple(stretch.tokens), ())
                self._guarded(drafter, drafter.observe, *told)
        if stretch.is_damaged and self._alone in self._active:
            self._leave_out(self._alone)

    def propose(self, emitted: Tokens, n_max: int, n_tail: int = 1) -> Draft:
        """n_tail: committed tokens that the pass reads."""
        self._proposed, self._knowing = {}, []
        self._took_ms = None
        if n_max <= 0 or not self._active:
            return NO_DRAFT
        is_asking = self._worth is None or self._worth.ask()
        if self._filler is not None:
            self._filler.step(self._may_fill and is_asking)
        self._curve.set_tail(n_tail)
        if not is_asking:
            return NO_DRAFT
        start = time.perf_counter()
        draft = self._ask(emitted, n_max)
        self._took_ms = self._begin_ms + (time.perf_counter() - start) * 1e3
        self._begin_ms = 0.0
        return draft

    def filled(self, draft: Draft, n_tail: int, n_room: int) -> Draft:
        """What is verified in place of `draft`: that, and what only widens the pass, which has room
        for so many tokens drafted. n_tail: as for `propose`."""
        filled = draft if self._filler is None else self._filler.fill(draft, n_tail, n_room)
        self._curve.is_back = n_tail + len(filled) == 1
        return filled

    def _ask(self, emitted: Tokens, n_max: int) -> Draft:
        best = NO_DRAFT
        for drafter in tuple(self._active):
            if not self._is_ready(drafter, emitted, n_max):
                continue
            judged = self._judged(drafter, best, emitted, n_max)
            if judged is not None:
                best = judged
            elif not len(best) or self._promises_more(drafter, best, n_max):
                best = self._better(drafter, best, emitted, n_max)
        return best

    def _is_ready(self, drafter: Drafter, emitted: Tokens, n_max: int) -> bool:
        """Whether to ask it, which begins now if it has not."""
        assert self._context is not None
        if _is_costly(drafter) and not self._guarded(drafter, drafter.is_due):
            return False
        n_tokens = len(self._context.prompt) + len(emitted) + n_max
        if _is_reading(drafter) and not self._guarded(drafter, drafter.has_room, n_tokens):
            self._active = [other for other in self._active if other is not drafter]
            return False
        if drafter in self._waiting:
            self._begin(drafter, emitted)
        return drafter in self._active

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        """A member that proposed something is told what became of that."""
        if self._worth is not None and self._took_ms is not None:
            self._worth.learn(self._took_ms, len(draft), len(verdict.path))
        for drafter in tuple(self._active):
            if drafter in self._waiting:
                continue
            proposed = self._proposed.get(id(drafter), draft)
            self._guarded(drafter, drafter.observe, emitted, proposed, verdict)

    def _promises_more(self, drafter: Drafter, best: Draft, n_max: int) -> bool:
        if not _is_costly(drafter) or best.q is not None:
            return False
        plan = self._guarded(drafter, drafter.plan, n_max)
        return plan is not None and plan[1] > self._rate(best)

    def _judged(self, drafter: Drafter, best: Draft, emitted: Tokens, n_max: int) -> Draft | None:
        """The draft by what the member says about what others would draft; None without a word."""
        if not _is_judging(drafter) or best.q is not None or not drafter.is_cheap:
            return None
        for other in tuple(self._knowing):
            seen = self._checked(other, other.candidates, n_max)
            if len(seen):
                args = emitted, seen, self._rate(best), n_max
                draft = self._guarded(drafter, self._wellformed, drafter, drafter.judge, *args)
                if draft is not None and draft.q is None:
                    self._proposed[id(drafter)] = draft
                    return self._cut(drafter, draft)
        return None

    def _better(self, drafter: Drafter, best: Draft, emitted: Tokens, n_max: int) -> Draft:
        draft = self._checked(drafter, drafter.propose, emitted, n_max)
        if _is_extending(drafter) and drafter in self._active:
            self._knowing.append(drafter)
        if not len(draft):
            return best
        self._proposed[id(drafter)] = draft
        if draft.q is not None:
            # Drawn already: to prefer another draft now would bias the law.
            return draft
        if self._extends and _is_costly(drafter) and draft.is_chain:
            for other in tuple(self._knowing):
                extended = self._checked(other, other.extend, emitted, draft, n_max)
                best = max(best, extended, key=self._rate)
        draft = self._cut(drafter, draft)
        return max(best, draft, key=self._rate) if len(best) else draft

    def _rate(self, draft: Draft) -> float:
        """Expected tokens per millisecond of the pass."""
        likely = path_probs(draft)
        expected = sum(likely)
        ms = self._curve.chain_ms(len(draft), expected, likely[-1] if likely else 1.0)
        return (1.0 + expected) / ms

    def _checked(self, drafter: Drafter, ask: Callable[..., Draft], *args: Any) -> Draft:
        return self._guarded(drafter, self._wellformed, drafter, ask, *args) or NO_DRAFT

    def _wellformed(
        self, drafter: Drafter, ask: Callable[..., Draft | None], *args: Any
    ) -> Draft | None:
        """What `ask` drafts, None where that is malformed; the last argument is how much it may."""
        draft = ask(*args)
        if draft is not None and not wellformed(draft, self._n_vocab, args[-1]):
            log.warning("the drafter %s returned a malformed draft", drafter.name)
            return None
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
        except Exception as e:
            if isinstance(e, CancelledError) and self._interrupted():
                raise
            self._leave_out(drafter)
            return None

    def _leave_out(self, drafter: Drafter) -> None:
        # Not `exception`: a traceback may carry source text in its values.
        log.warning("the drafter %s failed and is left out of this request", drafter.name)
        if drafter in self._active:
            self._active.remove(drafter)
        self._knowing = [other for other in self._knowing if other is not drafter]


def _is_costly(drafter: Drafter) -> TypeGuard[CostlyDrafter]:
    return hasattr(drafter, "plan")


def _is_judging(drafter: Drafter) -> TypeGuard[JudgingDrafter]:
    return hasattr(drafter, "judge")


def _is_reading(drafter: Drafter) -> TypeGuard[ReadingDrafter]:
    return hasattr(drafter, "interrupted")


def _is_native(drafter: Drafter) -> TypeGuard[NativeDrafter]:
    return hasattr(drafter, "alone")


def _is_extending(drafter: Drafter) -> TypeGuard[ExtendingDrafter]:
    return hasattr(drafter, "extend")
