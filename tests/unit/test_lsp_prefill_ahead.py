"""When the prompt of the next place is read."""

from __future__ import annotations

import asyncio

import pytest

from codespec_lsp.suggestions.prefill_ahead import PrefillAhead


async def until(condition) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), 30)


@pytest.mark.asyncio
async def test_the_place_that_the_user_stays_at_is_read_once() -> None:
    read: list[str] = []
    ahead = PrefillAhead(read.append)
    ahead.ready(True)
    ahead.moved("a", 1, lambda: "passed by")
    ahead.moved("a", 2, lambda: "stayed")
    await until(lambda: read)
    ahead.moved("a", 2, lambda: "again")
    ahead.moved("a", 3, lambda: "next")
    await until(lambda: len(read) == 2)
    assert read == ["stayed", "next"]


@pytest.mark.asyncio
async def test_a_request_needs_no_reading_ahead() -> None:
    read: list[str] = []
    ahead = PrefillAhead(read.append)
    ahead.ready(True)
    ahead.moved("a", 1, lambda: "line 1")
    ahead.asked("a", 1)
    ahead.moved("a", 1, lambda: "typing on in line 1")
    ahead.moved("b", 1, lambda: None)  # closed meanwhile
    await until(lambda: ahead._timer is None)
    assert read == []
    ahead.forget("a")
    ahead.moved("a", 1, lambda: "opened again")
    await until(lambda: read)
    assert read == ["opened again"]


def test_what_comes_before_the_model_is_ready_is_read_then() -> None:
    read: list[str] = []
    ahead = PrefillAhead(read.append)
    ahead.moved("a", 1, lambda: "a")
    ahead.moved("b", 7, lambda: "b")
    assert read == []
    ahead.ready(True)
    assert read == ["b"]
    ahead.ready(True)
    assert read == ["b"]


@pytest.mark.asyncio
async def test_nothing_of_a_document_that_was_closed_is_read() -> None:
    read: list[str] = []
    ahead = PrefillAhead(read.append)
    ahead.moved("a", 1, lambda: "what was asked there")
    ahead.forget("a")
    ahead.ready(True)
    ahead.moved("a", 1, lambda: "opened again")
    ahead.forget("b")
    await until(lambda: read)
    assert read == ["opened again"]


@pytest.mark.asyncio
async def test_what_a_model_that_ended_had_read_is_read_again() -> None:
    read: list[str] = []
    ahead = PrefillAhead(read.append)
    ahead.ready(True)
    ahead.moved("a", 1, lambda: "a")
    await until(lambda: read)
    ahead.ready(True)
    ahead.moved("a", 1, lambda: "again")
    ahead.ready(False)
    ahead.moved("a", 1, lambda: "while it loads")
    ahead.ready(False)
    ahead.ready(True)
    ahead.moved("a", 1, lambda: "again")
    await asyncio.sleep(0.02)
    assert read == ["a", "while it loads"]
    ahead.ready(False)
    ahead.ready(True)
    ahead.moved("a", 1, lambda: "once it is there")
    await until(lambda: len(read) == 3)
