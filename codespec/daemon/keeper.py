"""Lifecycle of the model worker: load, respawn with growing pauses, give up, switch models.

States: loading -> ready -> (death) restarting -> loading ... A worker that says why it cannot load,
or dies several times while loading, leads to "failed": trying the same model for ever would keep
the machine busy for nothing. Only `configure` and `try_again` lead out of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codespec.config import Settings
from codespec.daemon import wire
from codespec.daemon.health import HangLimits, Health
from codespec.daemon.process import WorkerProcess
from codespec.daemon.worker_memory import BESIDE_BYTES, MemoryBudget
from codespec.errors import DaemonError
from codespec.system.processes import how_it_ended, module_command

log = logging.getLogger(__name__)

_STARTED_AGAIN = "It is started again; if it goes on like this, see: codespec daemon logs"


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Times in seconds, memory in bytes.

    answer_margin: the worker is asked to answer this share of the time before the client's deadline
        (at most `max_margin_s` earlier), so that the tokens it has by then still arrive: it looks
        at the clock between two passes of the model.
    grace_cpu_s: processor time without progress after which a worker counts as hung, for each
        thread that computes: see `health`.
    grace_s: the same on the clock, while it is at work.
    load_s: the same while it loads its model.
    look_s: pause between two looks at its progress and memory.
    beside_bytes: memory that it may take beside what its models need: see `worker_memory`.
    pause_s: how long a request may go on after it was asked to pause at once.
    max_load_deaths: deaths in a row while loading after which it is not started again.
    backoff_s: pause after a worker that died without an answer; doubles each time, up to
        `max_backoff_s`.
    close_s: how long a worker may take to end when asked to.
    """

    answer_margin: float = 0.1
    max_margin_s: float = 0.1
    grace_cpu_s: float = 2.0
    grace_s: float = 30.0
    load_s: float = 30.0
    look_s: float = 0.25
    beside_bytes: int = BESIDE_BYTES
    pause_s: float = 10.0
    max_load_deaths: int = 3
    backoff_s: float = 0.2
    max_backoff_s: float = 10.0
    close_s: float = 1.0


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a worker. loaded: its model was loaded. useful: it answered. failure: its own
    report why it cannot load."""

    reason: str
    loaded: bool
    useful: bool
    failure: wire.Failed | None = None


class WorkerKeeper:
    """Keeps one worker running. Call all methods on the loop that runs `run`.

    on_state: called with every change of state.
    on_message: called with each message of a loaded worker.
    on_down: called with the reason and the next step when a worker is gone; its requests have no
        answer.
    is_busy: True if a loaded worker has work.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        policy: RestartPolicy,
        command: Sequence[str] | None,
        on_state: Callable[[], None],
        on_message: Callable[[wire.FromWorker], None],
        on_down: Callable[[str], None],
        is_busy: Callable[[], bool],
    ) -> None:
        self.settings = settings
        self.state: wire.State = "loading"
        self.reason = ""
        self.ready: wire.Ready | None = None
        self.failure: wire.Failed | None = None
        self.progress = 0.0
        """Share of the model that is loaded, while it loads."""
        self.n_respawns = 0
        """How often a worker that had died was replaced; switching models does not count."""
        self.last_end = ""
        """Why the last one of these ended."""
        self._policy = policy
        self._command = list(command or module_command("codespec.daemon.worker"))
        self._on_state = on_state
        self._on_message = on_message
        self._on_down = on_down
        self._is_busy = is_busy
        self._health: Health | None = None
        self._budget: MemoryBudget | None = None
        self._next_look: asyncio.TimerHandle | None = None
        self._worker: WorkerProcess | None = None
        self._killed_because = ""
        self._switched = asyncio.Event()

    @property
    def worker_pid(self) -> int:
        """Process id of the worker, 0 while there is none."""
        return self._worker.pid if self._worker else 0

    @property
    def hint(self) -> str:
        """The next step for people, if something is wrong, else ""."""
        if self.failure is not None:
            return self.failure.hint
        return _STARTED_AGAIN if self.state == "restarting" else ""

    def send(self, message: wire.Message) -> None:
        if self._worker is not None:
            self._worker.send(message)

    def watch(self) -> None:
        """Report new work: from now on, until it has none, the worker must make progress."""
        if self._health is not None:
            self._health.begin()
            if self._next_look is None:
                self._look()

    def _look(self) -> None:
        self._next_look = None
        loads = self.ready is None
        if self._health is None or not (loads or self._is_busy()):
            return
        hangs = self._health.look(loads=loads)
        # Memory first: a worker that takes ever more of it may get nowhere, too.
        why = self._budget.why_over(self.worker_pid) if self._budget is not None else ""
        if why := why or hangs:
            self.kill(why)
        else:
            loop = asyncio.get_running_loop()
            self._next_look = loop.call_later(self._policy.look_s, self._look)

    def kill(self, reason: str) -> None:
        """End the worker at once; the next one is spawned."""
        if self._worker is not None:
            self._killed_because = self._killed_because or reason
            self._worker.kill()

    def configure(self, settings: Settings) -> None:
        """Replace the worker by one with these settings."""
        self.settings = settings
        self.failure = None
        self._switched.set()
        self._set_state("loading", "the model is being switched")
        self.kill("the model is being switched")

    def try_again(self) -> None:
        """Load a model again that could not be loaded: the obstacle may be gone."""
        if self.state == "failed":
            self.failure = None
            self._switched.set()
            self._set_state("loading")

    async def run(self) -> None:
        """Keep a worker running until cancelled; the worker is gone then."""
        n_load_deaths = n_useless = 0
        while True:
            if self._switched.is_set():
                self._switched.clear()
                n_load_deaths = n_useless = 0
            elif self.state != "loading":
                self._set_state("loading", self.reason)
            end = await self._one_life()
            if self._switched.is_set():
                self._on_down(end.reason)
                continue
            self._on_down(f"{end.reason}. {_STARTED_AGAIN}")
            log.warning("worker down: %s", end.reason)
            n_load_deaths = 0 if end.loaded else n_load_deaths + 1
            n_useless = 0 if end.useful else n_useless + 1
            if end.failure is not None or n_load_deaths >= self._policy.max_load_deaths:
                self.failure = end.failure or self._poisoned(end.reason, n_load_deaths)
                self._set_state("failed", self.failure.message)
                await self._switched.wait()
                continue
            self.n_respawns += 1
            self.last_end = end.reason
            self._set_state("restarting", end.reason)
            if n_useless:
                pause_s = self._policy.backoff_s * 2.0 ** min(n_useless - 1, 30)
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(
                        self._switched.wait(), min(pause_s, self._policy.max_backoff_s)
                    )

    async def _one_life(self) -> _End:
        self._killed_because = ""
        try:
            worker = await WorkerProcess.spawn(self._command)
        except DaemonError as e:
            return _End(e.message, loaded=False, useful=False, failure=wire.failure(0, e))
        self._worker = worker
        log.info("worker %d spawned", worker.pid)
        if self._switched.is_set():  # meanwhile
            self.kill("the model is being switched")
        worker.send(wire.Load(settings=self.settings, pulse=worker.pulse.name))
        policy = self._policy
        limits = HangLimits(policy.grace_cpu_s, policy.grace_s, policy.load_s, policy.look_s)
        self._health = Health(worker.pid, worker.pulse, limits)
        self.watch()
        failure: wire.Failed | None = None
        useful = False
        try:
            while failure is None and (message := await worker.read()) is not None:
                if isinstance(message, wire.Ready) and self.ready is not None:
                    self.ready = message
                    self._set_state("ready", message.notice)
                elif isinstance(message, wire.Ready):
                    self.ready = message
                    cache_bytes = self.settings.index.max_cache_bytes
                    beside = policy.beside_bytes
                    self._budget = MemoryBudget.of(worker.pid, message, cache_bytes, beside)
                    self._set_state("ready", message.notice)
                elif isinstance(message, wire.Loading):
                    self.progress = message.share
                    self._on_state()
                elif isinstance(message, wire.Failed) and message.id == 0:
                    failure = message
                else:
                    useful = True
                    self._on_message(message)
        except wire.WireError as e:
            self.kill(f"the model worker sent garbage: {e.message}")
        finally:
            self._worker = self._health = self._budget = None
            loaded, self.ready = self.ready is not None, None
            status = await worker.close(self._policy.close_s)
        reason = self._killed_because or f"the model worker {how_it_ended(status)}"
        if failure is not None:
            reason = failure.message
        elif not loaded and worker.last_words:
            reason = f"{reason}; its last words: {worker.last_words}"
        return _End(reason, loaded, useful, failure)

    def _poisoned(self, reason: str, n_deaths: int) -> wire.Failed:
        return wire.Failed(
            id=0,
            message=f"the model worker died {n_deaths} times while loading: {reason}",
            hint="Check the model file and the free memory (codespec daemon logs), "
            "then: codespec daemon restart",
            kind="model",
        )

    def _set_state(self, state: wire.State, reason: str = "") -> None:
        self.state, self.reason, self.progress = state, reason, 0.0
        log.info("state %s %s", state, reason)
        self._on_state()
