"""The supervisor with a real worker process that does what it is told, for tests."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codespec.config import Settings
from codespec.daemon import payload, wire
from codespec.daemon.keeper import RestartPolicy
from codespec.daemon.supervisor import Supervisor
from codespec.next_edit import Dismissed, NextEditRequest, NextEdits
from codespec.requests import Completion, CompletionRequest
from tests import scripted_worker

TIMEOUT_S = 30.0
POLICY = RestartPolicy(grace_s=0.2, look_s=0.02, backoff_s=0.01, max_backoff_s=0.05)


class Harness:
    def __init__(self, command: Sequence[str], policy: RestartPolicy) -> None:
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
        linger_ms: float = 0.0,
        partials: list[str] | None = None,
        prefetch: bool = False,
        lends: bool = True,
    ) -> asyncio.Future[wire.Completed | wire.Failed]:
        self._n_ids += 1
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        message = wire.Complete(
            id=self._n_ids,
            request=payload.pack(CompletionRequest(prefix, "after", path=path, lends=lends)),
            document=document,
            deadline_ms=deadline_ms,
            linger_ms=linger_ms,
            stream=partials is not None,
            prefetch=prefetch,
        )

        def take(said: wire.Answer | wire.Partial) -> None:
            if isinstance(said, wire.Partial):
                assert partials is not None
                partials.append(payload.unpack_progress(said.progress).text)
            else:
                reply.set_result(said)  # raises if there is a second reply

        self.supervisor.submit(client, message, take)
        return reply

    def post_edits(
        self,
        text: str,
        *,
        client: int = 1,
        document: str = "",
        deadline_ms: float = 60_000.0,
        with_model: bool = False,
        dismissed: tuple[Dismissed, ...] = (),
    ) -> asyncio.Future[wire.Answer]:
        self._n_ids += 1
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        request = payload.pack(NextEditRequest(text, 0, document=document, dismissed=dismissed))
        message = wire.FindEdits(
            id=self._n_ids,
            request=request,
            document=document,
            deadline_ms=deadline_ms,
            with_model=with_model,
        )
        self.supervisor.submit(client, message, reply.set_result)
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

    async def until_running(self, request_id: int) -> None:
        async def wait() -> None:
            while (request_id, False) not in self.jobs[-1:]:
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


async def edits(reply: asyncio.Future[wire.Answer]) -> NextEdits:
    message = await asyncio.wait_for(reply, TIMEOUT_S)
    assert isinstance(message, wire.EditsFound), message
    return payload.unpack_edits(message.edits)


@asynccontextmanager
async def supervised(
    *how: str, policy: RestartPolicy = POLICY, command: Sequence[str] = ()
) -> AsyncGenerator[Harness]:
    """how: arguments of the scripted worker; it and all that it started is gone in the end."""
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
