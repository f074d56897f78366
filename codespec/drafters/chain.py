"""Several drafters as one.

The chain asks its members in order and keeps the draft with the most expected tokens per
millisecond. A member that takes time to ask says first what it expects, and is asked only where
that is more than what is there already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from codespec.drafters.base import Drafter
from codespec.drafters.cost import FLAT, CostCurve, best_width
from codespec.drafters.filler import fill_width
from codespec.drafters.guard import Guarded, Policy
from codespec.drafters.worth import Worth
from codespec.native import Drafting, Stretch
from codespec.tree import limit_leaves, path_probs, prefix
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

MOST_PASSES = 256
"""Upper bound on consecutive native passes; arbitrary."""


class DraftChain(Drafter):
    """`Drafter` over its members. Its counters are those of what was verified.

    n_vocab:    ids at or above it are refused.
    max_leaves: most branches of a tree, see `Capabilities.max_leaves`.
    worth:      says when not to ask the members; None: ask them before each pass.
    fills:      True to fill passes up, see `filler.py`.
    policy:     what becomes of a member that fails.
    """

    name = "chain"

    def __init__(
        self,
        drafters: Sequence[Drafter],
        n_vocab: int,
        max_leaves: int = 1,
        curve: CostCurve = FLAT,
        worth: Worth | None = None,
        fills: bool = False,
        policy: Policy = Policy.LEAVE_OUT,
    ) -> None:
        self._members = [Guarded(drafter, n_vocab, policy) for drafter in drafters]
        self._max_leaves = max_leaves
        self._curve = curve
        self._worth = worth
        # Passes are filled up for lookups, which draft for most of them.
        self._fills = fills and any(member.traits.is_native for member in self._members)
        self._width = 1
        self._context: Context | None = None
        self._begin_ms = 0.0  # to begin, until it is part of an asking
        # To ask for the last draft, without members that take time; None: nobody was asked.
        self._took_ms: float | None = None
        self._dear_ms = 0.0  # to ask those
        self._is_dear = False  # the last draft is one of theirs
        self._stood_in: Guarded | None = None  # by native code

    def begin(self, context: Context, interrupted: Callable[[], bool] = lambda: False) -> None:
        """The members begin when they are first asked, if that is not before the first pass: to
        look for what they may draft from takes as long as some askings. `propose` raises
        CancelledError where `interrupted` turns true while a member reads."""
        for member in self._members:
            member.start(interrupted)
        self._took_ms = None  # of what others drafted since, if the request was left off
        self._context = context
        is_asking = self._worth is None or self._worth.is_asking
        self._width = fill_width(self._curve) if self._fills else 1
        if is_asking:
            start = time.perf_counter()
            for member in self._members:
                if not member.traits.takes_time:
                    member.begin(context, NO_TOKENS)
            self._begin_ms = (time.perf_counter() - start) * 1e3

    def readers(self, context: Context) -> list[Guarded]:
        """Members that should read the prompt ahead, see `Drafter.wants_prompt`."""
        reading = [member for member in self._members if member.traits.reads]
        return [member for member in reading if member.wants_prompt(context)]

    def state(self, emitted: Tokens, n_tail: int, after_single: bool) -> PassState:
        """The pass that is about to be made, see `PassState`."""
        is_asking = self._worth is None or self._worth.is_asking
        return PassState(emitted, n_tail, self._width if is_asking else 1, after_single)

    def standing_in(self, state: PassState, n_max: int) -> tuple[Drafting | None, int]:
        """(what drafts natively, None for nothing; for how many passes to come no member has to be
        asked: 0 where one has to before the next)."""
        self._stood_in = None
        if self._worth is not None and self._worth.n_rest > 0:
            return None, self._worth.n_rest
        drafting, n_passes = None, MOST_PASSES
        for member in self._members:
            if not member.is_active:
                continue
            if member.traits.takes_time:
                n_passes = min(n_passes, member.n_rest())
            elif self._stood_in is not None or not member.has_begun:
                return None, 0
            else:
                drafting = member.native(state, n_max) if member.traits.is_native else None
                if drafting is None:
                    return None, 0
                self._stood_in = member
        return drafting, n_passes

    def went(self, emitted: Sequence[int], stretch: Stretch) -> None:
        """A stretch of passes with what `standing_in` gave is over; emitted: by now."""
        n_passes = len(stretch.widths)
        for source, n_drafted, n_accepted in stretch.by_source:
            self.counters.add(Source.of(source), n_drafted, n_accepted)
        if self._worth is not None and self._worth.n_rest:
            self._worth.rested(n_passes)
        elif self._worth is not None and self._stood_in is not None:
            took_ms = list(stretch.draft_ms)
            if took_ms:
                took_ms[0] += self._begin_ms
                self._begin_ms = 0.0
            self._worth.learn_all(took_ms, stretch.n_drafted, stretch.n_accepted, self._width)
        for member in self._members:
            if member.traits.takes_time and member.n_rest():
                member.rested(n_passes)
            if member is not self._stood_in and member.has_begun:
                told = np.array(emitted, np.int32), NO_DRAFT, Verdict(tuple(stretch.tokens), ())
                member.observe(*told)
        if stretch.is_damaged and self._stood_in is not None:
            self._stood_in.leave_out()

    def propose(self, state: PassState, n_max: int) -> Draft:
        self._took_ms = None
        if n_max <= 0 or not any(member.is_active for member in self._members):
            return NO_DRAFT
        if self._worth is not None and not self._worth.ask():
            return NO_DRAFT
        start = time.perf_counter()
        draft = self._ask(state, n_max)
        self._took_ms = self._begin_ms + (time.perf_counter() - start) * 1e3 - self._dear_ms
        self._begin_ms = 0.0
        return draft

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        if len(draft):
            self.counters.count(draft, verdict.path)
        if self._worth is not None and self._took_ms is not None:
            n_drafted, n_right = (0, 0) if self._is_dear else (len(draft), len(verdict.path))
            self._worth.learn(self._took_ms, n_drafted, n_right, self._width)
        for member in self._members:
            member.observe(emitted, draft, verdict)

    def ended(self, n_emitted: int) -> None:
        for member in self._members:
            member.ended(n_emitted)

    def _ask(self, state: PassState, n_max: int) -> Draft:
        best = NO_DRAFT
        self._dear_ms, self._is_dear = 0.0, False
        for member in self._members:
            start = time.perf_counter()
            best = self._asked(member, best, state, n_max)
            if member.traits.takes_time:
                # They say themselves when to be asked.
                self._dear_ms += (time.perf_counter() - start) * 1e3
        return best

    def _asked(self, member: Guarded, best: Draft, state: PassState, n_max: int) -> Draft:
        """The best draft by now: `best`, or what this member drafts."""
        if not self._is_ready(member, state, n_max):
            return best
        if not len(best) or self._promises_more(member, best, state, n_max):
            better = self._better(member, best, state, n_max)
            self._is_dear |= member.traits.takes_time and better is not best
            return better
        return best

    def _is_ready(self, member: Guarded, state: PassState, n_max: int) -> bool:
        """True if it may be asked; it begins now if it has not."""
        assert self._context is not None
        if not member.is_active or (member.traits.takes_time and not member.is_due()):
            return False
        n_tokens = len(self._context.prompt) + len(state.emitted) + n_max
        if member.traits.reads and not member.has_room(n_tokens):
            member.is_active = False
            return False
        if not member.has_begun:
            member.begin(self._context, state.emitted)
        return member.is_active

    def _promises_more(self, member: Guarded, best: Draft, state: PassState, n_max: int) -> bool:
        if not member.traits.takes_time or best.q is not None:
            return False
        return member.plan(state, n_max).rate > self._rate(best, state)

    def _better(self, member: Guarded, best: Draft, state: PassState, n_max: int) -> Draft:
        draft = member.propose(state, n_max)
        if not len(draft):
            return best
        if draft.q is not None:
            # Drawn already: to prefer another draft now would bias the law.
            return draft
        draft = self._cut(member, draft, state)
        if not len(best):
            return draft
        return max(best, draft, key=lambda draft: self._rate(draft, state))

    def _rate(self, draft: Draft, state: PassState) -> float:
        """Expected tokens per millisecond of the pass."""
        likely = path_probs(draft)
        expected = sum(likely)
        whole = likely[-1] if likely else 1.0
        return (1.0 + expected) / self._curve.chain_ms(state, len(draft), expected, whole)

    def _cut(self, member: Guarded, draft: Draft, state: PassState) -> Draft:
        """Only what pays. Sampled drafts stay whole: to cut them after the draw biases the law."""
        if not draft.is_chain:
            return limit_leaves(draft, self._max_leaves)
        if member.traits.cuts:
            return draft
        width, _ = best_width(draft.probs.tolist(), self._curve, state)
        return prefix(draft, width)
