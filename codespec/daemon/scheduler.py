"""Scheduler of requests: decides which runs next. Pure bookkeeping, no sockets, no clock of its
own.

Rules: one request runs at a time (one model): the one whose answer is due first. One without a
deadline, or with a later one, counts as due `PATIENCE_S` after it came, and is due anew with each
turn of `TURN_S`. So it is interrupted by whatever is asked for while somebody types, but hardly for
longer than that, and such requests take turns among themselves.

Most of those are short, so one that has had more service is due later, up to `HEAD_START_S`, and a
new one goes first. After `YOUNG_S` it is a long one, and `MAX_SHARING` of them take turns at a
time, in their order: with more, all would be late. One that has had a round of `ROUND_S` lets those
go first that have not, so each makes progress.

A newer request for the same document of the same client takes the older one's place, waiting or
running. A brief request takes milliseconds and needs no pass. It is due after `BRIEF_S`, which is
before most others; what is at work then pauses where a pass ends, and goes on afterwards.

Prefetches can wait, too, and take turns with other requests that can; beside requests that
cannot wait, none begins or goes on: one at work ends.

Sources: Abeni and Buttazzo 1998, "Integrating multimedia applications in hard real-time systems"
(the constant bandwidth server: earliest deadline first, the deadline renewed with the budget);
Corbató et al. 1962, "An experimental time-sharing system" (the multi-level feedback queue:
processes that have had little service go first).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import count

import msgspec

PATIENCE_S = 10.0

TURN_S = 0.2
"""Length of a turn in seconds: more than ten times the cost of a change between requests."""

YOUNG_S = 1.0
"""Seconds of service up to which a request counts as young: a shorter one does not stand behind
longer ones."""

HEAD_START_S = 2.0
"""Seconds: more than it takes that all requests that share have a turn. New requests without end
leave long ones a turn that often."""

ROUND_S = 10.0
"""Seconds of service in a round. A change costs at most that a prompt is read again, a second or
so."""

BRIEF_S = 0.1
"""Seconds after which a brief request is due: what is due before that does not wait for it."""

MAX_SHARING = 2
"""Most long requests that take turns. Each keeps a copy of its KV cache meanwhile, for which there
is room; see `backends/checkpoints.py`."""


class Pausing(Enum):
    """Urgency with which a running request was asked to pause.

    AT_ONCE: even if the work of this turn is lost.
    """

    NO = "no"
    SOON = "soon"
    AT_ONCE = "at_once"


@dataclass(slots=True, eq=False)
class ScheduledRequest:
    """A request in flight. Times in seconds of the caller's clock.

    number: unique over all clients; the worker's id of it.
    due: when the client wants an answer at the latest; None: it waits.
    linger_s: how long it may go on after that, or go on waiting, while no other request is due.
    lingers: True once it was due and goes on.
    stream: the client wants the text so far.
    prefetch: nobody waits for it. A paused one keeps nothing: the prompt it read is in the cache.
    edits: next edits are asked for.
    brief: it takes milliseconds and needs no pass.
    answered: the client has its answer; the request may still hold the worker.
    pausing: how urgently it was asked to pause, while it runs.
    paused: waiting, after it has begun.
    order: when it counts as due.
    can_wait: True if it counts as due before it is.
    owed_at: when it has waited too long to make progress.
    is_owed: True while it runs before a request that cannot wait, since it has waited too long.
    turn_s: seconds of its turn that it has had.
    served_s: seconds of all its turns.
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
    edits: bool = False
    brief: bool = False
    lingers: bool = False
    number: int = 0
    answered: bool = False
    pausing: Pausing = Pausing.NO
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
        if self.brief:
            self.order, self.can_wait = now + BRIEF_S, True
            return
        self.order = now + PATIENCE_S + min(1.0, self.served_s / YOUNG_S) * HEAD_START_S
        self.can_wait = self.prefetch or self.due is None or self.due > now + PATIENCE_S
        if self.due is not None and not self.can_wait:
            self.order = self.due

    def linger(self) -> None:
        """Go on although it is due and has no answer yet."""
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
        """Sort key among long requests."""
        return int(self.served_s / ROUND_S), self.number


