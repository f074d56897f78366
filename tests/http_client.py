"""The HTTP front in a process of its own, and how tests talk to it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT_S = 60.0
Answer = tuple[int, Any]


@dataclass(frozen=True)
class Front:
    port: int
    log: Path
    key: str = ""

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)

    def begin(
        self, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPConnection:
        """The connection, its request sent. body: bytes as they are, None for a GET."""
        connection = self.connect()
        raw = body if isinstance(body, bytes | None) else json.dumps(body)
        key = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        method = "GET" if body is None else "POST"
        connection.request(method, path, raw, {**key, **(headers or {})})
        return connection

    def ask(
        self, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """(status, what the JSON says)."""
        with closing(self.begin(path, body, headers)) as connection:
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def text(self, **body: object) -> str:
        status, answer = self.ask("/v1/completions", body)
        assert status == 200, answer
        return answer["choices"][0]["text"]

    def stream(self, path: str, body: Mapping[str, object]) -> list[Any]:
        with closing(self.begin(path, {**body, "stream": True})) as connection:
            response = connection.getresponse()
            assert response.status == 200
            assert response.headers["Content-Type"] == "text/event-stream"
            return events(response.read())


def events(raw: bytes) -> list[Any]:
    blocks = raw.decode().split("\n\n")
    assert blocks.pop() == ""
    data = [block.removeprefix("data: ") for block in blocks]
    return [event if event == "[DONE]" else json.loads(event) for event in data]


@contextmanager
def front_of(folder: Path, *options: str) -> Generator[Front]:
    log = folder / "front.log"
    command = [sys.executable, "-m", "codespec", "daemon", "http", "--port", "0", *options]
    with (
        log.open("ab") as stderr,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=stderr) as front,
    ):
        assert front.stdout is not None
        try:
            url = front.stdout.readline().decode().strip()
            yield Front(int(url.rpartition(":")[2]), log)
        finally:
            front.terminate()
            front.wait(TIMEOUT_S)


def refusal(answer: Answer, status: int, *words: str) -> None:
    assert answer[0] == status
    error = answer[1]["error"]
    assert error["code"] == status
    assert all(word in f"{error['message']} {error['param']}" for word in words), error
