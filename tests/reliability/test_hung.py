"""A worker that gets nowhere is replaced; one that is slow, as the machine is busy, lives."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from codespec.config import Settings
from codespec.daemon.health import HangLimits, Health
from codespec.requests import CompletionRequest
from codespec.system import pulse
from codespec.system.processes import module_command
from codespec.system.pulse import Pulse
from codespec.types import NO_DRAFT
from tests.engines import strict_engine
from tests.supervised import POLICY, Harness, completion, supervised

BY_CPU = replace(POLICY, grace_cpu_s=0.3, grace_s=600.0)
BY_CLOCK = replace(POLICY, grace_cpu_s=600.0, grace_s=0.2)


@asynccontextmanager
async def replaced(harness: Harness) -> AsyncGenerator[None]:
    """Afterwards another worker answers."""
    await harness.until("ready")
    pid = harness.supervisor.report(0).worker_pid
    yield
    assert (await harness.ask("next")).text == "[next|after]"
    report = harness.supervisor.report(0)
    assert report.worker_pid != pid
    assert report.n_respawns == 1


def has_said(harness: Harness, how: str) -> bool:
    reasons = [state.reason for state in harness.states]
    return any("hung" in reason and how in reason for reason in reasons)


@pytest.mark.asyncio
@pytest.mark.parametrize("deadline_ms", [50.0, 0.0])
async def test_a_loop_that_spins_is_ended(deadline_ms: float) -> None:
    async with supervised(policy=BY_CPU) as harness, replaced(harness):
        answer = await harness.ask("spin", deadline_ms=deadline_ms)
        assert answer.text == ""
    assert has_said(harness, "processor time")


@pytest.mark.asyncio
async def test_one_that_sleeps_is_ended() -> None:
    async with supervised(policy=BY_CLOCK) as harness, replaced(harness):
        answer = await harness.ask("hang", deadline_ms=50)
        assert (answer.text, answer.finish) == ("", "deadline")
    assert has_said(harness, "in 0.2 s")


@pytest.mark.asyncio
@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be stopped there")
async def test_one_that_is_stopped_is_ended() -> None:
    async with supervised(policy=BY_CLOCK) as harness, replaced(harness):
        os.kill(harness.supervisor.report(0).worker_pid, signal.SIGSTOP)
        assert (await harness.ask("x", deadline_ms=50)).finish == "deadline"


@pytest.mark.asyncio
async def test_one_that_spins_while_it_loads_is_ended() -> None:
    policy = replace(BY_CPU, load_s=600.0, max_load_deaths=1)
    async with supervised("spin", policy=policy) as harness:
        assert "processor time" in (await harness.until("failed")).reason


@pytest.mark.asyncio
async def test_a_slow_one_lives() -> None:
    """Neither a deadline that is long gone, nor a cancel that is not heeded, is a hang: what counts
    are steps, here a fifth of what one may take, eight times that in all."""
    async with supervised(policy=BY_CPU) as harness:
        await harness.until("ready")
        slow = harness.post("steps of 0.06 40", deadline_ms=1)
        assert (await completion(slow)).finish == "deadline"
        assert (await harness.ask("next")).text == "[next|after]"
        assert harness.supervisor.report(0).n_respawns == 0


@pytest.mark.asyncio
@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be stopped there")
async def test_a_starved_one_lives() -> None:
    """It gets no processor at all for longer than a busy one may take for a step."""
    async with supervised(policy=replace(BY_CPU, grace_cpu_s=0.05)) as harness:
        await harness.until("ready")
        pid = harness.supervisor.report(0).worker_pid
        os.kill(pid, signal.SIGSTOP)
        starved = harness.post("x")
        assert (await harness.ask("y", client=2, deadline_ms=500)).finish == "deadline"
        os.kill(pid, signal.SIGCONT)
        assert (await completion(starved)).text == "[x|after]"
        assert harness.supervisor.report(0).worker_pid == pid


@pytest.mark.asyncio
async def test_a_model_that_loads_and_answers_lives() -> None:
    policy = replace(BY_CPU, load_s=600.0, max_load_deaths=1)
    worker = module_command("codespec.daemon.worker")
    async with supervised(policy=policy, command=worker) as harness:
        await harness.until("ready")
        assert (await harness.ask("def f(a, b):\n    return ")).finish in ("stop", "length")
        assert harness.supervisor.report(0).n_respawns == 0


def test_each_part_of_a_pass_is_a_step(model_options: Settings) -> None:
    """A pass of a large model takes seconds, over one token, too."""
    engine = strict_engine(model_options)
    steps = ctypes.c_uint64.from_address(pulse.steps_address())
    context = engine.context(CompletionRequest("def f(a, b):\n    return ", "\n"))
    engine.target.prefill(context.prompt, lambda: False)
    before = steps.value
    engine.target.decode(context.prompt[engine.target.n_cached :], NO_DRAFT)
    assert steps.value - before > 50
    engine.close()


def test_a_pause_of_who_looks_is_not_held_against_the_worker() -> None:
    """The machine sleeps, say."""
    limits = HangLimits(cpu_s=600.0, clock_s=0.1, load_s=0.1, look_s=0.01)
    one = Pulse()
    one.started()
    health = Health(os.getpid(), one, limits)
    assert health.look(loads=False) == ""
    threading.Event().wait(0.3)
    assert health.look(loads=False) == ""
