"""A server of tenants over real HTTP, with an engine behind its gate that only notes what it is
told."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from codespec.backends.fake import ByteTokenizer
from codespec.backends.remote.token_batches import key_of, packed
from codespec.serving.tenants.content_check import ContentCheck
from codespec.serving.tenants.tenant_gate import Gate, GateDesk
from codespec.serving.tenants.tenant_keys import TenantKeys
from codespec.serving.tenants.tenant_settings import TenantSettings
from codespec.serving.tenants.tenant_store import TenantStore
from codespec.serving.tenants.workspace_routes import WorkspaceRoutes
from codespec.types import Tokens

RED, BLUE = "key-of-red-" + "r" * 32, "key-of-blue-" + "b" * 32
TOKENIZER = ByteTokenizer()
CONTROLS = range(256, 260)
PIECES = [bytes([i]) for i in range(256)] + [b"" for _ in CONTROLS]


def opaque(text: str) -> str:
    """An opaque id."""
    return f"{random.Random(text).getrandbits(128):032x}"


def contents(*texts: str) -> dict[str, list[Tokens]]:
    """Contents of one part each, by key."""
    made = [[TOKENIZER.encode(text)] for text in texts]
    return {key_of(parts): parts for parts in made}


def ids(*tokens: int) -> dict[str, list[Tokens]]:
    """A content of these ids."""
    parts = [np.array(tokens, np.int32)]
    return {key_of(parts): parts}


@dataclass
class Engine:
    """An engine's API: it answers everything, and notes what it was asked. answers: by path, made
    of the body."""

    asked: list[tuple[str, str, Mapping[bytes, bytes], Any]] = field(default_factory=list)
    answers: dict[str, Callable[[Any], bytes]] = field(default_factory=dict)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        assert scope["type"] == "http"
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message.get("more_body", False)
        said = json.loads(body) if body else None
        self.asked.append((scope["method"], scope["path"], dict(scope["headers"]), said))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        answer = self.answers.get(scope["path"], lambda body: b'{"engine": true}')
        await send({"type": "http.response.body", "body": answer(said)})


@dataclass
class TenantServer:
    port: int
    engine: Engine
    folder: Path
    keys: Path
    settings: TenantSettings
    desk: GateDesk
    store: TenantStore
    forgotten: list[tuple[str, str]]
    reopened: list[tuple[str, str]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        key: str = RED,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """(status, what the JSON says). body: bytes as they are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            raw = body if isinstance(body, bytes | None) else json.dumps(body)
            shown = {"Authorization": f"Bearer {key}"} if key else {}
            connection.request(method, path, raw, {**shown, **(headers or {})})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def send(self, batch: Mapping[str, list[Tokens]], key: str = RED) -> tuple[int, Any]:
        return self.ask("POST", "/codespec/contents", packed(batch), key)

    def missing(self, batch: Mapping[str, list[Tokens]], key: str = RED) -> list[str]:
        status, said = self.ask("POST", "/codespec/contents/known", {"keys": list(batch)}, key)
        assert status == 200, said
        return said["missing"]

    def open(
        self, workspace: str, files: Mapping[str, str], key: str = RED, **more: object
    ) -> tuple[int, Any]:
        body = {"files": files, **more}
        return self.ask("POST", f"/codespec/workspaces/{opaque(workspace)}", body, key)

    def share(self, workspace: str, texts: Mapping[str, str], key: str = RED) -> Any:
        """Send a workspace: file -> text."""
        batch = contents(*texts.values())
        assert self.send(batch, key)[0] == 200
        files = {opaque(file): next(iter(contents(text))) for file, text in texts.items()}
        status, said = self.open(workspace, files, key)
        assert status == 200, said
        return said

    def state(self, workspace: str, key: str = RED) -> Any:
        status, said = self.ask("GET", f"/codespec/workspaces/{opaque(workspace)}", key=key)
        assert status == 200
        return said


@contextmanager
def tenant_server(
    folder: Path,
    pieces: Sequence[bytes] = PIECES,
    vocabulary: str = TOKENIZER.hash,
    **more: Any,
) -> Generator[TenantServer, None, None]:
    """A server with the tenants red and blue, and a model of that vocabulary. more: settings."""
    keys = folder / "keys"
    keys.write_text(f"# tenants\nred {RED}\nblue {BLUE}  # and another\n")
    keys.chmod(0o600)
    settings = TenantSettings(keys=str(keys), folder=str(folder / "tenants"), **more)
    desk = GateDesk(TenantKeys(keys), settings.operators)
    forgotten, reopened = list[tuple[str, str]](), list[tuple[str, str]]()
    store = TenantStore(settings, vocabulary, forgotten.extend, reopened.extend)
    desk.routes = WorkspaceRoutes(store, ContentCheck(pieces), settings, (vocabulary,))
    engine = Engine()
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(Gate(engine, desk), log_level="critical", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        port = int(listener.getsockname()[1])
        folder = Path(settings.folder)
        yield TenantServer(port, engine, folder, keys, settings, desk, store, forgotten, reopened)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
