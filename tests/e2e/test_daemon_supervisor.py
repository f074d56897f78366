"""The supervisor with a real worker process that dies, hangs and chatters on command."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codespec.config import ModelSettings, Settings
from codespec.daemon import wire
from codespec.reasons import NoSuggestion
from codespec.requests import Completion
from tests.supervised import POLICY, TIMEOUT_S, completion, supervised

pytestmark = pytest.mark.asyncio


async def test_it_answers() -> None:
    async with supervised() as harness:
        assert (await harness.ask("before")).text == "[before|after]"
        report = harness.supervisor.report(5)
        assert (report.id, report.state, report.model) == (5, "ready", "scripted")
        assert report.worker_pid
        assert (report.n_requests, report.n_respawns) == (1, 0)
        if sys.platform == "linux":
            assert report.memory_bytes > 1_000_000


async def test_a_worker_that_dies_leaves_an_empty_answer_and_the_next_one_works() -> None:
    async with supervised() as harness:
        dead = harness.post("die")
        waiting = harness.post("next")
        answer = await completion(dead)
        assert (answer.text, answer.finish) == ("", "empty")
        assert "SIGKILL" in answer.reason
        assert "codespec daemon logs" in answer.reason, "the next step"
        (restarting,) = (s for s in harness.states if s.state == "restarting")
        assert "codespec daemon logs" in restarting.hint
        assert (await completion(waiting)).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 1


async def test_a_document_that_two_workers_ended_with_is_not_parsed_until_it_is_closed() -> None:
    async with supervised() as harness:

        async def is_parsed(document: str) -> str:
            return (await harness.ask("is parsed", document=document)).text

        for hows in (("die", "hang"), ("die", "die")):
            for how in hows:
                assert await is_parsed("a") == "True", "one death may be an accident"
                deadly = harness.post(how, document="a", deadline_ms=500)
                assert (await completion(deadly)).text == ""
            assert [await is_parsed(name) for name in ("a", "b", "")] == ["False", "True", "True"]
            harness.supervisor.closed(1, "a")
        for _ in range(2):
            await harness.ask("die", document="a", client=2)
        assert await is_parsed("a") == "True", "another editor's"


async def test_an_idle_worker_that_is_killed_comes_back() -> None:
    async with supervised() as harness:
        await harness.ask("x")
        os.kill(harness.supervisor.report(0).worker_pid, signal.SIGKILL)
        await harness.until("loading")
        assert (await harness.ask("y")).text == "[y|after]"


async def test_the_deadline_holds_though_the_worker_hangs() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        pid = harness.supervisor.report(0).worker_pid
        answer = await harness.ask("hang", deadline_ms=50)
        assert (answer.text, answer.finish) == ("", "deadline")
        # It does not react to the cancel either: it is killed, and another one takes over.
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).worker_pid != pid
        assert any("hung" in state.reason for state in harness.states)


async def test_a_request_that_waits_at_its_deadline_waits_on_where_it_may_linger() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        at_work = harness.post("until cancelled", client=1, deadline_ms=30_000)
        one, another = (
            harness.post(name, client=i, deadline_ms=1, linger_ms=ms)
            for i, name, ms in ((2, "soon given up", 50), (3, "late", 20_000))
        )
        assert (await completion(one)).finish == "deadline"
        assert not another.done()
        fresh = harness.post("fresh", client=4, deadline_ms=9000)
        await harness.until_jobs((3, False), (4, False), (1, False))
        ended: list[str] = []
        for name, reply in (("at work", at_work), ("fresh", fresh), ("late", another)):
            reply.add_done_callback(lambda _, name=name: ended.append(name))
        harness.supervisor.cancel(1, 1)
        assert (await completion(another)).text == "[late|after]"
        assert ended == ["at work", "fresh", "late"], "what is due in time goes first"


async def test_a_worker_that_does_not_leave_off_is_replaced() -> None:
    """One request without a deadline must not keep the model from all others."""
    async with supervised(policy=replace(POLICY, pause_s=0.1)) as harness:
        stubborn = await harness.running("hang", client=1)
        editor = harness.post("next", client=2, deadline_ms=9000)
        answer = await stubborn
        assert (answer.text, answer.finish) == ("", "empty")
        assert "leave off" in answer.reason
        assert answer.why == NoSuggestion.NOT_LEFT_OFF
        assert (await completion(editor)).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 1


async def test_a_worker_that_leaves_off_is_watched_no_longer() -> None:
    async with supervised(policy=replace(POLICY, pause_s=0.5)) as harness:
        patient = await harness.running("until paused 1")
        # Longer than that.
        assert (await harness.ask("until cancelled", client=2, deadline_ms=1000)).text == ""
        assert (await patient).text == "paused 1 times"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_the_deadline_holds_while_the_model_loads(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with supervised("wait", str(go)) as harness:
        answer = await harness.ask("x", deadline_ms=30)
        assert (answer.text, answer.finish) == ("", "deadline")
        assert "loading" in answer.reason
        patient = harness.post("y")
        go.touch()
        assert (await completion(patient)).text == "[y|after]"


async def test_the_worker_is_asked_to_finish_before_the_deadline() -> None:
    """Its answer at the deadline is what it has by then, and must still arrive."""
    for deadline_ms, least, most in ((1000, 850, 900), (60_000, 59_500, 59_900), (0, 0, 0)):
        async with supervised() as harness:
            await harness.until("ready")
            sent: list[wire.Message] = []

            def send(message: wire.Message, sent: list[wire.Message] = sent) -> None:
                sent.append(message)

            harness.supervisor._keeper.send = send
            harness.post("x", deadline_ms=deadline_ms)
            (message,) = sent
            assert isinstance(message, wire.Complete)
            assert least <= message.deadline_ms <= most


async def test_a_newer_request_for_the_document_takes_the_place_of_the_running_one() -> None:
    async with supervised() as harness:
        old = await harness.running("until cancelled", document="a.py")
        other = harness.post("other", document="b.py")
        new = harness.post("new", document="a.py")
        answer = await old
        assert (answer.text, answer.finish) == ("", "cancelled")
        assert (await completion(new)).text == "[new|after]"
        assert (await completion(other)).text == "[other|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_a_cancelled_request_is_answered_and_its_work_stops() -> None:
    async with supervised() as harness:
        running = await harness.running("until cancelled")
        harness.supervisor.cancel(1, 1)
        harness.supervisor.cancel(1, 99)  # unknown: no effect
        assert (await running).finish == "cancelled"
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_a_cancelled_request_is_answered_by_the_worker_where_its_figures_are_wanted() -> None:
    async with supervised() as harness:
        told: list[str] = []

        async def at_work(prefix: str) -> Awaitable[Completion]:
            told.clear()
            ms = TIMEOUT_S * 1e3
            running = await harness.running(prefix, deadline_ms=ms, partials=told)
            while not told:
                await asyncio.sleep(0.001)
            return running

        running = await at_work("tell")
        harness.supervisor.cancel(1, 1, with_figures=True)
        assert (await running).text == "one\ntwo\nthree"
        assert (await harness.ask("next")).text == "[next|after]"
        hung = await at_work("hang")
        waiting = harness.post("x", client=2)
        harness.supervisor.cancel(2, 4, with_figures=True)
        assert (await completion(waiting)).why == NoSuggestion.CLIENT_CANCELLED
        harness.supervisor.cancel(1, 3, with_figures=True)
        assert (await hung).why == NoSuggestion.WORKER_ENDED


async def test_a_waiting_request_can_be_cancelled(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with supervised("wait", str(go)) as harness:
        waiting = harness.post("x")
        harness.supervisor.cancel(1, 1)
        assert (await completion(waiting)).finish == "cancelled"
        go.touch()
        assert (await harness.ask("y")).text == "[y|after]"


async def test_a_client_that_leaves_frees_the_worker() -> None:
    async with supervised() as harness:
        gone = harness.post("until cancelled", client=7)
        also_gone = harness.post("x", client=7)
        harness.supervisor.drop(7)
        assert (await harness.ask("next", client=8)).text == "[next|after]"
        assert not gone.done()
        assert not also_gone.done()
        assert harness.supervisor.report(0).n_respawns == 0


async def test_the_worker_is_told_of_closed_documents() -> None:
    async with supervised() as harness:
        for client, name in [(1, "a"), (1, "b"), (2, "c"), (2, "d"), (3, "e")]:
            await harness.ask("x", client=client, document=f"uri:{name}", path=f"/{name}")
        running = harness.post("until cancelled", document="uri:a", path="/a")
        harness.supervisor.closed(1, "uri:a")
        harness.supervisor.closed(1, "uri:never seen")
        assert (await completion(running)).finish == "cancelled"
        assert (await harness.ask("what was closed")).text == "/a"
        harness.supervisor.drop(2)
        assert (await harness.ask("what was closed")).text == "/a /c /d"


async def test_clients_may_call_their_documents_the_same() -> None:
    async with supervised() as harness:
        for client in (1, 2, 3):
            await harness.ask("x", client=client, document="first", path=f"/{client}")
        harness.supervisor.drop(1)
        assert (await harness.ask("what was closed")).text == "/1"
        harness.supervisor.closed(3, "first")
        assert (await harness.ask("what was closed")).text == "/1 /3"


async def test_what_is_not_lent_closes_no_document_of_its_path() -> None:
    async with supervised() as harness:
        await harness.ask("x", client=1, document="mine", path="/a")
        await harness.ask("x", client=2, document="sent", path="/a", lends=False)
        harness.supervisor.closed(2, "sent")
        assert (await harness.ask("what was closed")).text == ""
        harness.supervisor.drop(1)
        assert (await harness.ask("what was closed")).text == "/a"


async def test_what_native_code_prints_does_not_get_between_the_frames() -> None:
    async with supervised() as harness:
        assert (await harness.ask("print")).text == "[print|after]"
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_an_engine_that_raises_fails_that_request_alone() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        failed = await asyncio.wait_for(harness.post("raise SECRET"), TIMEOUT_S)
        assert isinstance(failed, wire.Failed)
        assert "ValueError" in failed.message
        assert "SECRET" not in str(failed)
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_garbage_as_a_request_fails_that_request_alone() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        raw = msgspec.Raw(msgspec.msgpack.encode([1, 2]))
        harness.supervisor.submit(1, wire.Complete(id=1, request=raw), reply.set_result)
        failed = await asyncio.wait_for(reply, TIMEOUT_S)
        assert isinstance(failed, wire.Failed)
        assert "not a completion request" in failed.message
        assert (await harness.ask("next")).text == "[next|after]"


async def test_a_model_that_cannot_be_loaded_fails_with_reason_and_next_step() -> None:
    async with supervised("refuse") as harness:
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
    ("how", "words"),
    [
        ("die", "last words"),
        ("crash", "last words: why it crashed"),
        ("assert", "the model file may be damaged: loader.cpp:7: why it failed"),
        ("garbage", "garbage"),
    ],
)
async def test_a_worker_that_keeps_dying_while_loading_is_given_up(how: str, words: str) -> None:
    async with supervised(how) as harness:
        state = await harness.until("failed")
        assert "3 times" in state.reason
        assert words in state.reason
        report = harness.supervisor.report(0)
        assert report.n_respawns == 2
        assert "codespec daemon restart" in report.hint


async def test_loading_that_takes_for_ever_is_given_up(tmp_path: Path) -> None:
    policy = replace(POLICY, load_s=0.05, look_s=0.01, max_load_deaths=2)
    async with supervised("wait", str(tmp_path / "never"), policy=policy) as harness:
        state = await harness.until("failed")
        assert "loading took over" in state.reason


async def test_a_worker_that_cannot_be_started_is_a_clear_failure(tmp_path: Path) -> None:
    async with supervised(command=[str(tmp_path / "missing")]) as harness:
        state = await harness.until("failed")
        assert "cannot start" in state.reason


async def test_switching_the_model_replaces_the_worker() -> None:
    async with supervised() as harness:
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
        assert report.n_respawns == 0  # nothing died of itself


async def test_switching_the_model_is_the_way_out_of_failed(tmp_path: Path) -> None:
    # The scripted worker fails by its command line, so a switch here fails again: three more
    # deaths show that it was tried anew.
    async with supervised("die") as harness:
        await harness.until("failed")
        harness.supervisor.configure(Settings(model=ModelSettings(target="/models/other.gguf")))
        assert harness.supervisor.state.state == "loading"
        await harness.until("failed")
        assert harness.supervisor.report(0).n_respawns == 4  # twice each


async def test_a_request_that_could_not_be_passed_on_is_refused() -> None:
    async with supervised() as harness:
        raw = msgspec.Raw(b"\xc4" + b"x" * wire.MAX_REQUEST_BYTES)
        with pytest.raises(wire.WireError, match="too large"):
            harness.supervisor.submit(1, wire.Complete(id=1, request=raw), lambda _: None)
        assert (await harness.ask("next")).text == "[next|after]"
