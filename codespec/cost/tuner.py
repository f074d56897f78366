"""Online tuning of a model: its number of threads and its cost curve, from the passes
themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence

from codespec.backends.base import Target
from codespec.cost.cost_curve import CostCurve
from codespec.cost.measure import CurveStore, measuring, prior

# Passes of a trial of a thread count. The first wakes the threads and does not count.
_N_TRIAL = 4
# In natural logarithms: a count must be faster by _MARGIN to be taken; a trial ends at a pass that
# is slower by _HOPELESS.
_MARGIN = 0.1
_HOPELESS = 1.0
# Passes before the first trial, and between trials: growing while they fail.
_FIRST, _SOONEST, _LATEST = 4, 16, 2048
# Weights of a pass in the current count's recent and usual slowness.
_RECENT, _USUAL = 0.2, 0.01
# Recent above usual by this much: the machine got busier, so trials begin anew.
_TROUBLE = 0.4
# Largest slowness of one pass above recent ones. A preempted pass teaches little, and a trial
# beside a recent slowness that came of it would look faster than it is.
_MOST_SLOWER = 0.8
# Observed passes are learned from together, after so many milliseconds of them, or when nobody
# waits: between two passes of a small model the processor's caches are cold, and learning from each
# alone would take ten times as long.
_TOGETHER_MS = 50.0


class ThreadChoice:
    """Chooses the fastest of several thread counts from the passes themselves.

    llama.cpp's threads wait for each other many times in a pass: where a neighbour takes one of
    their cores, two threads can be ten times slower than one. Only a trial shows that, so the
    neighbouring counts are tried now and then, rarely where trials keep failing.

    counts: descending; the first is in use at the start.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = tuple(counts)
        self._home = self._at = 0
        self._recent: float | None = None
        self._usual = 0.0
        self._trial: list[float] = []
        self._interval, self._countdown = _SOONEST, _FIRST
        self._go_down = True

    @property
    def n_threads(self) -> int:
        """Threads of the next pass."""
        return self._counts[self._at]

    @property
    def is_trying(self) -> bool:
        """True if the next pass is part of a trial of another count."""
        return self._at != self._home

    def observe(self, slowness: float) -> None:
        """Learn from a pass on `n_threads` threads that took `slowness` times a yardstick, which is
        the same for all counts."""
        if len(self._counts) == 1:
            return
        x = math.log(max(slowness, 1e-9))
        if self._at == self._home:
            self._settled(x)
        else:
            self._tried(x)

    def _settled(self, x: float) -> None:
        if self._recent is None:
            self._recent = self._usual = x
        x = min(x, self._recent + _MOST_SLOWER)
        self._recent += _RECENT * (x - self._recent)
        self._usual += _USUAL * (x - self._usual)
        if self._recent > self._usual + _TROUBLE:
            self._usual = self._recent
            self._interval, self._go_down = _SOONEST, True
            self._countdown = min(self._countdown, 1)
        self._countdown -= 1
        if self._countdown <= 0:
            step = 1 if self._go_down else -1
            if not 0 <= self._home + step < len(self._counts):
                step = -step
            self._go_down = step < 0  # the other way next time
            self._at = self._home + step
            self._trial = []

    def _tried(self, x: float) -> None:
        assert self._recent is not None
        self._trial.append(x)
        if x > self._recent + _HOPELESS:
            self._return(4)
        elif len(self._trial) == _N_TRIAL:
            mean = sum(self._trial[1:]) / (_N_TRIAL - 1)
            if mean < self._recent - _MARGIN:
                self._home = self._at
                self._recent = self._usual = mean
                self._interval = self._countdown = _SOONEST
            else:
                self._return(2)

    def _return(self, patience: int) -> None:
        self._at = self._home
        self._interval = min(self._interval * patience, _LATEST)
        self._countdown = self._interval


def thread_counts(n_most: int) -> tuple[int, ...]:
    """Thread counts to choose from: `n_most`, its half, ... and 1, descending."""
    counts = [max(1, n_most)]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    return tuple(counts)


