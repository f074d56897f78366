"""Which request runs next, and which one takes another's place."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise

import msgspec
import pytest

from codespec.daemon.scheduler import (
    HEAD_START_S,
    MAX_SHARING,
    PATIENCE_S,
    ROUND_S,
    TURN_S,
    YOUNG_S,
    ScheduledRequest,
    Scheduler,
)


def job(
    request_id: int,
    *,
    client: int = 1,
    document: str = "",
    arrived: float = 0.0,
    due: float | None = None,
) -> ScheduledRequest:
    return ScheduledRequest(client, request_id, document, msgspec.Raw(b""), arrived, due)


def order(scheduler: Scheduler) -> list[int]:
    ids: list[int] = []
    while (started := scheduler.start(0.0)) is not None:
        ids.append(started.request_id)
        scheduler.finish()
    return ids


def test_one_request_runs_at_a_time() -> None:
    scheduler = Scheduler()
    scheduler.add(job(1))
    scheduler.add(job(2))
    first = scheduler.start(0.0)
    assert first is not None
    assert first.request_id == 1
    assert scheduler.start(0.0) is None
    assert scheduler.finish() is first
    second = scheduler.start(0.0)
    assert second is not None
    assert second.request_id == 2


def test_the_earliest_deadline_goes_first() -> None:
    scheduler = Scheduler()
    for request_id, due in ((1, 3.0), (2, 0.4), (3, 0.5)):
        scheduler.add(job(request_id, client=request_id, due=due))
    assert order(scheduler) == [2, 3, 1]


def test_a_request_without_deadline_waits_but_not_for_ever() -> None:
    scheduler = Scheduler()
    scheduler.add(job(1, arrived=0.0))
    scheduler.add(job(2, client=2, arrived=0.1, due=0.5))
    scheduler.add(job(3, client=3, arrived=PATIENCE_S, due=PATIENCE_S + 0.4))
    assert order(scheduler) == [2, 1, 3]


def test_a_deadline_far_away_is_waited_for_no_longer() -> None:
    scheduler = Scheduler()
    scheduler.add(job(1, arrived=0.0, due=300.0))
    scheduler.add(job(2, client=2, arrived=0.1, due=0.5))
    scheduler.add(job(3, client=3, arrived=PATIENCE_S, due=PATIENCE_S + 0.4))
    assert order(scheduler) == [2, 1, 3]


def test_equal_deadlines_keep_their_order_of_arrival() -> None:
    scheduler = Scheduler()
    for request_id in range(20):
        scheduler.add(job(request_id, due=1.0))
    assert order(scheduler) == list(range(20))


def test_a_newer_request_for_the_same_document_takes_the_place_of_a_waiting_one() -> None:
    scheduler = Scheduler()
    old = job(1, document="a.py")
    assert scheduler.add(old) == []
    assert scheduler.add(job(2, document="a.py")) == [old]


def test_a_newer_request_takes_the_place_of_a_running_one() -> None:
    scheduler = Scheduler()
    old = job(1, document="a.py")
    scheduler.add(old)
    scheduler.start(0.0)
    assert scheduler.add(job(2, document="a.py")) == [old]
    old.answered = True  # it may hold the worker for a while, but nobody waits for it
    assert old not in scheduler.jobs
    assert scheduler.add(job(3, document="b.py")) == []


def test_other_documents_and_other_clients_are_left_alone() -> None:
    scheduler = Scheduler()
    scheduler.add(job(1, document="a.py"))
    assert scheduler.add(job(2, document="b.py")) == []
    assert scheduler.add(job(3, document="a.py", client=2)) == []
    assert scheduler.add(job(4)) == []
    assert scheduler.add(job(5)) == []  # without a document, nothing is the same
    assert order(scheduler) == [1, 2, 3, 4, 5]


def test_requests_are_found_by_client_and_id() -> None:
    scheduler = Scheduler()
    mine, theirs = job(7), job(7, client=2)
    scheduler.add(mine)
    scheduler.add(theirs)
    assert scheduler.find(1, 7) is mine
    assert scheduler.find(2, 7) is theirs
    assert scheduler.find(3, 7) is None
    assert scheduler.of_client(2) == [theirs]
    scheduler.remove(mine)
    assert scheduler.find(1, 7) is None
    assert order(scheduler) == [7]


def prefetch(
    request_id: int, document: str = "", *, client: int = 1, arrived: float = 0.0
) -> ScheduledRequest:
    due = arrived + PATIENCE_S
    return ScheduledRequest(
        client, request_id, document, msgspec.Raw(b""), arrived, due, prefetch=True
    )


def test_prefetches_wait_for_what_is_due_soon_however_long() -> None:
    scheduler = Scheduler()
    scheduler.add(prefetch(1))
    scheduler.add(job(2, arrived=0.99 * PATIENCE_S, due=PATIENCE_S + 0.4))
    scheduler.add(job(3, client=2, arrived=3.0))
    assert order(scheduler) == [2, 1, 3]


def test_a_prefetch_ends_for_what_is_due_soon_alone() -> None:
    scheduler = Scheduler()
    scheduler.add(prefetch(1, "a"))
    scheduler.start(0.0)
    assert not scheduler.must_yield(0.0)
    assert [old.request_id for old in scheduler.add(prefetch(2, "b"))] == [1]
    assert not scheduler.must_yield(0.0)
    scheduler.add(job(3, client=2))
    assert not scheduler.must_yield(0.9 * TURN_S)
    assert scheduler.must_yield(1.1 * TURN_S)
    assert not scheduler.must_end  # but left off: its turn is over
    scheduler.add(job(4, document="c", due=0.4))
    assert scheduler.must_yield(0.0)
    assert scheduler.must_end


def test_a_prefetch_ends_no_request_for_its_document() -> None:
    scheduler = Scheduler()
    scheduler.add(job(1, document="a", due=3.0))
    running = scheduler.start(0.0)
    assert running is not None
    assert scheduler.add(prefetch(2, "a")) == []
    assert not scheduler.must_yield(2.0)
    running.lingers = True
    assert not scheduler.must_yield(3.0)
    assert [old.request_id for old in scheduler.add(job(3, document="a"))] == [1]


class Simulation:
    """Time passes in steps of a millisecond, and what is asked to yield does so at once."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.now = 0.0
        self.left_s: dict[ScheduledRequest, float] = {}
        self.ended_at: dict[int, float] = {}
        self.ran: list[int] = []
        """Ids in the order of their turns."""

    def add(self, request_id: int, takes_s: float, due: float | None = None) -> ScheduledRequest:
        return self.take(job(request_id, client=request_id, arrived=self.now, due=due), takes_s)

    def prefetch(self, request_id: int, takes_s: float) -> ScheduledRequest:
        return self.take(prefetch(request_id, client=request_id, arrived=self.now), takes_s)

    def take(self, added: ScheduledRequest, takes_s: float) -> ScheduledRequest:
        self.scheduler.add(added)
        self.left_s[added] = takes_s
        return added

    def run(self, seconds: float, every_step: Callable[[], None] = lambda: None) -> None:
        end = self.now + seconds
        while self.now < end:
            every_step()
            if self.scheduler.must_yield(self.now):
                if self.scheduler.must_end:
                    self.scheduler.finish()
                else:
                    self.scheduler.pause(self.now, progressed=True)
            started = self.scheduler.start(self.now)
            if started is not None:
                started.paused = False
                self.ran.append(started.request_id)
            self.now += 1e-3
            running = self.scheduler.running
            if running is not None:
                self.left_s[running] -= 1e-3
                if self.left_s[running] <= 0:
                    self.scheduler.finish()
                    self.ended_at[running.request_id] = self.now


