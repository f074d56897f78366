"""Drafters are not trusted: every call to one goes through its guard.

A drafter that raises is left out for the rest of the request; a malformed draft is dropped. Nothing
a drafter does can reach the output. Under tests its exceptions are raised instead.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from codespec.backends.base import CancelledError
from codespec.drafters.base import Drafter, Plan
from codespec.native import Drafting
from codespec.types import NO_DRAFT, Context, Draft, PassState, Tokens, Verdict
from codespec.verify.accept import wellformed
from codespec.verify.tree import followed

log = logging.getLogger(__name__)

T = TypeVar("T")


class GuardPolicy(Enum):
    """Treatment of a drafter that fails."""

    LEAVE_OUT = "it is left out of the request, or what it said is ignored"
    RAISE = "its exception is raised, for tests"


class MalformedError(ValueError):
    """A drafter returned something that its contract does not allow."""


class Guarded:
    """A drafter behind its guard, for one request after the other. Methods are those of `Drafter`;
    where the drafter fails they return a neutral value.

    n_vocab: size of the target's vocabulary; drafts with ids at or above it are refused.
    """

    def __init__(
        self, drafter: Drafter, n_vocab: int, policy: GuardPolicy = GuardPolicy.LEAVE_OUT
    ) -> None:
        self._drafter = drafter
        self._n_vocab = n_vocab
        self._policy = policy
        self._interrupted: Callable[[], bool] = lambda: False
        self._proposed: Draft | None = None
        self.traits = drafter.traits
        self.is_active = True
        """False once the drafter was left out of the request."""
        self.has_begun = False

    @property
    def name(self) -> str:
        return self._drafter.name

    def start(self, interrupted: Callable[[], bool]) -> None:
        """Start a request; the drafter's own `begin` is called before its first proposal."""
        self._interrupted = interrupted
        self.is_active, self.has_begun = True, False
        self._proposed = None
        if self.traits.reads:
            self._call(self._drafter.watch_interrupts, interrupted)

    def begin(self, context: Context, emitted: Tokens) -> None:
        """Call the drafter's `begin`, then tell it of `emitted`, the output of the request so
        far."""
        self.has_begun = True
        self._call(self._drafter.begin, context)
        if len(emitted):
            said = Verdict(tuple(emitted.tolist()), ())
            self._call(self._drafter.observe, emitted, NO_DRAFT, said)

    def propose(self, state: PassState, n_max: int) -> Draft:
        self._proposed = self._call(self._wellformed, state, n_max) or None
        return self._proposed or NO_DRAFT

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        """Pass on a verdict: with the drafter's own proposal where it made one, else with
        `draft`."""
        if not self.has_begun or not self.is_active:
            return
        proposed, self._proposed = self._proposed, None
        if proposed is not None:
            # A sampled draft that is refused may hold the very token that is drawn in its place.
            is_known = proposed is draft or proposed.q is not None
            path = verdict.path if is_known else followed(proposed, verdict.emitted)
            self._drafter.counters.count(proposed, path)
        self._call(self._drafter.observe, emitted, draft if proposed is None else proposed, verdict)

    def ended(self, n_emitted: int) -> None:
        if self.has_begun:
            self._call(self._drafter.ended, n_emitted)

    def is_due(self) -> bool:
        return bool(self._call(self._drafter.is_due))

    def n_rest(self) -> int:
        n = self._call(self._drafter.n_rest)
        return n if isinstance(n, int) and n > 0 else 0

    def rested(self, n_passes: int) -> None:
        self._call(self._drafter.rested, n_passes)

    def plan(self, state: PassState, n_max: int) -> Plan:
        plan = self._call(self._drafter.plan, state, n_max)
        if isinstance(plan, Plan) and isinstance(plan.rate, float) and not math.isnan(plan.rate):
            return plan
        return Plan(0, 0.0)

    def has_room(self, n_tokens: int) -> bool:
        return bool(self._call(self._drafter.has_room, n_tokens))

    def wants_prompt(self, context: Context) -> bool:
        return bool(self._call(self._drafter.wants_prompt, context))

    @property
    def n_cached(self) -> int:
        n = self._call(lambda: self._drafter.n_cached)
        return n if isinstance(n, int) else 0

    def read_ahead(self, context: Context, cancelled: Callable[[], bool]) -> None:
        """See `Drafter.read_ahead`. Raises: CancelledError."""
        self._interrupted = cancelled
        self._call(self._drafter.read_ahead, context, cancelled)

    def native(self, state: PassState, n_max: int) -> Drafting | None:
        found = self._call(self._drafter.native, state, n_max)
        return found if isinstance(found, Drafting) else None

    def leave_out(self) -> None:
        """Leave the drafter out of the rest of the request."""
        # Not `exception`: a traceback may carry source text in its values.
        log.warning("the drafter %s failed and is left out of this request", self.name)
        self.is_active = False

    def _wellformed(self, state: PassState, n_max: int) -> Draft | None:
        """The drafter's proposal; None where it is malformed."""
        draft = self._drafter.propose(state, n_max)
        if wellformed(draft, self._n_vocab, n_max):
            return draft
        if self._policy is GuardPolicy.RAISE:
            raise MalformedError(f"the drafter {self.name} returned {draft}")
        log.warning("the drafter %s returned a malformed draft", self.name)
        return None

    def _call(self, call: Callable[..., T], *args: Any) -> T | None:
        if not self.is_active:
            return None
        try:
            return call(*args)
        except Exception as e:
            if isinstance(e, CancelledError) and self._interrupted():
                raise
            if self._policy is GuardPolicy.RAISE:
                raise
            self.leave_out()
            return None
