"""Which request runs next: pure bookkeeping, no sockets, no clock of its own.

Rules: one request runs at a time (one model): the one whose answer is due first. One without a
deadline, or with a later one, counts as due `PATIENCE_S` after it came, and is due anew with each
turn of `TURN_S`. So it is interrupted by whatever is asked for while somebody types, but hardly for
longer than that, and such requests take turns among themselves.

Most of those are short, so what has had more service is due later, up to `HEAD_START_S`, and a new
one goes first. After `YOUNG_S` it is a long one, and `MAX_SHARING` of them take turns at a time, in
their order: with more, all would be late. One that has had a round of `ROUND_S` lets those go first
that have not, so each gets on.

A newer request for the same document of the same client takes the older one's place, waiting or
running. Prefetches can wait, too, and take turns with what can; beside what cannot, none begins or
goes on: one at work ends.

Sources: Abeni and Buttazzo 1998, "Integrating multimedia applications in hard real-time systems"
(the constant bandwidth server: earliest deadline first, the deadline renewed with the budget);
Corbató et al. 1962, "An experimental time-sharing system" (the multi-level feedback queue: what has
had little service goes first).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Literal

import msgspec

PATIENCE_S = 10.0

TURN_S = 0.2
"""Ten times what it takes to change from one request to another, and more."""

YOUNG_S = 1.0
"""Of service: an answer of less work does not stand behind longer ones."""

HEAD_START_S = 2.0
"""More than it takes that all who share have a turn; new ones without end leave long ones a turn
that often."""

ROUND_S = 10.0
"""Of service. A change costs at most that a prompt is read again, a second or so."""

MAX_SHARING = 2
"""Long ones that take turns. Each keeps a copy of its KV cache meanwhile, for which there is room;
see `backends/checkpoints.py`."""


@dataclass(slots=True, eq=False)
class Job:
    """A request on its way. Times in seconds of the caller's clock.

    number:   unique over all clients; what the worker knows it by.
    due:      when the client wants an answer, whatever it is; None: it waits.
    linger_s: how long it may go on after that, or go on waiting, while no other job is due.
    lingers:  it is due then.
    stream:   the client wants to know what there is so far.
    prefetch: nobody waits for it. Left off, it keeps nothing: what it read is a cache.
    answered: the client has its answer; a running job may still hold the worker.
    pausing:  running, and asked to leave off; "at once": in a hurry.
    paused:   waiting, and begun.
    order:    when it counts as due.
    can_wait: it counts as due before it is.
    owed_at:  when it has waited too long to get anywhere.
    is_owed:  running before one that cannot wait, as it has.
    turn_s:   how much of its turn it has had.
    served_s: in all its turns.
    """

    client: int
    request_id: int
    document: str
    request: msgspec.Raw
    arrived: float
    due: float | None
    linger_s: float = 0.0
    stream: bool = False
    prefetch: bool = False
    lingers: bool = False
    number: int = 0
    answered: bool = False
    pausing: Literal["", "soon", "at once"] = ""
    paused: bool = False
    order: float = field(init=False)
    can_wait: bool = field(init=False)
    owed_at: float = field(init=False)
    is_owed: bool = False
    turn_s: float = 0.0
    served_s: float = 0.0

    def __post_init__(self) -> None:
        self.owed_at = self.arrived + PATIENCE_S
        self.new_turn(self.arrived)

    def new_turn(self, now: float) -> None:
        self.turn_s = 0.0
        self.order = now + PATIENCE_S + min(1.0, self.served_s / YOUNG_S) * HEAD_START_S
        self.can_wait = self.prefetch or self.due is None or self.due > now + PATIENCE_S
        if self.due is not None and not self.can_wait:
            self.order = self.due

    def linger(self) -> None:
        """It is due, and has no answer yet."""
        assert self.due is not None
        self.due, self.linger_s, self.lingers = self.due + self.linger_s, 0.0, True
        if not self.can_wait:
            self.order = self.due

    def serve(self, seconds: float, now: float) -> None:
        self.turn_s += seconds
        self.served_s += seconds
        if self.turn_s >= TURN_S:
            self.new_turn(now)

    @property
    def is_long(self) -> bool:
        return self.can_wait and not self.prefetch and self.served_s >= YOUNG_S

    @property
    def place(self) -> tuple[int, int]:
        """Among long ones."""
        return int(self.served_s / ROUND_S), self.number


class Scheduler:
    def __init__(self) -> None:
        self._waiting: dict[int, Job] = {}
        self._numbers = count(1)
        self._since = 0.0  # when the running job began, or its turn was last looked at
        self.running: Job | None = None

    @property
    def waiting(self) -> list[Job]:
        return list(self._waiting.values())

    @property
    def jobs(self) -> list[Job]:
        """All without an answer."""
        jobs = self.waiting
        if self.running and not self.running.answered:
            jobs.append(self.running)
        return jobs

    def add(self, job: Job) -> list[Job]:
        """Take in a job; returns those it takes the place of (at most one)."""
        job.number = next(self._numbers)
        superseded = [
            old
            for old in self.jobs
            if old.client == job.client
            and (
                old.prefetch
                if job.prefetch
                else job.document and old.document == job.document and not old.prefetch
            )
        ]
        self._waiting[job.number] = job
        return superseded

    def find(self, client: int, request_id: int) -> Job | None:
        return next(
            (j for j in self.jobs if j.client == client and j.request_id == request_id), None
        )

    def of_client(self, client: int) -> list[Job]:
        return [j for j in self.jobs if j.client == client]

    def remove(self, job: Job) -> None:
        """Forget a waiting job; no effect on the running one."""
        self._waiting.pop(job.number, None)

    def must_yield(self, now: float) -> bool:
        """Whether the running job is to give way to one that waits: see `must_end`, else to be
        paused."""
        self._note_service(now)
        job, other = self.running, self._next()
        if job is None or other is None:
            return False
        if self.must_end:
            return True
        if other.prefetch and not job.can_wait:
            return False
        return other.order < job.order

    @property
    def must_end(self) -> bool:
        """Whether the running job is of less use than what the next one loses by waiting."""
        job, other = self.running, self._next()
        if job is None or other is None:
            return False
        is_over = job.lingers and not other.prefetch and not other.lingers
        return is_over or (job.prefetch and not other.can_wait)

    @property
    def in_a_hurry(self) -> bool:
        """Whether what the running job gives way to can wait for no pass of that to end."""
        job, other = self.running, self._next()
        return job is not None and other is not None and not (other.can_wait or job.is_owed)

    @property
    def is_shared(self) -> bool:
        """Whether another job waits for the running one's turn to end."""
        return self.running is not None and self._next() is not None

    def start(self, now: float) -> Job | None:
        """The next job, now running; None where one is running or none waits."""
        job = None if self.running else self._next()
        if job is not None:
            del self._waiting[job.number]
            self.running, self._since = job, now
            job.is_owed = job.can_wait and not all(j.can_wait for j in self._waiting.values())
        return job

    def pause(self, now: float, *, progressed: bool) -> None:
        """The running job holds the worker no longer, and waits. A turn that got it nowhere, since
        a pass takes longer than it lasted, is none."""
        if progressed:
            self._note_service(now)
        job = self.finish()
        if job is not None:
            job.pausing, job.paused = "", True
            if progressed:
                job.owed_at = now + PATIENCE_S
            else:
                job.order = min(job.order, job.owed_at)
            self._waiting[job.number] = job

    def finish(self) -> Job | None:
        """The running job, which holds the worker no longer."""
        job, self.running = self.running, None
        return job

    def _note_service(self, now: float) -> None:
        if self.running is not None:
            self.running.serve(now - self._since, now)
            self._since = now

    def _next(self) -> Job | None:
        long = sorted((job for job in self.jobs if job.is_long), key=lambda job: job.place)
        barred = {job.number for job in long[MAX_SHARING:]}
        waiting = [job for job in self.waiting if job.number not in barred]
        if not all(job.can_wait for job in waiting):
            waiting = [job for job in waiting if not job.prefetch]
        return min(waiting, key=lambda j: (j.order, j.number), default=None)
