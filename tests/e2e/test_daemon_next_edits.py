"""Next edits at the supervisor and in the worker: they wait for no completion's end, and end
none."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from codespec.cli import daemon
from codespec.daemon import wire
from codespec.daemon.edit_figures import EditFigures
from codespec.daemon.scheduler import BRIEF_S
from codespec.next_edit import Dismissed, NextEdits, NoNextEdit
from codespec.reasons import NoSuggestion
from tests.e2e.test_daemon_scheduler import Simulation, job
from tests.supervised import completion, edits, supervised

pytestmark = pytest.mark.asyncio


def brief(simulation: Simulation, request_id: int, document: str = "") -> None:
    asked = job(request_id, document=document, arrived=simulation.now, due=simulation.now + 0.5)
    asked.brief = True
    asked.new_turn(simulation.now)
    simulation.take(asked, 0.005)


@pytest.mark.parametrize("due", [None, 0.4])
async def test_a_brief_one_interrupts_what_is_at_work_which_goes_on(due: float | None) -> None:
    simulation = Simulation()
    simulation.add(1, 0.3, due)
    simulation.run(0.05)
    brief(simulation, 2)
    simulation.run(1.0)
    assert simulation.ran == [1, 2, 1]
    assert simulation.ended_at[2] <= 0.06
    assert simulation.ended_at[1] <= 0.31


async def test_what_is_due_before_a_brief_one_does_not_wait_for_it() -> None:
    simulation = Simulation()
    simulation.add(1, 0.05, 0.9 * BRIEF_S)
    simulation.run(0.01)
    brief(simulation, 2)
    simulation.run(1.0)
    assert simulation.ran == [1, 2]


async def test_a_brief_one_goes_before_what_waits_and_ends_no_prefetch() -> None:
    simulation = Simulation()
    simulation.prefetch(1, 0.1)
    simulation.run(0.01)
    brief(simulation, 2)
    simulation.run(1.0)
    assert simulation.ran == [1, 2, 1]


async def test_a_completion_that_lingers_goes_on_after_a_brief_one() -> None:
    simulation = Simulation()
    lingering = simulation.add(1, 1.0, 0.4)
    lingering.linger_s = 3.0
    simulation.run(0.4)
    lingering.linger()
    brief(simulation, 2)
    simulation.run(2.0)
    assert simulation.ran == [1, 2, 1]
    assert 1 in simulation.ended_at


async def test_a_brief_one_takes_the_place_of_its_like_alone() -> None:
    simulation = Simulation()
    scheduler = simulation.scheduler
    scheduler.add(job(1, document="a", due=0.4))
    brief(simulation, 2, "a")
    assert {each.request_id for each in scheduler.waiting} == {1, 2}
    newer = job(3, document="a", due=0.5)
    newer.brief = True
    assert [old.request_id for old in scheduler.add(newer)] == [2]
    assert [old.request_id for old in scheduler.add(job(4, document="a", due=0.5))] == [1]


async def test_edits_come_between_the_passes_of_a_completion() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        for options in ({"deadline_ms": 60_000.0}, {"prefetch": True}, {}):
            document = str(options)
            generation = harness.post("until paused 1", document=document, **options)  # type: ignore[arg-type]
            found = await edits(harness.post_edits("x\nan old name\nold", document=document))
            ((edit,),) = (found.edits,)
            assert (edit.edit.start, edit.edit.end, edit.edit.text) == (2, 13, "an new name")
            assert found.n_left == 2
            assert (await completion(generation)).why is None


async def test_an_answer_without_edits_says_why() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        stuck = harness.post_edits("hang", document="a", deadline_ms=50.0)
        older = harness.post_edits("old", document="b")
        newer = harness.post_edits("old", document="b")
        gone = harness.post_edits("old", document="c")
        harness.supervisor.cancel(1, 4)
        assert await edits(stuck) == NextEdits(why=NoNextEdit.NO_TIME)
        for given_up in (older, gone):
            assert await edits(given_up) == NextEdits(why=NoNextEdit.CANCELLED)
        # The worker hangs, and is replaced.
        assert len((await edits(newer)).edits) == 1
        assert harness.supervisor.report(0).n_respawns == 1


async def test_a_worker_that_ends_is_a_reason_too() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        generation = harness.post("until paused 1", deadline_ms=60_000.0)
        stuck = harness.post_edits("hang", deadline_ms=0.0)
        await harness.until_jobs((1, True), (2, False))
        dying = harness.post("die", client=2, deadline_ms=90.0)
        assert await edits(stuck) == NextEdits(why=NoNextEdit.FAILED)
        assert (await completion(generation)).why == NoSuggestion.WORKER_ENDED
        await completion(dying)


async def test_an_engine_that_fails_fails_that_request_alone() -> None:
    async with supervised() as harness:
        failed = await asyncio.wait_for(harness.post_edits("raise: a secret"), 30)
        assert isinstance(failed, wire.Failed)
        assert "secret" not in failed.message
        garbage = wire.FindEdits(id=9, request=msgspec.Raw(b"\x01"))
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        harness.supervisor.submit(1, garbage, reply.set_result)
        refused = await asyncio.wait_for(reply, 30)
        assert isinstance(refused, wire.Failed)
        assert refused.message.startswith("not a request for next edits")
        assert len((await edits(harness.post_edits("old"))).edits) == 1


async def test_a_next_edit_model_takes_turns_as_a_completion_does() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        long = harness.post_edits("until paused: odd", document="a", with_model=True)
        await harness.until_running(1)
        brief = harness.post_edits("old", document="a")
        beside = harness.post("", document="a")
        assert [edit.kind for edit in (await edits(brief)).edits] == ["scripted"]
        assert (await completion(beside)).why is None
        assert [edit.kind for edit in (await edits(long)).edits] == ["model"]


async def test_a_newer_one_of_a_model_takes_the_place_of_its_like_alone() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        generation = harness.post("until paused 1", document="a", deadline_ms=60_000.0)
        older = harness.post_edits("odd", document="a", with_model=True)
        newer = harness.post_edits("odd", document="a", with_model=True)
        assert await edits(older) == NextEdits(why=NoNextEdit.CANCELLED)
        assert len((await edits(newer)).edits) == 1
        assert (await completion(generation)).why is None


async def test_the_status_counts_them_and_why_there_were_none() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        assert harness.supervisor.report(0).next_edits == EditFigures()
        for text, dismissed in (("old", ()), ("new", ()), ("new", (Dismissed("", "a", "b"),))):
            await edits(harness.post_edits(text, dismissed=dismissed))
        await edits(harness.post_edits("odd", with_model=True))
        await asyncio.wait_for(harness.post_edits("raise"), 30)
        stuck = harness.post_edits("hang", document="a", deadline_ms=50.0)
        older = harness.post_edits("old", document="b")
        newer = harness.post_edits("old", document="b")
        await asyncio.gather(stuck, older, newer)
        assert harness.supervisor.report(0).next_edits == EditFigures(
            n_asked=8,
            n_proposed=3,
            n_dismissed=1,
            why_none={"no_place": 2, "failed": 1, "no_time": 1, "cancelled": 1},
        )


async def test_what_became_of_proposals_counts_after_a_late_answer_too() -> None:
    async with supervised() as harness:
        await harness.until("ready")
        long = harness.post_edits("until paused", with_model=True)
        await harness.until_running(1)
        harness.supervisor.cancel(1, 1)
        await edits(harness.post_edits("old", dismissed=(Dismissed("", "a", "b"),)))
        assert await edits(long) == NextEdits(why=NoNextEdit.CANCELLED)
        figures = harness.supervisor.report(0).next_edits
        assert (figures.n_asked, figures.n_proposed, figures.n_dismissed) == (2, 1, 1)
        assert figures.why_none == {"cancelled": 1}


async def test_the_command_line_shows_what_was_counted(capsys: pytest.CaptureFixture[str]) -> None:
    figures = EditFigures(
        n_asked=9, n_proposed=4, n_made=3, why_none={"no_place": 4, "not_sure": 1}
    )
    daemon.show(wire.StatusReport(id=1, state="ready", next_edits=figures), as_json=False)
    said = capsys.readouterr().out
    assert "4 of 9" in said
    assert "3 made, 0 dismissed" in said
    assert said.index(f"4 none: {NoNextEdit.NO_PLACE.text}") < said.index("1 none: ")
    daemon.show(wire.StatusReport(id=1, state="ready"), as_json=False)
    assert "next edit" not in capsys.readouterr().out
    daemon.show(wire.StatusReport(id=1, state="ready", next_edits=figures), as_json=True)
    assert json.loads(capsys.readouterr().out)["next_edits"]["why_none"] == figures.why_none
