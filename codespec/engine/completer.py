"""The loop: draft, verify in one pass, keep what was accepted, again.

With no drafter this is plain decoding, and with any drafter it emits the same tokens: only
`verify.accept` decides what is emitted, from the target's law alone, or native code by the simplest
of its rules (`stretch.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from codespec.backends.base import CancelledError, Target
from codespec.backends.kv import CommittedTokens
from codespec.drafters.chain import MOST_PASSES, DraftChain
from codespec.engine.stretch import Stretches
from codespec.native import Stretch
from codespec.requests import Paused
from codespec.sampling import Sampler
from codespec.tree import depths
from codespec.types import (
    NO_DRAFT,
    Context,
    Draft,
    Finish,
    LogitsRows,
    Source,
    SourceStats,
    Trace,
    Verdict,
)
from codespec.verify import accept

Observe = Callable[[Sequence[int], Sequence[float]], None]
"""Told of passes: how many tokens each was over, how many milliseconds it took."""

Stop = Callable[[list[int]], bool]
"""Whether the output is complete, asked after every token with all tokens so far."""

T = TypeVar("T")

Turns: TypeAlias = Generator[None, None, T]
"""Work that can be left off: it yields where others may take their turn, and returns a `T`."""


def in_one_turn(work: Turns[T]) -> T:
    """The result of work that nobody interrupts."""
    try:
        next(work)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("nobody asked it to yield")


@dataclass(frozen=True, slots=True)
class Limits:
    """max_tokens: of output, without the first ones that `n_free` counts.
    deadline: on the completer's clock, in seconds.
    is_in_line: whether the output, as it stands, will not be found complete before a line ends.
    """

    max_tokens: int
    deadline: float = float("inf")
    max_width: int = 16
    n_free: Callable[[Sequence[int]], int] = lambda emitted: 0
    is_in_line: Callable[[], bool] = lambda: False

    def n_left(self, emitted: Sequence[int]) -> int:
        return self.max_tokens + self.n_free(emitted) - len(emitted)


class Completer:
    """Decodes with one target and one chain of drafters. One thread only."""

    def __init__(
        self,
        target: Target,
        chain: DraftChain,
        clock: Callable[[], float] = time.perf_counter,
        on_passes: Observe = lambda n_tokens, ms: None,
        stretches: Stretches | None = None,
    ) -> None:
        self._target = target
        self._chain = chain
        self._clock = clock
        self._on_passes = on_passes
        self._stretches = stretches

    def run(
        self,
        context: Context,
        sampler: Sampler,
        limits: Limits,
        stop: Stop = lambda emitted: False,
        cancelled: Callable[[], bool] = lambda: False,
        trace: Trace | None = None,
    ) -> tuple[list[int], Finish]:
        """(emitted tokens, without the end-of-generation token; why it ended)."""
        return in_one_turn(self.turns(context, sampler, limits, stop, cancelled, trace=trace))

    def turns(
        self,
        context: Context,
        sampler: Sampler,
        limits: Limits,
        stop: Stop = lambda emitted: False,
        cancelled: Callable[[], bool] = lambda: False,
        paused: Paused = lambda has_progressed: False,
        trace: Trace | None = None,
    ) -> Turns[tuple[list[int], Finish]]:
        """As `run`, and yields as soon as `paused` turns true. Others may use the target and the
        drafters until it is resumed; that costs what the cache lost meanwhile, and no output."""
        target, chain, clock = self._target, self._chain, self._clock
        trace = Trace() if trace is None else trace
        started = clock()
        n_prompt, n_ctx = len(context.prompt), target.info.n_ctx
        committed = CommittedTokens(max(n_prompt, n_ctx) + 1)
        committed.append(context.prompt)
        emitted: list[int] = []
        counts: dict[int, list[int]] = {}
        trace.n_prompt_tokens = n_prompt
        is_ready, n_start = False, -1  # cached when the turn began

        def late() -> bool:
            return cancelled() or clock() >= limits.deadline

        def left_off() -> bool:
            """In the middle of a stretch, which has got somewhere."""
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
                        self._get_ready(context, committed, emitted, interrupted, trace)
                        is_ready = True
                    if interrupted():
                        raise CancelledError
                    t0 = clock()
                    stretch = self._stretch(committed, emitted, sampler, limits, left_off)
                    if stretch is not None:
                        if not trace.n_target_passes and stretch.pass_ms:
                            first_ms = stretch.draft_ms[0] + stretch.pass_ms[0]
                            trace.first_token_ms = (t0 - started) * 1e3 + first_ms
                        self._note(stretch, counts, trace)
                        finish = self._append(emitted, stretch.tokens, limits, stop)
                        committed.extend(emitted[len(committed) - n_prompt :])
                        chain.went(emitted, stretch)
                        if finish or len(committed) >= n_ctx:
                            return emitted, finish or "length"
                        continue
                    tail = committed.since(target.n_cached)
                    n_max = self._room(limits, len(committed), emitted, len(tail))
                    draft = chain.propose(committed.since(n_prompt), n_max, len(tail))
                    t1 = clock()
                    n_drafted, n_room = len(draft), n_ctx - len(committed) - 1
                    filled = chain.filled(draft, len(tail), min(n_room, target.can.max_draft))
                    width = len(tail) + len(filled)
                    rows = target.decode(tail, filled)
                except CancelledError:
                    if late():
                        return emitted, "cancelled" if cancelled() else "deadline"
                    yield
                    is_ready, n_start = False, -1
                    continue
                verdict, drawing_s = self._verified(draft, rows, sampler, emitted)
                t2 = clock()
                if not trace.n_target_passes:
                    trace.first_token_ms = (t2 - started) * 1e3
                trace.n_target_passes += 1
                trace.draft_ms += (t1 - t0) * 1e3
                trace.target_ms += (t2 - t1) * 1e3
                trace.pass_ms.append(round((t2 - t1) * 1e3, 4))
                trace.pass_width.append(width)
                trace.pass_depth.append(_depth(draft) if n_drafted else 0)
                trace.pass_accepted.append(len(verdict.path))
                # To draw a token takes as long whatever was drafted; where laws are sorted, longer
                # than a pass of a small model.
                self._on_passes((width,), ((t2 - t1 - drawing_s) * 1e3,))
                if n_drafted:
                    _count(counts, draft, verdict)
                finish = self._append(emitted, verdict.emitted, limits, stop)
                committed.extend(emitted[len(committed) - n_prompt :])
                chain.observe(committed.since(n_prompt), draft, verdict)
                if finish or len(committed) >= n_ctx:
                    return emitted, finish or "length"
        finally:
            trace.n_tokens = len(emitted)
            _report(counts, trace)

    def _get_ready(
        self,
        context: Context,
        committed: CommittedTokens,
        emitted: list[int],
        interrupted: Callable[[], bool],
        trace: Trace,
    ) -> None:
        """Begin, or go on after others were at work."""
        started = self._clock()
        self._chain.begin(context, interrupted)
        trace.begin_ms += (self._clock() - started) * 1e3
        if emitted:
            said = Verdict(tuple(emitted), ())
            self._chain.observe(committed.since(len(context.prompt)), NO_DRAFT, said)
        n_cached = self._target.prefill(committed.since(0), interrupted)
        if not emitted:
            trace.n_prompt_cached = n_cached

    def _verified(
        self, draft: Draft, rows: LogitsRows, sampler: Sampler, emitted: list[int]
    ) -> tuple[Verdict, float]:
        """(what is kept of a draft, the cache included: nothing where that cannot be told, as the
        next request has to find committed tokens alone; seconds that it took to draw them)."""
        path: Sequence[int] = ()
        started = self._clock()
        try:
            verdict = accept(draft, rows, sampler, emitted, self._target.info.eog)
            path = verdict.path
            drawing_s = self._clock() - started
        finally:
            self._target.keep(path)
        return verdict, drawing_s

    def _stretch(
        self,
        committed: CommittedTokens,
        emitted: list[int],
        sampler: Sampler,
        limits: Limits,
        interrupted: Callable[[], bool],
    ) -> Stretch | None:
        """Passes in a row, where that can be."""
        n_committed = len(committed)
        if self._stretches is None or self._target.n_cached != n_committed - 1:
            return None
        last = emitted[-1] if emitted else int(committed.since(n_committed - 1)[0])
        n_left = min(limits.n_left(emitted), self._target.info.n_ctx - n_committed)
        if n_left <= 0:
            return None
        n_draft = min(limits.max_width, self._target.can.max_draft)
        n_passes = MOST_PASSES if limits.is_in_line() else 1
        ms = (limits.deadline - self._clock()) * 1e3
        return self._stretches.run(
            self._chain, emitted, last, sampler, n_left, n_draft, n_passes, ms, interrupted
        )

    def _note(self, stretch: Stretch, counts: dict[int, list[int]], trace: Trace) -> None:
        trace.n_target_passes += len(stretch.widths)
        trace.draft_ms += sum(stretch.draft_ms)
        trace.target_ms += sum(stretch.pass_ms)
        trace.pass_ms += stretch.pass_ms
        trace.pass_width += stretch.widths
        trace.pass_depth += stretch.n_drafted
        trace.pass_accepted += stretch.n_accepted
        self._on_passes(stretch.widths, stretch.pass_ms)
        for source, n_drafted, n_accepted in stretch.by_source:
            count = counts.setdefault(source, [0, 0])
            count[0] += n_drafted
            count[1] += n_accepted

    def _append(
        self, emitted: list[int], said: Sequence[int], limits: Limits, stop: Stop
    ) -> Finish | None:
        """Take what was said token by token, so that the end is where plain decoding ends."""
        for token in said:
            if token in self._target.info.eog:
                return "stop"
            emitted.append(token)
            if stop(emitted):
                return "stop"
            if limits.n_left(emitted) <= 0:
                return "length"
        return None

    def _room(self, limits: Limits, n_committed: int, emitted: Sequence[int], n_tail: int) -> int:
        """Most nodes worth drafting: a pass emits one token more than it accepts."""
        if not self._target.can.rolls_back and n_tail > self._target.can.max_draft:
            return 0  # drafts in vain would make it ever longer
        return min(
            limits.max_width,
            self._target.can.max_draft,
            limits.n_left(emitted) - 1,
            self._target.info.n_ctx - n_committed - 1,
        )


def _depth(draft: Draft) -> int:
    return len(draft) if draft.is_chain else max(depths(draft))


def _count(counts: dict[int, list[int]], draft: Draft, verdict: Verdict) -> None:
    """counts: source -> [drafted, accepted]."""
    sources = draft.sources.tolist()
    for source in sources:
        counts.setdefault(source, [0, 0])[0] += 1
    for node in verdict.path:
        counts[sources[node]][1] += 1


def _report(counts: dict[int, list[int]], trace: Trace) -> None:
    for source, (n_drafted, n_accepted) in counts.items():
        trace.n_drafted += n_drafted
        trace.n_accepted += n_accepted
        trace.by_source[Source.of(source).label] = SourceStats(n_drafted, n_accepted)
