"""Decoding of one output, step after step, with turns, deadlines and cancelling around.

With no drafter this is plain decoding, and with any drafter it emits the same tokens: only
`verify.accept` decides what is emitted, from the target's distribution alone, or native code by the
simplest of its rules (`stretch.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from codespec.backends.base import CancelledError, Target
from codespec.backends.kv import CommittedTokens
from codespec.cost.padding import padded
from codespec.drafters.base import Counters
from codespec.drafters.combined import CombinedDrafter
from codespec.engine.output import Output, OutputLimits, Stop, never_stop
from codespec.engine.step import StepResult, step
from codespec.engine.stretch import Stretches
from codespec.engine.turns import Turns, in_one_turn
from codespec.requests import Paused
from codespec.types import NO_DRAFT, Context, Finish, PassState, Tokens, Trace, Verdict
from codespec.verify.sampling import Sampler

Observe = Callable[[Sequence[int], Sequence[float]], None]
"""Called with the width in tokens and the time in milliseconds of each pass."""


class Completer:
    """Decodes with one target and one drafter. One thread only."""

    def __init__(
        self,
        target: Target,
        drafter: CombinedDrafter,
        clock: Callable[[], float] = time.perf_counter,
        on_passes: Observe = lambda n_tokens, ms: None,
        stretches: Stretches | None = None,
    ) -> None:
        self._target = target
        self._drafter = drafter
        self._clock = clock
        self._on_passes = on_passes
        self._stretches = stretches

    def run(
        self,
        context: Context,
        sampler: Sampler,
        limits: OutputLimits,
        stop: Stop = never_stop,
        cancelled: Callable[[], bool] = lambda: False,
        trace: Trace | None = None,
    ) -> tuple[list[int], Finish]:
        """(emitted tokens, without the end-of-generation token; the cause of the end)."""
        return in_one_turn(self.turns(context, sampler, limits, stop, cancelled, trace=trace))

    def turns(
        self,
        context: Context,
        sampler: Sampler,
        limits: OutputLimits,
        stop: Stop = never_stop,
        cancelled: Callable[[], bool] = lambda: False,
        paused: Paused = lambda has_progressed: False,
        trace: Trace | None = None,
        log_probs: list[float] | None = None,
    ) -> Turns[tuple[list[int], Finish]]:
        """`run` that yields as soon as `paused` turns true. Until it is resumed, others may use the
        target and the drafters: this costs the KV entries that were evicted meanwhile, and changes
        no output. log_probs: filled in with the log-probability of each token; None: not needed."""
        target, clock = self._target, self._clock
        trace = Trace() if trace is None else trace
        started = clock()
        output = Output(sampler, limits, target.info.eog, stop, log_probs=log_probs)
        run = _Run(context, output, target.info.n_ctx)
        self._drafter.counters = Counters()  # the counters of this request
        trace.n_prompt_tokens = len(context.prompt)
        is_ready, n_start = False, -1  # n_start: cached tokens when the turn began

        def late() -> bool:
            return cancelled() or clock() >= limits.deadline

        def left_off() -> bool:
            """True to interrupt a native stretch, which has made progress."""
            return late() or paused(True)

        def interrupted() -> bool:
            nonlocal n_start
            if n_start < 0:
                n_start = target.n_cached
            return late() or paused(target.n_cached != n_start)

        try:
            while True:
                try:
                    if not is_ready:
                        self._get_ready(run, interrupted, trace)
                        is_ready = True
                    if interrupted():
                        raise CancelledError
                    began = clock()
                    done = self._passes(run, left_off)
                except CancelledError:
                    if late():
                        return output.tokens, "cancelled" if cancelled() else "deadline"
                    yield
                    is_ready, n_start = False, -1
                    continue
                if not trace.n_target_passes and done.pass_ms:
                    first_ms = done.draft_ms[0] + done.pass_ms[0]
                    trace.first_token_ms = (began - started) * 1e3 + first_ms
                self._note(done, trace)
                if output.finish == "stop":
                    self._drafter.ended(len(output.tokens))
                if output.finish or run.n_room < 0:
                    return output.tokens, output.finish or "length"
        finally:
            trace.n_tokens = len(output.tokens)
            _report(self._drafter.counters, trace)

    def _get_ready(self, run: _Run, interrupted: Callable[[], bool], trace: Trace) -> None:
        """Begin a request, or resume it after others: the drafters, and the KV cache."""
        started = self._clock()
        self._drafter.begin(run.context, interrupted)
        run.after_single = False  # a prefill makes passes of other widths
        trace.begin_ms += (self._clock() - started) * 1e3
        tokens = run.output.tokens
        if tokens:
            self._drafter.observe(run.emitted, NO_DRAFT, Verdict(tuple(tokens), ()))
        n_cached = self._target.prefill(run.committed.since(0), interrupted)
        if not tokens:
            trace.n_prompt_cached = n_cached

    def _passes(self, run: _Run, left_off: Callable[[], bool]) -> StepResult:
        """One step, or several passes in one call of native code where that is possible."""
        tail = run.committed.since(self._target.n_cached)
        state = self._drafter.state(run.emitted, len(tail), run.after_single)
        done = self._stretch(run, state, left_off) if len(tail) == 1 else None
        if done is None:
            done = self._step(run, state, tail)
        if done.widths:
            run.after_single = done.widths[-1] == 1
        return done

    def _step(self, run: _Run, state: PassState, tail: Tokens) -> StepResult:
        n_max, n_room = self._most_drafted(run, len(tail)), run.n_room
        most = min(n_room, self._target.can.max_draft)
        done, draft, verdict = step(
            self._target,
            tail,
            (run.output,),
            propose=lambda: self._drafter.propose(state, n_max),
            fill=lambda draft: padded(draft, state, most),
            clock=self._clock,
        )
        run.commit()
        self._drafter.observe(run.emitted, draft, verdict)
        return done

    def _stretch(
        self, run: _Run, state: PassState, left_off: Callable[[], bool]
    ) -> StepResult | None:
        """A native stretch of passes; None where the next pass has to be a step."""
        output, limits = run.output, run.output.limits
        n_left = min(output.n_left, run.n_room + 1)
        if self._stretches is None or n_left <= 0:
            return None
        n_draft = min(limits.max_width, self._target.can.max_draft)
        ms = (limits.deadline - self._clock()) * 1e3
        found = self._stretches.run(
            self._drafter, state, output, run.last, n_left, n_draft, ms, left_off
        )
        if found is None:
            return None
        output.take(found.tokens, found.log_probs)
        run.commit()
        self._drafter.observe_stretch(output.tokens, found)
        return StepResult(
            found.tokens,
            found.widths,
            found.n_drafted,
            found.n_accepted,
            found.draft_ms,
            found.pass_ms,
            found.pass_ms,
        )

    def _note(self, done: StepResult, trace: Trace) -> None:
        trace.n_target_passes += len(done.widths)
        trace.draft_ms += sum(done.draft_ms)
        trace.target_ms += sum(done.pass_ms)
        trace.pass_ms += done.pass_ms
        trace.pass_width += done.widths
        trace.pass_depth += done.n_drafted
        trace.pass_accepted += done.n_accepted
        self._on_passes(done.widths, done.cost_ms)

    def _most_drafted(self, run: _Run, n_tail: int) -> int:
        """Most nodes worth drafting: a pass emits one token more than it accepts."""
        can = self._target.can
        if not can.rolls_back and n_tail > can.max_draft:
            return 0  # rejected drafts would make the tail ever longer
        return min(run.output.limits.max_width, can.max_draft, run.output.n_left - 1, run.n_room)


class _Run:
    """State of one request under way. committed: tokens of the prompt and the output.
    after_single: see `PassState`."""

    def __init__(self, context: Context, output: Output, n_ctx: int) -> None:
        self.context = context
        self.output = output
        self.committed = CommittedTokens(max(len(context.prompt), n_ctx) + 1)
        self.committed.append(context.prompt)
        self.after_single = False
        self._n_prompt = len(context.prompt)
        self._n_ctx = n_ctx

    @property
    def emitted(self) -> Tokens:
        """(m,) read-only view of the output."""
        return self.committed.since(self._n_prompt)

    @property
    def last(self) -> int:
        """The last committed token."""
        tokens = self.output.tokens
        return tokens[-1] if tokens else int(self.context.prompt[-1])

    @property
    def n_room(self) -> int:
        """Tokens that fit the context beside the next one; below 0 where not even that fits."""
        return self._n_ctx - len(self.committed) - 1

    def commit(self) -> None:
        """Commit the tokens that the output has taken."""
        self.committed.extend(self.output.tokens[len(self.committed) - self._n_prompt :])


def _report(counters: Counters, trace: Trace) -> None:
    trace.n_drafted = counters.n_drafted
    trace.n_accepted = counters.n_accepted
    trace.by_source = {source.label: stats for source, stats in counters.by_source.items()}