class Scheduler:
    """The running request and the waiting ones."""

    def __init__(self) -> None:
        self._waiting: dict[int, ScheduledRequest] = {}
        self._numbers = count(1)
        self._since = 0.0  # when the running job began, or its turn was last looked at
        self.running: ScheduledRequest | None = None

    @property
    def waiting(self) -> list[ScheduledRequest]:
        return list(self._waiting.values())

    @property
    def jobs(self) -> list[ScheduledRequest]:
        """All requests without an answer."""
        jobs = self.waiting
        if self.running and not self.running.answered:
            jobs.append(self.running)
        return jobs

    def add(self, job: ScheduledRequest) -> list[ScheduledRequest]:
        """Add a request. Returns: those whose place it takes (at most one)."""
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
            and (old.edits, old.brief) == (job.edits, job.brief)
        ]
        self._waiting[job.number] = job
        return superseded

    def find(self, client: int, request_id: int) -> ScheduledRequest | None:
        return next(
            (j for j in self.jobs if j.client == client and j.request_id == request_id), None
        )

    def of_client(self, client: int) -> list[ScheduledRequest]:
        return [j for j in self.jobs if j.client == client]

    def remove(self, job: ScheduledRequest) -> None:
        """Forget a waiting request; no effect on the running one."""
        self._waiting.pop(job.number, None)

    def must_yield(self, now: float) -> bool:
        """True if the running request must give way to a waiting one: it ends if `must_end`, else
        it is paused."""
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
        """True if the running request is worth less than the next one loses by waiting."""
        job, other = self.running, self._next()
        if job is None or other is None:
            return False
        is_over = job.lingers and not (other.prefetch or other.lingers or other.brief)
        return is_over or (job.prefetch and not other.can_wait)

    @property
    def is_urgent(self) -> bool:
        """True if the request that the running one gives way to cannot wait for the end of a
        pass."""
        job, other = self.running, self._next()
        return job is not None and other is not None and not (other.can_wait or job.is_owed)

    @property
    def is_shared(self) -> bool:
        """True if another request waits for the end of the running one's turn."""
        return self.running is not None and self._next() is not None

    def start(self, now: float) -> ScheduledRequest | None:
        """The next request, now running; None if one is running or none waits."""
        job = None if self.running else self._next()
        if job is not None:
            del self._waiting[job.number]
            self.running, self._since = job, now
            job.is_owed = job.can_wait and not all(j.can_wait for j in self._waiting.values())
        return job

    def pause(self, now: float, *, progressed: bool) -> None:
        """The running request holds the worker no longer, and waits. progressed: False for a turn
        that made no progress, as a pass takes longer than it lasted; it does not count."""
        if progressed:
            self._note_service(now)
        job = self.finish()
        if job is not None:
            job.pausing, job.paused = Pausing.NO, True
            if progressed:
                job.owed_at = now + PATIENCE_S
            else:
                job.order = min(job.order, job.owed_at)
            self._waiting[job.number] = job

    def finish(self) -> ScheduledRequest | None:
        """End the running request. Returns: it."""
        job, self.running = self.running, None
        return job

    def _note_service(self, now: float) -> None:
        if self.running is not None:
            self.running.serve(now - self._since, now)
            self._since = now

    def _next(self) -> ScheduledRequest | None:
        long = sorted((job for job in self.jobs if job.is_long), key=lambda job: job.place)
        barred = {job.number for job in long[MAX_SHARING:]}
        waiting = [job for job in self.waiting if job.number not in barred]
        if not all(job.can_wait for job in waiting):
            waiting = [job for job in waiting if not job.prefetch]
        return min(waiting, key=lambda j: (j.order, j.number), default=None)
