"""The small model as a drafter: where nothing in the workspace matches, it guesses.

It drafts only as deep as its recent hit rate and both cost curves make worth while, and often not
at all. Requests get greedy drafts, which end where the model itself is in doubt. Sampled requests
that may have any seed get true samples with their distributions, of a length fixed before the
draw, for rejection sampling to verify.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from codespec.drafters.base import Drafter, Plan, Traits
from codespec.drafters.confidence import Confidence
from codespec.drafters.cost import FLAT, CostCurve, best_width
from codespec.drafters.small import DRAFT_MODEL, SmallModel
from codespec.tree import followed
from codespec.types import ANY_PASS, NO_DRAFT, Context, Draft, PassState, Tokens, Verdict

_START_RATE = 0.5
_RATE_WEIGHT = 0.05
# Without drafts there is nothing to learn from, so a drafter that has switched itself off tries
# again: not before so many passes, and in this share of the time. It goes on at that, as what was
# of no use here may be of use in the next file.
_RETRY_AFTER, _TRIAL_SHARE = 32, 0.01
# Passes before one that would draft nothing is asked again: until then what passes cost is known no
# better. Twice as many each time, as to ask takes as long as what lookups do for some passes.
_REST, _LONGEST_REST = 16, 256
# Reading a prompt must be repaid by so many drafts: suggestions are short.
_REPAID_IN = 8

# Tokens of a draft for which it may be worth reading a prompt ahead.
_AHEAD = 8

# Of the usual chance of a token: a draft that is less likely is no longer sure to reach its width.
_DOUBTFUL = 0.5
# How fast the cost of a drafted token follows what drafting takes, after a mean of the first ones.
_COST_WEIGHT = 0.1
# Of a pass of the target, at first: what comes on top of a pass and is more was an interruption.
_MOST_MORE = 0.5


class ModelDrafter(Drafter):
    """`Drafter` over a second, smaller model with a KV cache of its own.

    curve, own_curve: milliseconds of the target's and of the small model's passes.
    """

    name = "model"
    traits = Traits(takes_time=True, reads=True)

    def __init__(
        self,
        small: SmallModel,
        curve: CostCurve = FLAT,
        own_curve: CostCurve | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._small = small
        self._curve = curve
        self._own_curve = own_curve
        self._clock = clock
        self._interrupted: Callable[[], bool] = lambda: False
        self._confidence = Confidence()
        self._rate = _START_RATE
        self._n_idle = 0
        self._n_rest, self._next_rest = 0, _REST
        self._n_prompt = -1  # tokens of the target; -1: nothing has begun
        self._drafted: list[float] = []  # own probabilities of the last greedy draft
        self._more_ms = 0.0  # what a drafted token takes beyond a pass over one token
        self._n_timed = 0
        self._planned = Plan(0, 0.0)
        self._planned_by: npt.NDArray[np.float64] | None = None
        self._planned_for: tuple[bool, tuple[int, float, float, float]] | None = None

    def begin(self, context: Context) -> None:
        self._small.begin(context)
        self._n_prompt = len(context.prompt)
        self._drafted = []

    def is_due(self) -> bool:
        """Asked once before each pass. What is known of costs and hits changes slowly: where
        nothing was worth drafting, nothing will be before the next passes."""
        if self._n_rest:
            self.rested(1)
            return False
        return True

    def heed(self, interrupted: Callable[[], bool]) -> None:
        self._interrupted = interrupted

    def n_rest(self) -> int:
        return self._n_rest

    def rested(self, n_passes: int) -> None:
        """So many of them have passed."""
        self._n_rest = max(0, self._n_rest - n_passes)
        self._n_idle += n_passes

    def propose(self, state: PassState, n_max: int) -> Draft:
        self._drafted = []
        if self._n_prompt < 0:
            return NO_DRAFT
        emitted = state.emitted
        width, _ = self.plan(state, n_max)
        if not width and (n_max <= 0 or not self._may_try()):
            return NO_DRAFT
        width = max(width, 1)
        if not self.has_room(self._n_prompt + len(emitted) + n_max):
            return NO_DRAFT
        start, is_read = self._clock(), self._small.n_unread <= 1
        self._small.catch_up(emitted, self._interrupted)
        if not is_read:  # what reading a prompt takes is known apart
            start = self._clock()
        is_sampling = self._small.is_sampling
        draft = self._sampled(width) if is_sampling else self._greedy(state, width, n_max)
        self._learn_cost((self._clock() - start) * 1e3 / max(1, len(draft)))
        return draft

    def wants_prompt(self, context: Context) -> bool:
        self.begin(context)
        if not self.has_room(self._n_prompt + _AHEAD):
            return False
        return self._plan(ANY_PASS, _AHEAD, self._rate, self._token_ms()).n_tokens > 0

    def has_room(self, n_tokens: int) -> bool:
        """True if its context, which may be shorter than the target's, has room for so many."""
        return self._small.fits(n_tokens)

    @property
    def n_cached(self) -> int:
        """Tokens in its cache."""
        return self._small.n_cached

    def read_ahead(self, context: Context, cancelled: Callable[[], bool]) -> None:
        """Have a prompt in the cache before anybody drafts from it. What is read when `cancelled`
        turns true is kept. Raises: CancelledError."""
        self.begin(context)
        self._small.read(cancelled)
        self._n_rest, self._next_rest = 0, _REST  # what it would cost to begin is known anew

    def _may_try(self) -> bool:
        """True if it is time for a trial, which may have to read the prompt first."""
        self._n_idle += 1
        idle_ms = self._n_idle * self._curve.pass_ms(1)
        trial_ms = self._reading_ms() + self._token_ms()
        if self._n_idle < _RETRY_AFTER or trial_ms > _TRIAL_SHARE * idle_ms:
            return False
        self._n_idle = 0
        return True

    def _reading_ms(self) -> float:
        """Milliseconds to read what the cache lacks of the prompt."""
        n_new = self._small.n_unread
        if n_new <= 1 or self._own_curve is None:
            return 0.0
        return self._own_curve.pass_ms(n_new)

    def plan(self, state: PassState, n_max: int) -> Plan:
        # Asked before most passes, and most have nothing new.
        costs = self._curve.either_first(state, n_max + 1)
        asked = (n_max, self._rate, self._token_ms(), self._reading_ms() / _REPAID_IN)
        known_for = (state.after_single, asked)
        if costs is not self._planned_by or known_for != self._planned_for:
            self._planned_by, self._planned_for = costs, known_for
            self._planned = self._plan(state, *asked)
        if self._planned.n_tokens:
            self._n_rest, self._next_rest = 0, _REST
        elif not self._n_rest:
            self._n_rest = self._next_rest
            self._next_rest = min(2 * self._next_rest, _LONGEST_REST)
        return self._planned

    def _plan(
        self, state: PassState, n_max: int, usual: float, token_ms: float, begin_ms: float = 0.0
    ) -> Plan:
        width, rate = best_width([usual] * n_max, self._curve, state, token_ms, begin_ms)
        if self._small.is_sampling or n_max <= 0:
            return Plan(width, rate)
        # Only greedy drafts may be dropped once they are known.
        costs = self._curve.first(state, n_max + 1)
        plain = 1 / float(costs[0])
        rate = self._confidence.rate(usual, costs, token_ms, begin_ms)
        return Plan(max(width, 1), rate) if rate > plain else Plan(0, plain)

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        if not len(draft) or draft.sources[0] != DRAFT_MODEL:
            return
        path = verdict.path if draft.q is not None else followed(draft, verdict.emitted)
        n = len(path)
        for i in range(min(n + 1, len(draft), len(verdict.emitted))):
            self._rate += _RATE_WEIGHT * ((i < n) - self._rate)
            if i < len(self._drafted):
                self._confidence.learn(self._drafted[i], i < n)
            self._planned_by = None

    def _greedy(self, state: PassState, width: int, n_max: int) -> Draft:
        """Goes on for as long as one more token, likely as the last ones were, is expected to bring
        more tokens per millisecond than the best of what is there; until one is doubtful, `width`
        tokens are drafted at least."""
        cost, token_ms = self._curve.first(state, n_max + 1).tolist(), self._token_ms()
        drafted: list[int] = []
        probs: list[float] = []
        expected, path = [1.0], 1.0
        for k in range(1, n_max + 1):
            # The next token's chance is not known before it is drafted: take the usual one.
            more = (expected[-1] + path * self._rate) / (cost[k] + k * token_ms)
            spent = (k - 1) * token_ms
            enough = max(e / (ms + spent) for e, ms in zip(expected, cost, strict=False))
            if more <= enough and (k > width or path < _DOUBTFUL * self._rate):
                break
            word = self._small.next()
            if word is None:
                break
            token, own = word
            if k == 1:
                self._confidence.began(own)
            prob = self._accepted(own)
            drafted.append(token)
            probs.append(prob)
            self._drafted.append(own)
            path *= prob
            expected.append(expected[-1] + path)
        return Draft.chain(drafted, DRAFT_MODEL, np.array(probs, np.float32))

    def _accepted(self, own: float) -> float:
        """P(accepted) of a token that the model itself gives this probability."""
        return self._confidence.accepted(own)

    def _sampled(self, width: int) -> Draft:
        drafted, laws = self._small.draw(width)
        if not drafted:
            return NO_DRAFT
        probs = np.full(len(drafted), self._rate, np.float32)
        return Draft.chain(drafted, DRAFT_MODEL, probs, np.stack(laws))

    def _learn_cost(self, token_ms: float) -> None:
        """Catching up with what the target said, and our own work, come on top of the pass."""
        if self._own_curve is not None:
            more = max(0.0, token_ms - self._own_curve.pass_ms(1))
            # A pass that was interrupted for long is no news.
            most = max(4 * self._own_curve.pass_ms(1), _MOST_MORE * self._curve.pass_ms(1))
            self._n_timed += 1
            weight = max(_COST_WEIGHT, 1 / self._n_timed)
            self._more_ms += weight * (min(more, most + 2 * self._more_ms) - self._more_ms)

    def _token_ms(self) -> float:
        """Milliseconds to draft a token."""
        return self._own_curve.pass_ms(1) + self._more_ms if self._own_curve else 0.0
