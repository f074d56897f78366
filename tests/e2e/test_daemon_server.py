"""The daemon's front door, over Unix sockets and over TCP with a key."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import stat
import struct
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codespec.config import DaemonSettings, Settings
from codespec.daemon import logs, wire
from codespec.daemon.address import Address, Transport, address_of, read_port_file
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.keeper import RestartPolicy
from codespec.daemon.listener import DaemonServer
from codespec.requests import CompletionRequest
from tests import scripted_worker

TIMEOUT_S = 30.0
WORKER = [sys.executable, scripted_worker.SCRIPT, "ok"]

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(params=["unix", "tcp"])
def transport(request: pytest.FixtureRequest) -> Transport:
    found: Transport = request.param
    return found


@asynccontextmanager
async def serving(transport: Transport) -> AsyncGenerator[tuple[DaemonServer, Address]]:
    settings = Settings()
    address = address_of(settings, transport)
    server = DaemonServer(settings, address, command=WORKER, policy=RestartPolicy(backoff_s=0.01))
    task = asyncio.create_task(server.run())
    await asyncio.wait_for(server.listening.wait(), TIMEOUT_S)
    try:
        yield server, address
    finally:
        server.stop()
        await asyncio.wait_for(task, TIMEOUT_S)


async def streams(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.transport == "unix":
        return await asyncio.open_unix_connection(address.socket)
    port_file = read_port_file(address)
    assert port_file is not None
    return await asyncio.open_connection("127.0.0.1", port_file.port)


def key_of(address: Address) -> str:
    port_file = read_port_file(address)
    return port_file.key if port_file else ""


async def converse(address: Address, *frames: bytes | bytearray) -> list[wire.FromDaemon]:
    """Send bytes, read replies until the daemon closes."""
    reader, writer = await streams(address)
    found: list[wire.FromDaemon] = []
    writer.write(b"".join(frames))
    while True:
        message = await asyncio.wait_for(wire.read(reader, wire.daemon_decoder), TIMEOUT_S)
        if message is None:
            break
        found.append(message)
    writer.close()
    return found


def hello(address: Address, **fields: Any) -> bytearray:
    from codespec import __version__

    said: dict[str, Any] = {"version": __version__, "key": key_of(address), **fields}
    return wire.frame(wire.Hello(**said))


async def works(address: Address) -> None:
    """A well-behaved client still gets its answer."""
    client = AsyncClient(Settings(), transport=address.transport)
    request = CompletionRequest("a", "b", deadline_ms=TIMEOUT_S * 1e3, document="doc")
    try:
        assert (await client.complete(request)).text == "[a|b]"
    finally:
        await client.close()


async def test_two_clients_share_one_daemon(transport: Transport) -> None:
    async with serving(transport) as (server, _):
        states: list[str] = []
        first = AsyncClient(Settings(), lambda s: states.append(s.state), transport)
        second = AsyncClient(Settings(), transport=transport)
        request = CompletionRequest("a", deadline_ms=2e4, document="doc")
        answers = await asyncio.gather(first.complete(request), second.complete(request))
        assert [a.text for a in answers] == ["[a|]", "[a|]"]
        assert server.supervisor.report(0).n_respawns == 0
        assert states[0] == "starting"
        assert states[-1] == "ready"
        await first.close()
        await second.close()


async def test_a_listener_that_fails_ends_nothing(transport: Transport) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("boom")

    async with serving(transport):
        client = AsyncClient(Settings(), fail, transport)
        request = CompletionRequest("a", "b", deadline_ms=2e4, document="doc")
        told = dataclasses.replace(request, prefix="tell", deadline_ms=300.0)
        for _ in range(2):
            assert (await client.complete(request)).text == "[a|b]"
            await client.complete(told, fail)
        assert (await client.complete(request)).text == "[a|b]"
        await client.close()


async def test_a_name_that_no_message_can_hold_is_refused(transport: Transport) -> None:
    async with serving(transport):
        client = AsyncClient(Settings(), transport=transport)
        request = CompletionRequest("a", "b", deadline_ms=2e4, document="doc")
        unnamed = dataclasses.replace(request, document="d\ud800")
        answer = await client.complete(unnamed)
        assert (answer.text, answer.finish) == ("", "empty")
        assert "surrogates" in answer.reason
        client.prefetch(unnamed)
        client.closed("d\ud800")
        assert (await client.complete(request)).text == "[a|b]"
        await client.close()


async def test_large_texts_fit_through(transport: Transport) -> None:
    async with serving(transport):
        client = AsyncClient(Settings(), transport=transport)
        prefix = "é" * 2_000_000
        answer = await client.complete(CompletionRequest(prefix, deadline_ms=2e4))
        assert answer.text == f"[{prefix}|]"
        too_much = CompletionRequest("é" * wire.MAX_FRAME_BYTES, deadline_ms=2e4)
        answer = await client.complete(too_much)
        assert (answer.text, "too large" in answer.reason) == ("", True)
        await client.close()


async def test_a_client_that_sends_garbage_is_told_and_shut_out(transport: Transport) -> None:
    garbage = struct.pack("<I", 3) + b"\xc1\xc1\xc1"
    async with serving(transport) as (_, address):
        (reply,) = await converse(address, garbage)
        assert isinstance(reply, wire.Failed)
        assert reply.id == 0
        welcome, reply = await converse(address, hello(address), garbage)
        assert isinstance(welcome, wire.Welcome)
        assert isinstance(reply, wire.Failed)
        assert "not a message" in reply.message
        for frame in (struct.pack("<I", 2**31), b"\x09"):
            (reply,) = await converse_and_hang_up(address, frame)
            assert isinstance(reply, wire.Failed)
        await works(address)


async def converse_and_hang_up(address: Address, frame: bytes) -> list[wire.FromDaemon]:
    reader, writer = await streams(address)
    writer.write(frame)
    writer.write_eof()
    found: list[wire.FromDaemon] = []
    while (message := await wire.read(reader, wire.daemon_decoder)) is not None:
        found.append(message)
    writer.close()
    return found


async def test_the_first_message_must_be_a_short_greeting(transport: Transport) -> None:
    async with serving(transport) as (_, address):
        (reply,) = await converse(address, wire.frame(wire.Status(id=1)))
        assert isinstance(reply, wire.Failed)
        (reply,) = await converse(address, hello(address, version="x" * 5000))
        assert isinstance(reply, wire.Failed)
        await works(address)


async def test_another_version_is_refused_with_the_next_step(transport: Transport) -> None:
    async with serving(transport) as (_, address):
        (reply,) = await converse(address, hello(address, version="0.0.0"))
        assert isinstance(reply, wire.Failed)
        assert "0.0.0" in reply.message
        assert "restart" in reply.hint


async def test_tcp_needs_the_key() -> None:
    async with serving("tcp") as (_, address):
        for key in ("", "x", key_of(address)[:-1]):
            (reply,) = await converse(address, hello(address, key=key))
            assert isinstance(reply, wire.Failed)
            assert reply.message == "wrong key"
        await works(address)


async def test_the_socket_is_for_the_user_alone_and_goes_away() -> None:
    async with serving("unix") as (_, address):
        assert stat.S_IMODE(address.socket.stat().st_mode) == 0o600
    assert not address.socket.exists()
    async with serving("tcp") as (_, address):
        assert stat.S_IMODE(address.port_file.stat().st_mode) == 0o600
    assert not address.port_file.exists()


async def test_files_left_behind_by_a_killed_daemon_do_not_matter(transport: Transport) -> None:
    address = address_of(Settings(), transport)
    address.socket.write_text("stale")
    address.port_file.write_text('{"port": 1, "key": ""}')
    async with serving(transport) as (_, address):
        await works(address)


async def test_status_configure_and_shutdown(transport: Transport) -> None:
    async with serving(transport) as (server, address):
        await works(address)
        other = msgspec.convert({"model": {"target": "/m.gguf"}}, Settings)
        replies = await converse(
            address,
            hello(address),
            wire.frame(wire.Status(id=1)),
            wire.frame(wire.Configure(id=2, settings=other)),
            wire.frame(wire.Shutdown(id=3)),
        )
        _, status, configured, stopped = replies
        assert isinstance(status, wire.StatusReport)
        assert (status.id, status.state, status.n_requests) == (1, "ready", 1)
        assert status.pid == os.getpid()
        assert status.address == str(address)
        assert status.n_clients == 0
        assert isinstance(configured, wire.StatusReport)
        assert (configured.id, configured.state) == (2, "loading")
        assert isinstance(stopped, wire.StatusReport)
        assert server.supervisor.settings == other


async def test_watchers_hear_every_change(transport: Transport) -> None:
    async with serving(transport) as (server, address):
        reader, writer = await streams(address)
        writer.write(hello(address, watch=True))
        heard: list[str] = []

        async def listen(until: str) -> None:
            while not heard or heard[-1] != until:
                message = await wire.read(reader, wire.daemon_decoder)
                if isinstance(message, wire.StateChanged):
                    heard.append(message.state)

        await asyncio.wait_for(listen("ready"), TIMEOUT_S)
        server.supervisor.configure(Settings())
        await asyncio.wait_for(listen("loading"), TIMEOUT_S)
        await asyncio.wait_for(listen("ready"), TIMEOUT_S)
        server.stop()
        await asyncio.wait_for(listen("stopping"), TIMEOUT_S)
        writer.close()


async def test_without_clients_it_ends() -> None:
    settings = Settings(daemon=DaemonSettings(idle_minutes=0.001))
    address = address_of(settings)
    server = DaemonServer(settings, address, command=WORKER)
    task = asyncio.create_task(server.run())
    await server.listening.wait()
    reader, writer = await streams(address)
    writer.write(hello(address))
    welcome = await wire.read(reader, wire.daemon_decoder)
    assert isinstance(welcome, wire.Welcome)
    # While a client is there, it stays, however quiet the client is.
    done, _ = await asyncio.wait({task}, timeout=0.2)
    assert not done
    writer.close()
    await asyncio.wait_for(task, TIMEOUT_S)


async def test_nothing_that_was_completed_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    log = tmp_path / "daemon.log"
    # Its own stderr stays where pytest wants it.
    monkeypatch.setattr(logs.os, "dup2", lambda *_: None)
    logs.set_up(log, "debug")
    try:
        async with serving("unix") as (_, address):
            client = AsyncClient(Settings())
            for prefix in ("raise SECRET", "die", "SECRET", "print"):
                request = CompletionRequest(
                    prefix, "SECRET", path="/p", deadline_ms=2e4, document="doc"
                )
                await client.complete(request)
            await client.close()
            await converse(address, hello(address), struct.pack("<I", 9) + b"\xa8SECRET!!")
            logging.getLogger("asyncio").error("task failed: %s", "SECRET")
            try:
                raise ValueError("SECRET")
            except ValueError:
                logging.getLogger("codespec.daemon.test").exception("a defect")
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:], root.level = before, level
    text = log.read_text("utf-8")
    assert "SECRET" not in text
    # But what happened is there.
    for words in ("killed by SIGKILL", "ValueError at", "not a message", "a defect: ValueError"):
        assert words in text
