"""Which request runs next: pure bookkeeping, no sockets, no clock of its own.

Rules: one request runs at a time (one model). Of the waiting ones, the one whose answer is due
first; one without a deadline, or with a later one, counts as due after `PATIENCE_S`, so that
typing in one editor cannot starve it. A newer request for the same document of the same client
takes the older one's place, waiting or running. Prefetches run when nothing else waits, and end
when something does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import msgspec

PATIENCE_S = 10.0


@dataclass(slots=True, eq=False)
class Job:
    """A request on its way. Times in seconds of the caller's clock.

    number:   unique over all clients; what the worker knows it by.
    due:      when the client wants an answer, whatever it is; None: it waits.
    linger_s: how long it may go on after that while no other job waits.
    stream:   the client wants to know what there is so far.
    prefetch: gives way to every job that is not one itself.
    answered: the client has its answer; a running job may still hold the worker.
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
    order: float = field(init=False)

    def __post_init__(self) -> None:
        patient = self.arrived + PATIENCE_S
        self.order = patient if self.due is None else min(self.due, patient)


class Scheduler:
    def __init__(self) -> None:
        self._waiting: dict[int, Job] = {}
        self._numbers = count(1)
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

    @property
    def must_yield(self) -> bool:
        """Whether the running job is to give way to one that waits."""
        job = self.running
        return (
            job is not None
            and (job.prefetch or job.lingers)
            and any(not waiting.prefetch for waiting in self._waiting.values())
        )

    def start(self) -> Job | None:
        """The next job, now running; None where one is running or none waits."""
        if self.running or not self._waiting:
            return None
        job = min(self._waiting.values(), key=lambda j: (j.prefetch, j.order, j.number))
        del self._waiting[job.number]
        self.running = job
        return job

    def finish(self) -> Job | None:
        """The running job, which holds the worker no longer."""
        job, self.running = self.running, None
        return job