class Tuner:
    """Tunes a model's thread count and learns its cost curves. One thread only, the model's.

    counts: thread counts to choose from, descending.
    key:    names the model, backend and build in the store; the thread count is added.
    """

    def __init__(
        self,
        model: Target,
        counts: Sequence[int],
        store: CurveStore,
        key: str,
    ) -> None:
        self._model = model
        self._store = store
        self._key = key
        self._choice = ThreadChoice(counts)
        known = {n: store.load(self._key_of(n)) for n in counts}
        self.curves = {n: curve or prior(model.info) for n, curve in known.items()}
        """Cost curve by thread count."""
        self._unmeasured = [n for n, curve in known.items() if curve is None]
        self._yardstick = self.curves[counts[0]]
        self._seen: list[tuple[int, float]] = []
        self._seen_ms = 0.0
        self.curve = CostCurve({1: 1.0}, rolls_back=model.can.rolls_back)
        """Cost curve at the current thread count; it follows every change of that."""
        self.refines = True
        """False to keep the curves as they are, for benchmarks."""
        self._apply()

    @property
    def is_measured(self) -> bool:
        """True if there is a measured curve for every thread count."""
        return not self._unmeasured

    @property
    def is_trying(self) -> bool:
        """True during a trial of a thread count: passes are to be observed at once."""
        return self._choice.is_trying

    def observe(self, n: int, ms: float) -> None:
        """Note a real pass over `n` tokens that took `ms` milliseconds; `learn` counts it."""
        self.observe_all((n,), (ms,))

    def observe_all(self, n: Sequence[int], ms: Sequence[float]) -> None:
        """Note several passes, in order; see `observe`."""
        self._seen.extend(zip(n, ms, strict=True))
        self._seen_ms += sum(ms)
        if self._seen_ms >= _TOGETHER_MS or self.is_trying:
            self.learn()

    def learn(self) -> None:
        """Learn from the passes that were noted."""
        for n, ms in self._seen:
            if self.refines:
                self.curve.observe(n, ms)
            if self._choice.n_threads == self._model.n_threads:
                self._choice.observe(ms / self._yardstick.quiet_ms(n))
        self._seen.clear()
        self._seen_ms = 0.0
        if self._choice.n_threads != self._model.n_threads:
            self._apply()

    def measuring(self, interrupted: Callable[[], bool]) -> Generator[None, None, None]:
        """Measure the curves that are missing; yields after each pass. Requests may come in
        between."""
        for n in list(self._unmeasured):
            steps = measuring(self._model, interrupted=interrupted)
            while True:
                self._model.set_threads(n)
                try:
                    next(steps)
                except StopIteration as end:
                    self.curves[n] = end.value
                    break
                finally:
                    self._model.set_threads(self._choice.n_threads)
                yield
            self._unmeasured.remove(n)
            self._store.save(self._key_of(n), self.curves[n])
            self._apply()

    def save(self) -> None:
        """Store the refined curves."""
        self.learn()
        for n, curve in self.curves.items():
            if curve.n_observed and n not in self._unmeasured:
                self._store.save(self._key_of(n), curve)

    def _apply(self) -> None:
        n = self._choice.n_threads
        self._model.set_threads(n)
        self.curve.follow(self.curves[n])

    def _key_of(self, n_threads: int) -> str:
        return f"{self._key}:{n_threads}"


class Tuners:
    """The tuners of all models of an engine. One thread only."""

    def __init__(self, tuners: Sequence[Tuner]) -> None:
        self._tuners = list(tuners)
        self._steps: Generator[None, None, None] | None = None
        self._interrupted: Callable[[], bool] = lambda: False

    def freeze(self) -> None:
        """See `Tuner.refines`."""
        for tuner in self._tuners:
            tuner.refines = False

    def add(self, tuner: Tuner) -> None:
        """Take on the tuner of a model that was loaded."""
        self._tuners.append(tuner)

    def remove(self, tuner: Tuner) -> None:
        """Forget the tuner of a model that is unloaded; its curves are stored."""
        if self._steps is not None:  # it may be at this one
            self._steps.close()
            self._steps = None
        tuner.save()
        self._tuners.remove(tuner)

    def learn(self) -> None:
        """See `Tuner.learn`."""
        for tuner in self._tuners:
            tuner.learn()

    def measure(self, interrupted: Callable[[], bool]) -> bool:
        """Make one pass of the measurements that are missing; True while there are more. Requests
        may come in between; `interrupted` returns True when one has."""
        self._interrupted = interrupted
        if self._steps is None:
            self._steps = self._all()
        try:
            next(self._steps)
        except StopIteration:
            self._steps = None
            return False
        return True

    def save(self) -> None:
        """See `Tuner.save`."""
        for tuner in self._tuners:
            tuner.save()

    def _all(self) -> Generator[None, None, None]:
        for tuner in self._tuners:
            yield from tuner.measuring(lambda: self._interrupted())
