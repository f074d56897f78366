"""A draft model as a drafter, for places where nothing in the workspace matches.

Its drafts are as long as its recent acceptance rate and both cost curves make pay, and often empty.
Most requests get greedy drafts, which end where the draft model's own probability is low. Sampled
requests without a fixed seed get true samples with their distributions, of a length fixed before
the draw, for rejection sampling to verify (Leviathan et al. 2023, Chen et al. 2023).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from codespec.cost.cost_curve import FLAT, CostCurve, best_width
from codespec.drafters.base import Drafter, Plan, Traits
from codespec.drafters.confidence import Confidence
from codespec.drafters.draft_model import DRAFT_MODEL, DraftModel
from codespec.types import ANY_PASS, NO_DRAFT, Context, Draft, PassState, Tokens, Verdict
from codespec.verify.tree import followed

_START_RATE = 0.5
_RATE_WEIGHT = 0.05
# Without drafts there is no acceptance rate to learn, so a drafter that switched itself off keeps
# making trials: not before so many passes, and in this share of the time. It never gives up, as the
# rate may differ in the next file.
_RETRY_AFTER, _TRIAL_SHARE = 32, 0.01
# Passes before a drafter with an empty plan is asked again: until then costs hardly change. They
# double each time, as a plan takes as long as the lookups of several passes.
_REST, _LONGEST_REST = 16, 256
# A prefill must be repaid within so many drafts: suggestions are short.
_REPAID_IN = 8

# Length of the draft whose forecast decides if a prompt is prefilled ahead.
_AHEAD = 8

# A draft below this share of the usual acceptance rate may end before its planned width.
_DOUBTFUL = 0.5
# Weight of a timing in the cost of a drafted token, after a mean of the first ones.
_COST_WEIGHT = 0.1
# Largest overhead of a drafted token, in target passes, at first: more was an interruption.
_MOST_MORE = 0.5


class ModelDrafter(Drafter):
    """`Drafter` over a draft model with its own KV cache.

    curve, draft_curve: cost of the target's and of the draft model's passes, in milliseconds;
        without
    the latter drafting counts as free.
    """

    name = "model"
    traits = Traits(takes_time=True, reads=True)

    def __init__(
        self,
        model: DraftModel,
        curve: CostCurve = FLAT,
        draft_curve: CostCurve | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._model = model
        self._curve = curve
        self._draft_curve = draft_curve
        self._clock = clock
        self._interrupted: Callable[[], bool] = lambda: False
        self._confidence = Confidence()
        self._rate = _START_RATE
        self._n_idle = 0
        self._n_rest, self._next_rest = 0, _REST
        self._n_prompt = -1  # tokens of the target; -1: before the first request
        self._drafted: list[float] = []  # the draft model's probabilities of its last draft
        self._more_ms = 0.0  # what a drafted token takes beyond a pass over one token
        self._n_timed = 0
        self._planned = Plan(0, 0.0)
        self._planned_by: npt.NDArray[np.float64] | None = None
        self._planned_for: tuple[bool, tuple[int, float, float, float]] | None = None

    def begin(self, context: Context) -> None:
        self._model.begin(context)
        self._n_prompt = len(context.prompt)
        self._drafted = []

    def is_due(self) -> bool:
        """See `Drafter.is_due`. Costs and acceptance rates change slowly: after an empty plan the
        drafter rests for some passes."""
        if self._n_rest:
            self.rested(1)
            return False
        return True

    def watch_interrupts(self, interrupted: Callable[[], bool]) -> None:
        self._interrupted = interrupted

    def n_rest(self) -> int:
        return self._n_rest

    def rested(self, n_passes: int) -> None:
        """See `Drafter.rested`."""
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
        start, is_read = self._clock(), self._model.n_unread <= 1
        self._model.catch_up(emitted, self._interrupted)
        if not is_read:  # what reading a prompt takes is known apart
            start = self._clock()
        is_sampling = self._model.is_sampling
        draft = self._sampled(width) if is_sampling else self._greedy(state, width, n_max)
        self._learn_cost((self._clock() - start) * 1e3 / max(1, len(draft)))
        return draft

    def wants_prompt(self, context: Context) -> bool:
        self.begin(context)
        if not self.has_room(self._n_prompt + _AHEAD):
            return False
        return self._plan(ANY_PASS, _AHEAD, self._rate, self._token_ms()).n_tokens > 0

    def has_room(self, n_tokens: int) -> bool:
        """True if the draft model's own context window has room for `n_tokens` target tokens."""
        return self._model.fits(n_tokens)

    @property
    def n_cached(self) -> int:
        """Number of tokens in the draft model's KV cache."""
        return self._model.n_cached

    def read_ahead(self, context: Context, cancelled: Callable[[], bool]) -> None:
        """Prefill a prompt ahead, see `Drafter.read_ahead`. Raises: CancelledError."""
        self.begin(context)
        self._model.read(cancelled)
        self._n_rest, self._next_rest = 0, _REST  # the plan changes without the cost of a prefill

    def _may_try(self) -> bool:
        """True if it is time for a trial, which may have to prefill the prompt first."""
        self._n_idle += 1
        idle_ms = self._n_idle * self._curve.pass_ms(1)
        trial_ms = self._reading_ms() + self._token_ms()
        if self._n_idle < _RETRY_AFTER or trial_ms > _TRIAL_SHARE * idle_ms:
            return False
        self._n_idle = 0
        return True

    def _reading_ms(self) -> float:
        """Milliseconds to prefill what the KV cache lacks of the prompt."""
        n_new = self._model.n_unread
        if n_new <= 1 or self._draft_curve is None:
            return 0.0
        return self._draft_curve.pass_ms(n_new)

    def plan(self, state: PassState, n_max: int) -> Plan:
        # Called before most passes, and the arguments of most are those of the last.
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
        if self._model.is_sampling or n_max <= 0:
            return Plan(width, rate)
        # Only greedy drafts may be dropped after drafting: see `accept.accept_sampled`.
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
        """Draft greedily for as long as another token, at the usual acceptance rate, is expected to
        raise tokens per millisecond above the best prefix so far. `width` tokens are drafted at
        least, unless their acceptance becomes doubtful."""
        cost, token_ms = self._curve.first(state, n_max + 1).tolist(), self._token_ms()
        drafted: list[int] = []
        probs: list[float] = []
        expected, path = [1.0], 1.0
        for k in range(1, n_max + 1):
            # A token's probability is not known before it is drafted: take the usual rate.
            more = (expected[-1] + path * self._rate) / (cost[k] + k * token_ms)
            spent = (k - 1) * token_ms
            enough = max(e / (ms + spent) for e, ms in zip(expected, cost, strict=False))
            if more <= enough and (k > width or path < _DOUBTFUL * self._rate):
                break
            word = self._model.next()
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
        """P(accepted) of a token to which the draft model gives the probability `own`."""
        return self._confidence.accepted(own)

    def _sampled(self, width: int) -> Draft:
        drafted, distributions = self._model.draw(width)
        if not drafted:
            return NO_DRAFT
        probs = np.full(len(drafted), self._rate, np.float32)
        return Draft.chain(drafted, DRAFT_MODEL, probs, np.stack(distributions))

    def _learn_cost(self, token_ms: float) -> None:
        """Learn the overhead of a drafted token: catching up with the target's output, and our
        code."""
        if self._draft_curve is not None:
            more = max(0.0, token_ms - self._draft_curve.pass_ms(1))
            # A pass that was interrupted for long teaches little.
            most = max(4 * self._draft_curve.pass_ms(1), _MOST_MORE * self._curve.pass_ms(1))
            self._n_timed += 1
            weight = max(_COST_WEIGHT, 1 / self._n_timed)
            self._more_ms += weight * (min(more, most + 2 * self._more_ms) - self._more_ms)

    def _token_ms(self) -> float:
        """Milliseconds to draft one token, overhead included."""
        return self._draft_curve.pass_ms(1) + self._more_ms if self._draft_curve else 0.0