def test_what_is_due_soon_interrupts_what_can_wait() -> None:
    simulation = Simulation()
    for due in (None, 300.0):
        simulation.add(1, 1.0, due)
        simulation.run(0.05)
        simulation.add(2, 0.03, simulation.now + 0.4)
        started = simulation.now
        simulation.run(2.0)
        assert simulation.ended_at[2] - started <= 0.04
        assert simulation.ran[-3:] == [1, 2, 1]
        assert 1 in simulation.ended_at


def test_of_two_that_are_due_soon_the_later_one_waits() -> None:
    simulation = Simulation()
    simulation.add(1, 0.3, 0.4)
    simulation.run(0.01)
    simulation.add(2, 0.1, 0.41)
    simulation.run(1.0)
    assert simulation.ran == [1, 2]


def test_two_that_can_wait_share() -> None:
    simulation = Simulation()
    jobs = [simulation.add(request_id, 5.0) for request_id in (1, 2)]
    for _ in range(20):
        simulation.run(2 * TURN_S)
        assert abs(simulation.left_s[jobs[0]] - simulation.left_s[jobs[1]]) <= 1.1 * TURN_S
    assert simulation.ran[:4] == [1, 2, 1, 2]


def test_a_short_one_does_not_wait_for_the_end_of_a_long_one() -> None:
    simulation = Simulation()
    simulation.add(1, 60.0)
    simulation.run(30.0)
    simulation.add(2, 0.1)
    simulation.run(1.0)
    assert simulation.ended_at[2] <= 30.0 + TURN_S + 0.11


