"""The order of waiting at the supervisor: what can wait is left off for what is due soon."""

from __future__ import annotations

import asyncio

import pytest

from codespec.reasons import NoSuggestion
from tests.supervised import completion, supervised

pytestmark = pytest.mark.asyncio


async def test_what_can_wait_is_left_off_for_what_is_due_soon_and_goes_on() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        told: list[str] = []
        patient = harness.post("until paused 3", partials=told, deadline_ms=300_000)
        for i in range(3):
            assert (await harness.ask(f"{i}", deadline_ms=5000)).text == f"[{i}|after]"
        assert (await completion(patient)).text == "paused 3 times"
        assert told == ["turn 0", "turn 1", "turn 2"]


async def test_two_that_can_wait_take_turns() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        first, second = harness.post("until paused 2"), harness.post("until paused 2", client=2)
        assert (await completion(first)).text == "paused 2 times"
        assert second.done() or harness.jobs == [(2, False)]
        harness.supervisor.cancel(2, 2)
        await completion(second)


@pytest.mark.parametrize("n_long", [2, 3, 8])
async def test_a_new_one_has_its_turn_beside_long_ones(n_long: int) -> None:
    async with supervised() as harness:
        await harness.until("ready")
        for client in range(1, n_long + 1):
            harness.post("until paused 1000000", client=client, deadline_ms=300_000)
            await harness.until_running(client)
        for _ in range(3):
            assert (await harness.ask("new", deadline_ms=300_000)).text == "[new|after]"
        for client in range(1, n_long + 1):
            harness.supervisor.drop(client)
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_a_prefetch_takes_turns_with_what_can_wait() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 2")
        prefetch = harness.post("until paused 1", client=2, prefetch=True)
        await completion(prefetch)
        assert not patient.done()
        harness.post("until paused 9", client=2, prefetch=True)
        assert (await completion(patient)).text == "paused 2 times"
        assert harness.supervisor.report(0).n_requests == 1


@pytest.mark.parametrize("is_left_off", [False, True])
async def test_a_prefetch_makes_nobody_wait_who_is_due_soon(is_left_off: bool) -> None:
    async with supervised() as harness:
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
async def test_what_was_left_off_can_be_given_up(how: str) -> None:
    async with supervised() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 9", document="a.py", client=2)
        urgent = harness.post("until cancelled", deadline_ms=9000)
        await harness.until_jobs((1, True), (2, False))
        newer = None
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
        if newer is not None:
            assert (await completion(newer)).text == "[newer|after]"
        assert (await harness.ask("next")).text == "[next|after]"
        assert patient.done() == (how != "leave")
        assert harness.supervisor.report(0).n_respawns == 0


async def test_what_was_left_off_goes_on_when_the_other_is_cancelled() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 1")
        harness.post("until cancelled", deadline_ms=9000)
        await harness.until_jobs((1, True), (2, False))
        harness.supervisor.cancel(1, 2)
        assert (await completion(patient)).text == "paused 1 times"


async def test_cancelling_a_request_that_is_just_being_left_off() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        for i in range(20):
            patient = harness.post("until paused 9", client=2)
            urgent = harness.post("urgent", deadline_ms=9000)
            await asyncio.sleep(i * 1e-4)
            harness.supervisor.cancel(2, 2 * i + 1)
            assert (await completion(patient)).finish == "cancelled"
            assert (await completion(urgent)).text == "[urgent|after]"
        assert harness.supervisor.report(0).n_respawns == 0


async def test_a_deadline_holds_for_what_was_left_off() -> None:
    async with supervised() as harness:
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
        assert answer.why == NoSuggestion.NO_ANSWER_IN_TIME
        harness.supervisor.cancel(1, 2)
        await completion(urgent)
        assert (await harness.ask("next")).text == "[next|after]"


async def test_what_was_left_off_is_lost_with_its_worker() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        patient = harness.post("until paused 1")
        dead = harness.post("die", deadline_ms=9000)
        for reply in (patient, dead):
            answer = await completion(reply)
            assert (answer.text, answer.finish) == ("", "empty")
            assert "SIGKILL" in answer.reason
        assert (await harness.ask("next")).text == "[next|after]"
