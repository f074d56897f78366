"""Routes requests to the model worker.

The worker may die or hang at any moment (a native abort, a damaged model, a kernel bug): the
requests it had get an empty completion with a reason, the others wait for the next worker. A
document that two workers had in work when they ended is not parsed any more until it is closed:
text can be made so that its parse takes all memory, and each key typed in it would end another.
asyncio only; one loop, so no locks. No native code runs in this process, and requests pass
through it unread.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from codespec import __version__, limits
from codespec.config import Settings
from codespec.daemon import wire
from codespec.daemon.edit_figures import EditFigures
from codespec.daemon.health import resident_bytes
from codespec.daemon.keeper import RestartPolicy, WorkerKeeper
from codespec.daemon.scheduler import TURN_S, Pausing, ScheduledRequest, Scheduler
from codespec.errors import DaemonError
from codespec.models.figures import ModelFigures
from codespec.next_edit import NoNextEdit
from codespec.reasons import NoSuggestion

_MAX_DEATHS = 2
"""One may be an accident."""

_TOO_MUCH = DaemonError(
    f"too many requests of this client are waiting (at most {limits.WAITING}, "
    f"of {limits.WAITING_BYTES >> 20} MiB together)",
    "Wait for answers, or cancel some.",
)
_TOO_MANY_DOCUMENTS = DaemonError(
    f"too many documents are open (at most {limits.DOCUMENTS})", "Close some."
)

Reply: TypeAlias = Callable[[wire.Answer | wire.Partial], None]
_NO_EDIT = {"cancelled": NoNextEdit.CANCELLED, "deadline": NoNextEdit.NO_TIME}
"""Why there are no next edits, by the way in which a request finished."""


class Supervisor:
    """Routes requests from clients to the worker. Call all methods on the loop that runs `run`.
    on_state: called with every change of state."""

    def __init__(
        self,
        settings: Settings,
        *,
        command: Sequence[str] | None = None,
        policy: RestartPolicy | None = None,
        on_state: Callable[[wire.StateChanged], None] = lambda _: None,
    ) -> None:
        self._policy = policy or RestartPolicy()
        self._keeper = WorkerKeeper(
            settings,
            policy=self._policy,
            command=command,
            on_state=self._state_changed,
            on_message=self._worker_said,
            on_down=self._worker_down,
            is_busy=lambda: self._scheduler.running is not None,
        )
        self._tell = on_state
        self._scheduler = Scheduler()
        self._replies: dict[ScheduledRequest, Reply] = {}
        self._timers: dict[ScheduledRequest, asyncio.TimerHandle] = {}
        self._documents: dict[int, set[str]] = {}  # open in each client
        self._n_deaths = Counter[tuple[int, str]]()  # of workers that had these in work
        self._must_pause: asyncio.TimerHandle | None = None
        self._turn_end: asyncio.TimerHandle | None = None
        self._started_s = time.monotonic()
        self._n_requests = 0
        self._edit_figures = EditFigures()

    async def run(self) -> None:
        """Run until cancelled; the worker is gone then."""
        await self._keeper.run()

    @property
    def settings(self) -> Settings:
        return self._keeper.settings

    @property
    def state(self) -> wire.StateChanged:
        ready = self._keeper.ready
        return wire.StateChanged(
            state=self._keeper.state,
            reason=self._keeper.reason,
            hint=self._keeper.hint,
            model=ready.model if ready else "",
            progress=self._keeper.progress,
            has_log_probs=ready.has_log_probs if ready else True,
            figures=ready.figures if ready else ModelFigures(),
        )

    def report(self, request_id: int) -> wire.StatusReport:
        keeper, ready, pid = self._keeper, self._keeper.ready, self._keeper.worker_pid
        return wire.StatusReport(
            id=request_id,
            state=keeper.state,
            reason=keeper.reason,
            hint=keeper.hint,
            version=__version__,
            model=ready.model if ready else "",
            model_path=ready.model_path if ready else keeper.settings.model.target,
            backend=ready.backend if ready else "",
            pid=os.getpid(),
            worker_pid=pid,
            uptime_s=time.monotonic() - self._started_s,
            n_requests=self._n_requests,
            n_respawns=keeper.n_respawns,
            last_end=keeper.last_end,
            memory_bytes=resident_bytes(pid) if pid else 0,
            n_running=int(self._scheduler.running is not None),
            n_waiting=len(self._scheduler.waiting),
            next_edits=self._edit_figures,
            figures=ready.figures if ready else ModelFigures(),
        )

    def try_again(self) -> None:
        self._keeper.try_again()

    def configure(self, settings: Settings) -> None:
        self._keeper.configure(settings)

    # --- requests ---------------------------------------------------------------------------

    def submit(self, client: int, message: wire.Complete | wire.FindEdits, reply: Reply) -> None:
        """Schedule a request. `reply` is called exactly once with an `Answer`, at the
        end of the deadline and the time to linger at the latest, unless the client is dropped
        before.

        Raises: WireError for a request that could not be passed on.
        """
        n_bytes = memoryview(message.request).nbytes
        if n_bytes > wire.MAX_REQUEST_BYTES:
            raise wire.too_large(n_bytes)
        self._n_requests += isinstance(message, wire.Complete) and not message.prefetch
        if self._keeper.failure is not None:
            reply(msgspec.structs.replace(self._keeper.failure, id=message.id))
            return
        if message.document:
            documents = self._documents.setdefault(client, set())
            if len(documents) >= limits.DOCUMENTS and message.document not in documents:
                reply(wire.failure(message.id, _TOO_MANY_DOCUMENTS))
                return
            documents.add(message.document)
        loop = asyncio.get_running_loop()
        now = loop.time()
        due = now + message.deadline_ms / 1e3 if message.deadline_ms > 0 else None
        asked = client, message.id, message.document, message.request, now, due
        if isinstance(message, wire.FindEdits):
            job = ScheduledRequest(*asked, edits=True, brief=not message.with_model)
        else:
            linger_s = message.linger_ms / 1e3
            job = ScheduledRequest(
                *asked, linger_s=linger_s, stream=message.stream, prefetch=message.prefetch
            )
        for old in self._scheduler.add(job):
            self._give_up(old, "cancelled", NoSuggestion.SUPERSEDED)
        if self._is_too_much(client):
            self._scheduler.remove(job)
            reply(wire.failure(message.id, _TOO_MUCH))
            return
        self._replies[job] = reply
        if due is not None:
            self._timers[job] = loop.call_at(due, self._past_due, job)
        self._pump()

    def _is_too_much(self, client: int) -> bool:
        jobs = self._scheduler.of_client(client)
        n_bytes = sum(memoryview(job.request).nbytes for job in jobs)
        return len(jobs) > limits.WAITING or n_bytes > limits.WAITING_BYTES

    def cancel(self, client: int, request_id: int, with_figures: bool = False) -> None:
        """Cancel a request. with_figures: the worker answers one that it is working on."""
        job = self._scheduler.find(client, request_id)
        if job is not None and with_figures and job is self._scheduler.running:
            self._keeper.send(wire.Cancel(id=job.number))
        elif job is not None:
            self._give_up(job, "cancelled", NoSuggestion.CLIENT_CANCELLED)

    def closed(self, client: int, document: str) -> None:
        """Report that the client has closed the document."""
        for job in self._scheduler.of_client(client):
            if job.document == document:
                self._give_up(job, "cancelled", NoSuggestion.DOCUMENT_CLOSED)
        self._documents.get(client, set()).discard(document)
        self._n_deaths.pop((client, document), None)
        self._keeper.send(wire.Closed(document=_known_as(client, document)))

    def drop(self, client: int) -> None:
        """Forget a client that is gone, with its documents; its requests are not answered any
        more."""
        for job in self._scheduler.of_client(client):
            self._replies.pop(job, None)
            self._give_up(job, "cancelled", NoSuggestion.CLIENT_GONE)
        for document in self._documents.pop(client, ()):
            self._n_deaths.pop((client, document), None)
            self._keeper.send(wire.Closed(document=_known_as(client, document)))

    def _pump(self) -> None:
        if self._keeper.state != "ready":
            return
        loop = asyncio.get_running_loop()
        running = self._scheduler.running
        if running is not None and not running.answered and self._scheduler.must_yield(loop.time()):
            if self._scheduler.must_end:
                self._give_up(running, "deadline", NoSuggestion.MODEL_NEEDED)
            else:
                self._pause(running)
        job = self._scheduler.start(loop.time())
        if job is not None:
            self._send(job, loop.time())
        if self._turn_end is not None:
            self._turn_end.cancel()
            self._turn_end = None
        if self._scheduler.is_shared:
            self._turn_end = loop.call_later(TURN_S, self._pump)

    def _pause(self, job: ScheduledRequest) -> None:
        how = Pausing.AT_ONCE if self._scheduler.is_urgent else Pausing.SOON
        if job.pausing not in (how, Pausing.AT_ONCE):
            job.pausing = how
            is_urgent = how == Pausing.AT_ONCE
            self._keeper.send(wire.Pause(id=job.number, at_once=is_urgent))
            if is_urgent:
                self._must_pause = asyncio.get_running_loop().call_later(
                    self._policy.pause_s, self._give_up, job, "empty", NoSuggestion.NOT_LEFT_OFF
                )

    def _send(self, job: ScheduledRequest, now: float) -> None:
        self._keeper.watch()
        if job.paused:
            job.paused = False
            self._keeper.send(wire.Resume(id=job.number))
            return
        left_ms = 0.0
        if job.due is not None:
            left_s = max(0.0, job.due + job.linger_s - now)
            margin_s = min(left_s * self._policy.answer_margin, self._policy.max_margin_s)
            left_ms = max(1.0, (left_s - margin_s) * 1e3)
        document = _known_as(job.client, job.document)
        if job.edits:
            self._keeper.send(
                wire.FindEdits(
                    id=job.number,
                    request=job.request,
                    document=document,
                    deadline_ms=left_ms,
                    with_model=not job.brief,
                )
            )
            return
        self._keeper.send(
            wire.Complete(
                id=job.number,
                request=job.request,
                document=document,
                deadline_ms=left_ms,
                stream=job.stream,
                prefetch=job.prefetch,
                parses=self._n_deaths[job.client, job.document] < _MAX_DEATHS,
            )
        )

    def _past_due(self, job: ScheduledRequest) -> None:
        waiting = job is not self._scheduler.running
        may_come = not waiting or self._keeper.state == "ready"
        if job.linger_s and may_come:
            loop = asyncio.get_running_loop()
            self._timers[job] = loop.call_later(job.linger_s, self._past_due, job)
            job.linger()
            self._pump()
            return
        if waiting:
            why = NoSuggestion.NO_ANSWER_IN_TIME
            self._give_up(job, "deadline", why, f"{why.text}: {self._why_waiting()}")
        else:
            self._give_up(job, "deadline", NoSuggestion.TOO_SLOW)

    def _why_waiting(self) -> str:
        if self._keeper.state == "ready":
            return "the model is busy with other requests"
        return self._keeper.reason or f"the model is {self._keeper.state}"

    def _give_up(
        self, job: ScheduledRequest, finish: str, why: NoSuggestion, detail: str = ""
    ) -> None:
        """Answer with nothing, and cancel the request in the worker."""
        self._scheduler.remove(job)
        self._answer_empty(job, finish, why, detail)
        if job.paused:
            self._keeper.send(wire.Cancel(id=job.number))
        if job is self._scheduler.running:
            self._keeper.send(wire.Cancel(id=job.number))

    def _answer_empty(
        self, job: ScheduledRequest, finish: str, why: NoSuggestion, detail: str
    ) -> None:
        # Written out, not a `Completion`: see the module `payload`.
        if job.edits:
            why_none = _NO_EDIT.get(finish, NoNextEdit.FAILED).value
            edits = msgspec.Raw(msgspec.msgpack.encode({"why": why_none}))
            figures = EditFigures.of_answer(why_none)
            self._answer(job, wire.EditsFound(id=job.request_id, edits=edits, figures=figures))
            return
        fields = {"finish": finish, "why": why.value, "detail": detail}
        self._answer(
            job,
            wire.Completed(
                id=job.request_id, completion=msgspec.Raw(msgspec.msgpack.encode(fields))
            ),
        )

    def _answer(self, job: ScheduledRequest, message: wire.Answer) -> None:
        if job.edits:
            failed = EditFigures.of_answer(NoNextEdit.FAILED.value)
            figures = message.figures if isinstance(message, wire.EditsFound) else failed
            self._edit_figures += figures.outcomes if job.answered else figures
        job.answered = True
        timer = self._timers.pop(job, None)
        if timer is not None:
            timer.cancel()
        reply = self._replies.pop(job, None)
        if reply is not None:
            reply(message)

    # --- what the keeper tells --------------------------------------------------------------

    def _worker_said(self, message: wire.FromWorker) -> None:
        job = self._scheduler.running
        if (
            isinstance(message, wire.Ready | wire.Loading)
            or job is None
            or message.id != job.number
        ):
            return
        if isinstance(message, wire.Partial):
            reply = self._replies.get(job)
            if reply is not None:
                reply(msgspec.structs.replace(message, id=job.request_id))
            return
        if isinstance(message, wire.Paused) and not job.answered:
            self._has_left_off()
            now = asyncio.get_running_loop().time()
            self._scheduler.pause(now, progressed=message.progressed)
        else:
            self._release_worker()
        if isinstance(message, wire.Answer):
            self._answer(job, msgspec.structs.replace(message, id=job.request_id))
        self._pump()

    def _worker_down(self, reason: str) -> None:
        jobs = [job for job in self._scheduler.jobs if job.paused or job is self._scheduler.running]
        running = self._scheduler.running
        if running is not None and running.document in self._documents.get(running.client, ()):
            self._n_deaths[running.client, running.document] += 1
        self._release_worker()
        for job in jobs:
            self._scheduler.remove(job)
            self._answer_empty(job, "empty", NoSuggestion.WORKER_ENDED, reason)

    def _release_worker(self) -> None:
        self._scheduler.finish()
        self._has_left_off()

    def _has_left_off(self) -> None:
        if self._must_pause is not None:
            self._must_pause.cancel()
            self._must_pause = None

    def _state_changed(self) -> None:
        self._tell(self.state)
        failure = self._keeper.failure
        if failure is not None:
            for job in self._scheduler.waiting:
                self._scheduler.remove(job)
                self._answer(job, msgspec.structs.replace(failure, id=job.request_id))
        self._pump()


def _known_as(client: int, document: str) -> str:
    """Name of a client's document for the worker: several clients may use the same one."""
    return document and f"{client}:{document}"
