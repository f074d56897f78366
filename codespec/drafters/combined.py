"""Several drafters as one.

The members are asked in order; the draft with the most expected tokens per millisecond of its pass
is kept. A member that takes time to draft (`Traits.takes_time`) forecasts its draft first (`plan`),
and is asked only where that beats the best draft so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from codespec.cost.cost_curve import FLAT, CostCurve, best_width
from codespec.cost.padding import padded_width
from codespec.drafters.base import Drafter
from codespec.drafters.drafting_gate import DraftingGate
from codespec.drafters.guard import Guarded, GuardPolicy
from codespec.native import Drafting, Stretch
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
from codespec.verify.tree import limit_leaves, path_probs, prefix

MOST_PASSES = 256
"""Upper bound on consecutive native passes; arbitrary."""


class CombinedDrafter(Drafter):
    """`Drafter` over its members. Its counters count verified drafts alone.

    n_vocab:    size of the target's vocabulary; drafts with ids at or above it are refused.
    max_leaves: most branches of a draft tree, see `Capabilities.max_leaves`.
    curve:      cost of the target's passes.
    gate:       decides before which passes the members are asked; None: before each.
    pads:       True to pad passes to one width, see `padding.py`.
    policy:     treatment of a member that fails.
    """

    name = "combined"

    def __init__(
        self,
        drafters: Sequence[Drafter],
        n_vocab: int,
        max_leaves: int = 1,
        curve: CostCurve = FLAT,
        gate: DraftingGate | None = None,
        pads: bool = False,
        policy: GuardPolicy = GuardPolicy.LEAVE_OUT,
    ) -> None:
        self._members = [Guarded(drafter, n_vocab, policy) for drafter in drafters]
        self._max_leaves = max_leaves
        self._curve = curve
        self._gate = gate
        # Padding pays for lookups, which draft for most passes.
        self._pads = pads and any(member.traits.is_native for member in self._members)
        self._width = 1
        self._context: Context | None = None
        self._begin_ms = 0.0  # spent in `begin`, until the next proposal is charged with it
        # Time of the last proposal, without members that take time; None: nobody was asked.
        self._took_ms: float | None = None
        self._costly_ms = 0.0  # of the members that take time
        self._is_costly = False  # the last draft is one of theirs
        self._replaced: Guarded | None = None  # the member that native code drafts for

    def begin(self, context: Context, interrupted: Callable[[], bool] = lambda: False) -> None:
        """Start a request. Where the gate is shut, members begin when they are first asked: to
        collect their sources takes as long as several proposals. `propose` raises CancelledError
        where `interrupted` returns True while a member prefills."""
        for member in self._members:
            member.start(interrupted)
            member.is_active = len(context.old) > 0 or not member.traits.rewrites
        self._took_ms = None  # else a request that was left off is charged with another's
        self._context = context
        is_open = self._gate is None or self._gate.is_open
        self._width = padded_width(self._curve) if self._pads else 1
        if is_open:
            start = time.perf_counter()
            for member in self._members:
                if member.is_active and not member.traits.takes_time:
                    member.begin(context, NO_TOKENS)
            self._begin_ms = (time.perf_counter() - start) * 1e3

    def readers(self, context: Context) -> list[Guarded]:
        """Members that should prefill the prompt ahead, see `Drafter.wants_prompt`."""
        reading = [member for member in self._members if member.traits.reads]
        return [member for member in reading if member.wants_prompt(context)]

    def state(self, emitted: Tokens, n_tail: int, after_single: bool) -> PassState:
        """State of the pass that is about to be made, see `PassState`."""
        is_open = self._gate is None or self._gate.is_open
        return PassState(emitted, n_tail, self._width if is_open else 1, after_single)

    def native_drafting(self, state: PassState, n_max: int) -> tuple[Drafting | None, int]:
        """Inputs for a stretch of passes in native code.

        Returns: (what native code drafts from, None for plain decoding; the number of passes before
        which no member has to be asked, 0 where one has to before the next).
        """
        self._replaced = None
        if self._gate is not None and self._gate.n_rest > 0:
            return None, self._gate.n_rest
        drafting, n_passes = None, MOST_PASSES
        for member in self._members:
            if not member.is_active:
                continue
            if member.traits.takes_time:
                n_passes = min(n_passes, member.n_rest())
            elif self._replaced is not None or not member.has_begun:
                return None, 0
            else:
                drafting = member.native(state, n_max) if member.traits.is_native else None
                if drafting is None:
                    return None, 0
                self._replaced = member
        return drafting, n_passes

    def observe_stretch(self, emitted: Sequence[int], stretch: Stretch) -> None:
        """Learn from a native stretch with the result of `native_drafting`. emitted: whole
        output."""
        n_passes = len(stretch.widths)
        for source, n_drafted, n_accepted in stretch.by_source:
            self.counters.add(Source.of(source), n_drafted, n_accepted)
        if self._gate is not None and self._gate.n_rest:
            self._gate.rested(n_passes)
        elif self._gate is not None and self._replaced is not None:
            took_ms = list(stretch.draft_ms)
            if took_ms:
                took_ms[0] += self._begin_ms
                self._begin_ms = 0.0
            self._gate.learn_all(took_ms, stretch.n_drafted, stretch.n_accepted, self._width)
        for member in self._members:
            if member.traits.takes_time and member.n_rest():
                member.rested(n_passes)
            if member is not self._replaced and member.has_begun:
                told = np.array(emitted, np.int32), NO_DRAFT, Verdict(tuple(stretch.tokens), ())
                member.observe(*told)
        if stretch.is_damaged and self._replaced is not None:
            self._replaced.leave_out()

    def propose(self, state: PassState, n_max: int) -> Draft:
        self._took_ms = None
        if n_max <= 0 or not any(member.is_active for member in self._members):
            return NO_DRAFT
        if self._gate is not None and not self._gate.admits():
            return NO_DRAFT
        start = time.perf_counter()
        draft = self._ask(state, n_max)
        self._took_ms = self._begin_ms + (time.perf_counter() - start) * 1e3 - self._costly_ms
        self._begin_ms = 0.0
        return draft

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        if len(draft):
            self.counters.count(draft, verdict.path)
        if self._gate is not None and self._took_ms is not None:
            n_drafted, n_right = (0, 0) if self._is_costly else (len(draft), len(verdict.path))
            self._gate.learn(self._took_ms, n_drafted, n_right, self._width)
        for member in self._members:
            member.observe(emitted, draft, verdict)

    def ended(self, n_emitted: int) -> None:
        for member in self._members:
            member.ended(n_emitted)

    def _ask(self, state: PassState, n_max: int) -> Draft:
        best = NO_DRAFT
        self._costly_ms, self._is_costly = 0.0, False
        for member in self._members:
            start = time.perf_counter()
            best = self._asked(member, best, state, n_max)
            if member.traits.takes_time:
                # The gate is charged with the others alone: these have `plan`.
                self._costly_ms += (time.perf_counter() - start) * 1e3
        return best

    def _asked(self, member: Guarded, best: Draft, state: PassState, n_max: int) -> Draft:
        """The better draft: `best`, or this member's proposal if it may and should be asked."""
        if not self._is_ready(member, state, n_max):
            return best
        if not len(best) or self._promises_more(member, best, state, n_max):
            better = self._better(member, best, state, n_max)
            self._is_costly |= member.traits.takes_time and better is not best
            return better
        return best

    def _is_ready(self, member: Guarded, state: PassState, n_max: int) -> bool:
        """True if the member may be asked. Begins its request where that has not happened yet."""
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
        if best.q is not None:
            return False
        if not member.traits.takes_time:
            return True
        return member.plan(state, n_max).rate > self._rate(best, state)

    def _better(self, member: Guarded, best: Draft, state: PassState, n_max: int) -> Draft:
        draft = member.propose(state, n_max)
        if not len(draft):
            return best
        if draft.q is not None:
            # Drawn already: to prefer another draft now would bias the distribution.
            return draft
        draft = self._cut(member, draft, state)
        if not len(best):
            return draft
        return max(best, draft, key=lambda draft: self._rate(draft, state))

    def _rate(self, draft: Draft, state: PassState) -> float:
        """Expected tokens per millisecond of the pass that verifies this draft."""
        likely = path_probs(draft)
        expected = sum(likely)
        whole = likely[-1] if likely else 1.0
        return (1.0 + expected) / self._curve.chain_ms(state, len(draft), expected, whole)

    def _cut(self, member: Guarded, draft: Draft, state: PassState) -> Draft:
        """The part of the draft that pays for its pass. Deterministic drafts only: to cut a sampled
        one after the draw would bias the distribution."""
        if not draft.is_chain:
            return limit_leaves(draft, self._max_leaves)
        if member.traits.cuts:
            return draft
        width, _ = best_width(draft.probs.tolist(), self._curve, state)
        return prefix(draft, width)