def test_a_prefetch_takes_turns_with_long_ones() -> None:
    simulation = Simulation()
    for request_id in range(1, 4):
        simulation.add(request_id, 60.0)
    simulation.run(5.0)
    simulation.prefetch(8, 0.1)
    simulation.run(3 * TURN_S + 0.11)
    assert 8 in simulation.ended_at
    long = simulation.prefetch(9, 9.0)
    simulation.run(4.0)
    # It goes first while it is new. Then it is one of three: of the long ones, two share.
    left_s = simulation.left_s[long]
    simulation.run(6.0)
    assert 2.0 - TURN_S <= left_s - simulation.left_s[long] <= 2.0 + TURN_S


def test_prefetches_make_nobody_wait_who_is_due_soon() -> None:
    """Not even one that has waited long, beside a long generation."""
    simulation = Simulation()
    simulation.add(1, 60.0)
    numbers = count(10)

    def prefetch_again() -> None:
        if not any(job.prefetch for job in simulation.scheduler.jobs):
            simulation.prefetch(next(numbers) + 1000, 3.0)

    for _ in range(40):
        simulation.run(0.47, prefetch_again)
        request_id, asked_at = next(numbers), simulation.now
        simulation.add(request_id, 0.03, asked_at + 0.4)
        simulation.run(0.05, prefetch_again)
        # The long one, too long without a turn, may have one first; prefetches never.
        assert simulation.ended_at.get(request_id, asked_at + 0.05) <= asked_at + 0.05
    asked = [n for n in simulation.ended_at if 10 <= n < 1000]
    assert len(asked) >= 38


