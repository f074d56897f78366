"""The supervisor with a real worker process that dies, hangs and chatters on command."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codespec.config import ModelSettings, Settings
from codespec.daemon import payload, wire
from codespec.daemon.keeper import Policy
from codespec.daemon.supervisor import Supervisor
from codespec.requests import Completion, CompletionRequest
from tests import scripted_worker

TIMEOUT_S = 30.0
POLICY = Policy(grace_s=0.2, backoff_s=0.01, max_backoff_s=0.05)

pytestmark = pytest.mark.asyncio


class Harness:
    def __init__(self, command: Sequence[str], policy: Policy) -> None:
        self.states: list[wire.StateChanged] = []
        self._changed = asyncio.Event()
        self._n_ids = 0
        self.supervisor = Supervisor(
            Settings(), command=command, policy=policy, on_state=self._on_state
        )

    def _on_state(self, state: wire.StateChanged) -> None:
        self.states.append(state)
        self._changed.set()

    async def until(self, state: str) -> wire.StateChanged:
        """The next time this state is entered, or now."""

        async def wait() -> None:
            while self.supervisor.state.state != state:
                self._changed.clear()
                await self._changed.wait()

        await asyncio.wait_for(wait(), TIMEOUT_S)
        return self.supervisor.state

    def post(
        self,
        prefix: str,
        *,
        client: int = 1,
        document: str = "",
        path: str = "",
        deadline_ms: float = 0.0,
        partials: list[str] | None = None,
        prefetch: bool = False,
    ) -> asyncio.Future[wire.Completed | wire.Failed]:
        self._n_ids += 1
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        message = wire.Complete(
            id=self._n_ids,
            request=payload.pack(CompletionRequest(prefix, "after", path=path)),
            document=document,
            deadline_ms=deadline_ms,
            stream=partials is not None,
            prefetch=prefetch,
        )

        def take(said: wire.Completed | wire.Partial | wire.Failed) -> None:
            if isinstance(said, wire.Partial):
                assert partials is not None
                partials.append(said.text)
            else:
                reply.set_result(said)  # raises if there is a second reply

        self.supervisor.submit(client, message, take)
        return reply

    @property
    def jobs(self) -> list[tuple[int, bool]]:
        """(id, whether it is paused) of the requests without an answer, the running one last."""
        return [(job.request_id, job.paused) for job in self.supervisor._scheduler.jobs]

    async def until_jobs(self, *jobs: tuple[int, bool]) -> None:
        async def wait() -> None:
            while self.jobs != list(jobs):
                await asyncio.sleep(0.001)

        await asyncio.wait_for(wait(), TIMEOUT_S)

    async def ask(self, prefix: str, **options: Any) -> Completion:
        return await completion(self.post(prefix, **options))

    async def running(self, prefix: str, **options: Any) -> Awaitable[Completion]:
        """Post a request that will not end by itself; return once the worker has it."""
        await self.until("ready")
        return completion(self.post(prefix, **options))


async def completion(reply: asyncio.Future[wire.Completed | wire.Failed]) -> Completion:
    message = await asyncio.wait_for(reply, TIMEOUT_S)
    assert isinstance(message, wire.Completed), message
    return payload.unpack_completion(message.completion)


Start = Callable[..., Any]


@pytest.fixture
def start() -> Start:
    @asynccontextmanager
    async def context(
        *how: str, policy: Policy = POLICY, command: Sequence[str] = ()
    ) -> AsyncIterator[Harness]:
        command = command or [sys.executable, scripted_worker.SCRIPT, *(how or ("ok",))]
        harness = Harness(command, policy)
        task = asyncio.create_task(harness.supervisor.run())
        try:
            yield harness
        finally:
            pid = harness.supervisor.report(0).worker_pid
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled(), task.exception()
            if pid:
                with pytest.raises(ProcessLookupError):
                    os.kill(pid, 0)

    return context


async def test_it_answers(start: Start) -> None:
    async with start() as harness:
        assert (await harness.ask("before")).text == "[before|after]"
        report = harness.supervisor.report(5)
        assert (report.id, report.state, report.model) == (5, "ready", "scripted")
        assert report.worker_pid
        assert (report.n_requests, report.n_respawns) == (1, 0)
        if sys.platform == "linux":
            assert report.memory_bytes > 1_000_000


async def test_a_worker_that_dies_leaves_an_empty_answer_and_the_next_one_works(
    start: Start,
) -> None:
    async with start() as harness:
        dead = harness.post("die")
        waiting = harness.post("next")
        answer = await completion(dead)
        assert (answer.text, answer.finish) == ("", "empty")
        assert "SIGKILL" in answer.reason
        assert (await completion(waiting)).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 1


async def test_an_idle_worker_that_is_killed_comes_back(start: Start) -> None:
    async with start() as harness:
        await harness.ask("x")
        os.kill(harness.supervisor.report(0).worker_pid, signal.SIGKILL)
        await harness.until("loading")
        assert (await harness.ask("y")).text == "[y|after]"


async def test_the_deadline_holds_though_the_worker_hangs(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        pid = harness.supervisor.report(0).worker_pid
        answer = await harness.ask("hang", deadline_ms=50)
        assert (answer.text, answer.finish) == ("", "deadline")
        # It does not react to the cancel either: it is killed, and another one takes over.
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).worker_pid != pid
        assert any("hung" in state.reason for state in harness.states)


async def test_the_deadline_holds_while_the_model_loads(start: Start, tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with start("wait", str(go)) as harness:
        answer = await harness.ask("x", deadline_ms=30)
        assert (answer.text, answer.finish) == ("", "deadline")
        assert "loading" in answer.reason
        patient = harness.post("y")
        go.touch()
        assert (await completion(patient)).text == "[y|after]"


async def test_the_worker_is_asked_to_finish_before_the_deadline(start: Start) -> None:
    """Its answer at the deadline is what it has by then, and must still arrive."""
    for deadline_ms, least, most in ((1000, 850, 900), (60_000, 59_500, 59_900), (0, 0, 0)):
        async with start() as harness:
            await harness.until("ready")
            sent: list[wire.Message] = []
            harness.supervisor._keeper.send = sent.append
            harness.post("x", deadline_ms=deadline_ms)
            (message,) = sent
            assert isinstance(message, wire.Complete)
            assert least <= message.deadline_ms <= most


async def test_a_newer_request_for_the_document_takes_the_place_of_the_running_one(
    start: Start,
) -> None:
    async with start() as harness:
        old = await harness.running("until cancelled", document="a.py")
        other = harness.post("other", document="b.py")
        new = harness.post("new", document="a.py")
        answer = await old
        assert (answer.text, answer.finish) == ("", "cancelled")
        assert (await completion(new)).text == "[new|after]"
        assert (await completion(other)).text == "[other|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_a_cancelled_request_is_answered_and_its_work_stops(start: Start) -> None:
    async with start() as harness:
        running = await harness.running("until cancelled")
        harness.supervisor.cancel(1, 1)
        harness.supervisor.cancel(1, 99)  # unknown: no effect
        assert (await running).finish == "cancelled"
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_a_waiting_request_can_be_cancelled(start: Start, tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with start("wait", str(go)) as harness:
        waiting = harness.post("x")
        harness.supervisor.cancel(1, 1)
        assert (await completion(waiting)).finish == "cancelled"
        go.touch()
        assert (await harness.ask("y")).text == "[y|after]"


async def test_a_client_that_leaves_frees_the_worker(start: Start) -> None:
    async with start() as harness:
        gone = harness.post("until cancelled", client=7)
        also_gone = harness.post("x", client=7)
        harness.supervisor.drop(7)
        assert (await harness.ask("next", client=8)).text == "[next|after]"
        assert not gone.done()
        assert not also_gone.done()
        assert harness.supervisor.report(0).n_respawns == 0


async def test_the_worker_is_told_of_closed_documents(start: Start) -> None:
    async with start() as harness:
        for client, name in [(1, "a"), (1, "b"), (2, "c"), (2, "d"), (3, "e")]:
            await harness.ask("x", client=client, document=f"uri:{name}", path=f"/{name}")
        running = harness.post("until cancelled", document="uri:a", path="/a")
        harness.supervisor.closed(1, "uri:a")
        harness.supervisor.closed(1, "uri:never seen")
        assert (await completion(running)).finish == "cancelled"
        assert (await harness.ask("what was closed")).text == "/a"
        harness.supervisor.drop(2)
        assert (await harness.ask("what was closed")).text == "/a /c /d"


async def test_what_can_wait_is_left_off_for_what_is_due_soon_and_goes_on(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        told: list[str] = []
        patient = harness.post("until paused 3", partials=told, deadline_ms=300_000)
        for i in range(3):
            assert (await harness.ask(f"{i}", deadline_ms=5000)).text == f"[{i}|after]"
        assert (await completion(patient)).text == "paused 3 times"
        assert told == ["turn 0", "turn 1", "turn 2"]


async def test_two_that_can_wait_take_turns(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        first, second = harness.post("until paused 2"), harness.post("until paused 2", client=2)
        assert (await completion(first)).text == "paused 2 times"
        assert second.done() or harness.jobs == [(2, False)]
        harness.supervisor.cancel(2, 2)
        await completion(second)


async def test_a_prefetch_takes_turns_with_what_can_wait(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 2")
        prefetch = harness.post("until paused 1", client=2, prefetch=True)
        await completion(prefetch)
        assert not patient.done()
        harness.post("until paused 9", client=2, prefetch=True)
        assert (await completion(patient)).text == "paused 2 times"
        assert harness.supervisor.report(0).n_requests == 1


@pytest.mark.parametrize("is_left_off", [False, True])
async def test_a_prefetch_makes_nobody_wait_who_is_due_soon(
    start: Start, is_left_off: bool
) -> None:
    async with start() as harness:
        await harness.until("ready")
        prefetch = harness.post("until paused 9", client=2, prefetch=True)
        left_off: list[tuple[int, bool]] = []
        if is_left_off:
            harness.post("until paused 9")
            await harness.until_jobs((1, True), (2, False))
            left_off = [(1, True), (2, True)]
        urgent = harness.post("until cancelled", deadline_ms=9000)
        urgent_id = 2 + is_left_off
        await harness.until_jobs(*left_off, (urgent_id, False))
        assert prefetch.done() != is_left_off
        newer = harness.post("newer", client=2, prefetch=True)
        assert (await completion(prefetch)).text == ""
        harness.supervisor.cancel(1, urgent_id)
        await completion(urgent)
        await completion(newer)
        assert harness.supervisor.report(0).n_respawns == 0


@pytest.mark.parametrize("how", ["cancel", "leave", "newer"])
async def test_what_was_left_off_can_be_given_up(start: Start, how: str) -> None:
    async with start() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 9", document="a.py", client=2)
        urgent = harness.post("until cancelled", deadline_ms=9000)
        await harness.until_jobs((1, True), (2, False))
        if how == "cancel":
            harness.supervisor.cancel(2, 1)
        elif how == "leave":
            harness.supervisor.drop(2)
        else:
            newer = harness.post("newer", document="a.py", client=2)
        if how != "leave":
            assert (await completion(patient)).finish == "cancelled"
        harness.supervisor.cancel(1, 2)
        assert (await completion(urgent)).finish == "cancelled"
        if how == "newer":
            assert (await completion(newer)).text == "[newer|after]"
        assert (await harness.ask("next")).text == "[next|after]"
        assert patient.done() == (how != "leave")
        assert harness.supervisor.report(0).n_respawns == 0


async def test_what_was_left_off_goes_on_when_the_other_is_cancelled(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 1")
        harness.post("until cancelled", deadline_ms=9000)
        await harness.until_jobs((1, True), (2, False))
        harness.supervisor.cancel(1, 2)
        assert (await completion(patient)).text == "paused 1 times"


async def test_cancelling_a_request_that_is_just_being_left_off(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        for i in range(20):
            patient = harness.post("until paused 9", client=2)
            urgent = harness.post("urgent", deadline_ms=9000)
            await asyncio.sleep(i * 1e-4)
            harness.supervisor.cancel(2, 2 * i + 1)
            assert (await completion(patient)).finish == "cancelled"
            assert (await completion(urgent)).text == "[urgent|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_a_deadline_holds_for_what_was_left_off(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 9", deadline_ms=300_000)
        urgent = harness.post("until cancelled", deadline_ms=9000)
        await harness.until_jobs((1, True), (2, False))
        job = harness.supervisor._scheduler.find(1, 1)
        assert job is not None
        harness.supervisor._past_due(job)
        answer = await completion(patient)
        assert (answer.text, answer.finish) == ("", "deadline")
        assert "busy" in answer.reason
        harness.supervisor.cancel(1, 2)
        await completion(urgent)
        assert (await harness.ask("next")).text == "[next|after]"


async def test_what_was_left_off_is_lost_with_its_worker(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 1")
        dead = harness.post("die", deadline_ms=9000)
        for reply in (patient, dead):
            answer = await completion(reply)
            assert (answer.text, answer.finish) == ("", "empty")
            assert "SIGKILL" in answer.reason
        assert (await harness.ask("next")).text == "[next|after]"


async def test_what_native_code_prints_does_not_get_between_the_frames(start: Start) -> None:
    async with start() as harness:
        assert (await harness.ask("print")).text == "[print|after]"
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_an_engine_that_raises_fails_that_request_alone(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        failed = await asyncio.wait_for(harness.post("raise SECRET"), TIMEOUT_S)
        assert isinstance(failed, wire.Failed)
        assert "ValueError" in failed.message
        assert "SECRET" not in str(failed)
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_garbage_as_a_request_fails_that_request_alone(start: Start) -> None:
    async with start() as harness:
        await harness.until("ready")
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        raw = msgspec.Raw(msgspec.msgpack.encode([1, 2]))
        harness.supervisor.submit(1, wire.Complete(id=1, request=raw), reply.set_result)
        failed = await asyncio.wait_for(reply, TIMEOUT_S)
        assert isinstance(failed, wire.Failed)
        assert "not a completion request" in failed.message
        assert (await harness.ask("next")).text == "[next|after]"


async def test_a_model_that_cannot_be_loaded_fails_with_reason_and_next_step(
    start: Start,
) -> None:
    async with start("refuse") as harness:
        waiting = harness.post("x")
        failed = await asyncio.wait_for(waiting, TIMEOUT_S)
        assert isinstance(failed, wire.Failed)
        assert (failed.message, failed.hint) == ("no such model", "Choose another one.")
        assert failed.kind == "model"
        report = harness.supervisor.report(0)
        assert (report.state, report.reason) == ("failed", "no such model")
        assert report.n_respawns == 0  # it said why: the next one would say the same
        later = await asyncio.wait_for(harness.post("y"), TIMEOUT_S)
        assert isinstance(later, wire.Failed)
        assert later.id == 2


@pytest.mark.parametrize(
    ("how", "words"), [("die", "last words"), ("garbage", "garbage")], ids=["dies", "garbage"]
)
async def test_a_worker_that_keeps_dying_while_loading_is_given_up(
    start: Start, how: str, words: str
) -> None:
    async with start(how) as harness:
        state = await harness.until("failed")
        assert "3 times" in state.reason
        assert words in state.reason
        report = harness.supervisor.report(0)
        assert report.n_respawns == 2
        assert "codespec daemon restart" in report.hint


async def test_loading_that_takes_for_ever_is_given_up(start: Start, tmp_path: Path) -> None:
    policy = replace(POLICY, load_s=0.05, max_load_deaths=2)
    async with start("wait", str(tmp_path / "never"), policy=policy) as harness:
        state = await harness.until("failed")
        assert "loading took over" in state.reason


async def test_a_worker_that_cannot_be_started_is_a_clear_failure(
    start: Start, tmp_path: Path
) -> None:
    async with start(command=[str(tmp_path / "missing")]) as harness:
        state = await harness.until("failed")
        assert "cannot start" in state.reason


async def test_switching_the_model_replaces_the_worker(start: Start) -> None:
    async with start() as harness:
        running = await harness.running("until cancelled")
        first = harness.supervisor.report(0)
        harness.supervisor.configure(Settings(model=ModelSettings(target="/models/other.gguf")))
        answer = await running
        assert answer.text == ""
        assert "switched" in answer.reason
        assert (await harness.ask("next")).text == "[next|after]"
        report = harness.supervisor.report(0)
        assert report.model == "/models/other.gguf"
        assert report.worker_pid != first.worker_pid


async def test_switching_the_model_is_the_way_out_of_failed(start: Start, tmp_path: Path) -> None:
    # The scripted worker fails by its command line, so a switch here fails again: three more
    # deaths show that it was tried anew.
    async with start("die") as harness:
        await harness.until("failed")
        harness.supervisor.configure(Settings(model=ModelSettings(target="/models/other.gguf")))
        assert harness.supervisor.state.state == "loading"
        await harness.until("failed")
        assert harness.supervisor.report(0).n_respawns == 5


async def test_a_request_that_could_not_be_passed_on_is_refused(start: Start) -> None:
    async with start() as harness:
        raw = msgspec.Raw(b"\xc4" + b"x" * wire.MAX_REQUEST_BYTES)
        with pytest.raises(wire.WireError, match="too large"):
            harness.supervisor.submit(1, wire.Complete(id=1, request=raw), lambda _: None)
        assert (await harness.ask("next")).text == "[next|after]"
