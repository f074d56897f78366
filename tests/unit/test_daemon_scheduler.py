"""Which request runs next, and which one takes another's place."""

from __future__ import annotations

import msgspec

from codespec.daemon.scheduler import PATIENCE_S, Job, Scheduler


def job(
    request_id: int,
    *,
    client: int = 1,
    document: str = "",
    arrived: float = 0.0,
    due: float | None = None,
) -> Job:
    return Job(client, request_id, document, msgspec.Raw(b""), arrived, due)


def order(scheduler: Scheduler) -> list[int]:
    ids: list[int] = []
    while (started := scheduler.start()) is not None:
        ids.append(started.request_id)
        scheduler.finish()
    return ids


def test_one_request_runs_at_a_time() -> None:
    scheduler = Scheduler()
    scheduler.add(job(1))
    scheduler.add(job(2))
    first = scheduler.start()
    assert first is not None
    assert first.request_id == 1
    assert scheduler.start() is None
    assert scheduler.finish() is first
    second = scheduler.start()
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
    scheduler.start()
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


def prefetch(request_id: int, document: str = "") -> Job:
    return Job(1, request_id, document, msgspec.Raw(b""), 0.0, None, prefetch=True)


def test_prefetches_wait_for_everything_else() -> None:
    scheduler = Scheduler()
    scheduler.add(prefetch(1))
    scheduler.add(job(2, arrived=5.0))
    assert order(scheduler) == [2, 1]


def test_a_prefetch_gives_way_to_requests_and_not_to_prefetches() -> None:
    scheduler = Scheduler()
    scheduler.add(prefetch(1, "a"))
    scheduler.start()
    assert not scheduler.must_yield
    assert [old.request_id for old in scheduler.add(prefetch(2, "b"))] == [1]
    assert not scheduler.must_yield
    scheduler.add(job(3, document="c"))
    assert scheduler.must_yield


def test_a_prefetch_ends_no_request_for_its_document() -> None:
    scheduler = Scheduler()
    scheduler.add(job(1, document="a"))
    running = scheduler.start()
    assert running is not None
    running.lingers = True
    assert scheduler.add(prefetch(2, "a")) == []
    assert not scheduler.must_yield
    assert [old.request_id for old in scheduler.add(job(3, document="a"))] == [1]