def test_many_long_ones_share_a_few_at_a_time_in_their_order() -> None:
    """All at once, each would be done when all are."""
    simulation = Simulation()
    for request_id in range(8):
        simulation.add(request_id, 5.0)
    simulation.run(50.0)
    assert list(simulation.ended_at) == list(range(8))
    for i, ended in enumerate(simulation.ended_at.values()):
        assert (
            ended
            <= 8 * YOUNG_S + (i // MAX_SHARING + 1) * MAX_SHARING * (5.0 - YOUNG_S) + TURN_S + 0.1
        )


@pytest.mark.parametrize("n_long", [1, 2, 3, 8, 64])
def test_a_new_one_waits_for_nobody_who_was_served_for_long(n_long: int) -> None:
    simulation = Simulation()
    for request_id in range(n_long):
        simulation.add(request_id, 300.0, 300.0)
    simulation.run(30.0 + n_long)
    for request_id in range(100, 120):
        asked_at = simulation.now
        simulation.add(request_id, 0.5 * YOUNG_S, asked_at + 300.0)
        simulation.run(3.0)
        assert simulation.ended_at[request_id] <= asked_at + 0.5 * YOUNG_S + TURN_S + 0.01


@pytest.mark.parametrize("n_long", [3, 4, 8])
def test_however_many_never_end_each_gets_its_share(n_long: int) -> None:
    simulation = Simulation()
    jobs = [simulation.add(request_id, 1e6) for request_id in range(n_long)]
    for n_rounds in range(1, 4):
        simulation.run(n_long * ROUND_S)
        for job in jobs:
            assert abs(1e6 - simulation.left_s[job] - n_rounds * ROUND_S) <= 1.1 * ROUND_S


def test_new_ones_without_end_leave_long_ones_a_share() -> None:
    simulation = Simulation()
    long = simulation.add(1, 60.0)
    simulation.run(5.0)
    numbers, left_s = count(10), simulation.left_s[long]

    def ask_again() -> None:
        if len(simulation.scheduler.jobs) < 3:
            simulation.add(next(numbers), 0.1)

    simulation.run(3 * PATIENCE_S, ask_again)
    assert left_s - simulation.left_s[long] >= 0.7 * 3 * PATIENCE_S / HEAD_START_S * TURN_S


def test_a_full_house_makes_no_editor_wait() -> None:
    simulation = Simulation()
    for request_id in range(8):
        simulation.add(request_id, 60.0)
    simulation.run(2.0)
    simulation.add(9, 0.03, simulation.now + 0.4)
    simulation.run(0.1)
    assert simulation.ended_at[9] <= 2.04


def test_nobody_types_so_much_that_the_rest_never_ends() -> None:
    """Editors that take all there is leave what can wait its share, and wait for no more."""
    simulation = Simulation()
    simulation.add(1, 3 * TURN_S)
    numbers = count(10)

    def keep_typing() -> None:
        if not any(job.request_id >= 10 for job in simulation.scheduler.waiting):
            simulation.add(next(numbers), 0.03, simulation.now + 0.4)

    simulation.run(4 * PATIENCE_S, keep_typing)
    assert 2 * PATIENCE_S <= simulation.ended_at[1] <= 3 * PATIENCE_S + HEAD_START_S
    others = [at for request_id, at in simulation.ended_at.items() if request_id >= 10]
    assert max(b - a for a, b in pairwise(others)) <= TURN_S + 0.07


def test_what_is_paused_can_be_taken_the_place_of_and_forgotten() -> None:
    simulation = Simulation()
    old = simulation.add(1, 1.0)
    old.document = "a.py"
    simulation.run(0.05)
    simulation.add(2, 1.0, simulation.now + 0.4)
    simulation.run(0.05)
    assert old.paused
    scheduler = simulation.scheduler
    assert scheduler.find(1, 1) is old
    assert scheduler.add(job(3, document="a.py")) == [old]
    scheduler.remove(old)
    assert old not in scheduler.jobs


def test_passes_that_are_longer_than_pauses_in_typing_are_done_now_and_then() -> None:
    """A pass that is cut short in a hurry begins again; after so long a wait it is not."""
    scheduler, now, n_done = Scheduler(), 0.0, 0
    patient = job(1)
    scheduler.add(patient)
    scheduler.start(now)
    for i in range(2, 300):  # a key every 0.3 s; a pass of the patient one takes 1 s
        now += 0.27
        scheduler.add(job(i, arrived=now, due=now + 0.4))
        assert scheduler.must_yield(now)
        assert scheduler.is_urgent
        scheduler.pause(now, progressed=False)
        if scheduler.start(now) is patient:
            now += 1.0
            n_done += 1
            assert scheduler.must_yield(now)
            assert not scheduler.is_urgent
            scheduler.pause(now, progressed=True)
            scheduler.start(now)
        now += 0.03
        running = scheduler.finish()
        assert running is not None
        assert running.request_id == i
        assert scheduler.start(now) is patient
    assert now / (1.5 * PATIENCE_S) <= n_done <= now / PATIENCE_S
