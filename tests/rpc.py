"""A bare JSON-RPC client for language servers over stdio: what the bytes really are."""

from __future__ import annotations

import io
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

TIMEOUT_S = 60.0


def folder_of(path: Path) -> dict[str, str]:
    """A folder as the protocol has it."""
    return {"uri": path.as_uri(), "name": path.name}


class LspClient:
    """Messages the server sends on its own are kept in `notifications`; its requests get what
    `answers` has for their method."""

    def __init__(self, env: Mapping[str, str], cwd: Path) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "codespec", "lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
        )
        self.notifications: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.stderr = b""
        self.ended = False
        self._replies: dict[int, dict[str, Any]] = {}
        self._incoming: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._next_id = 0
        self._threads = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    # --- wire -------------------------------------------------------------------------------

    def _read(self) -> None:
        out = self.process.stdout
        assert out is not None
        while True:
            n_bytes = 0
            while (line := out.readline()) not in (b"\r\n", b""):
                name, _, value = line.decode("ascii").partition(":")
                if name == "Content-Length":
                    n_bytes = int(value)
            if not n_bytes:
                self._incoming.put(None)
                return
            self._incoming.put(json.loads(out.read(n_bytes)))

    def _read_stderr(self) -> None:
        stderr = self.process.stderr
        assert isinstance(stderr, io.BufferedReader)
        while chunk := stderr.read1(1 << 16):
            self.stderr += chunk

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _take(self, timeout_s: float) -> None:
        message = self._incoming.get(timeout=timeout_s)
        assert message is not None, f"the server ended: {self.stderr.decode()}"
        if "method" in message:
            if "id" in message:
                self._send({"id": message["id"], "result": self.answers.get(message["method"])})
            self.notifications.append(message)
        else:
            assert message["id"] not in self._replies, "answered twice"
            self._replies[message["id"]] = message

    # --- messages ---------------------------------------------------------------------------

    def notify(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def post(self, method: str, params: object) -> int:
        self._next_id += 1
        self._send({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    def reply(self, request_id: int, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
        give_up_at = time.monotonic() + timeout_s
        while request_id not in self._replies:
            self._take(max(0.0, give_up_at - time.monotonic()))
        return self._replies.pop(request_id)

    @property
    def pending_replies(self) -> list[int]:
        """Requests whose replies came, and were not asked for yet."""
        return list(self._replies)

    def request(self, method: str, params: object) -> Any:
        reply = self.reply(self.post(method, params))
        assert "error" not in reply, reply
        return reply["result"]

    def wait_for(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """A notification that came or will come; it is taken out."""
        give_up_at = time.monotonic() + TIMEOUT_S
        while True:
            for message in self.notifications:
                if matches(message):
                    self.notifications.remove(message)
                    return message
            self._take(max(0.0, give_up_at - time.monotonic()))

    def wait_for_status(self, kind: str, words: str) -> dict[str, Any]:
        message = self.wait_for(
            lambda m: (
                m["method"] == "didChangeStatus"
                and m["params"]["kind"] == kind
                and words in m["params"]["message"]
            )
        )
        params: dict[str, Any] = message["params"]
        return params

    # --- sessions ---------------------------------------------------------------------------

    def initialize(
        self,
        root: Path | None = None,
        encodings: list[str] | None = None,
        options: object = None,
        folders: Sequence[Path] = (),
        **capabilities: object,
    ) -> Any:
        result = self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": root.as_uri() if root else None,
                "workspaceFolders": [folder_of(path) for path in folders] or None,
                "initializationOptions": options,
                "capabilities": {
                    "general": {"positionEncodings": encodings or ["utf-16"]},
                    "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
                    **capabilities,
                },
            },
        )
        self.startup_ms = (time.perf_counter() - self.started) * 1e3
        self.notify("initialized", {})
        return result

    def open(self, uri: str, text: str, language: str = "python") -> None:
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)},
        )

    def post_completion(
        self, uri: str, line: int, character: int, invoked: bool = True, selected: object = None
    ) -> int:
        context = {"triggerKind": 1 if invoked else 2}
        return self.post(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": uri},
                "position": {"line": line, "character": character},
                "context": context
                if selected is None
                else {**context, "selectedCompletionInfo": selected},
            },
        )

    def complete(
        self, uri: str, line: int, character: int, invoked: bool = True, selected: object = None
    ) -> Any:
        reply = self.reply(self.post_completion(uri, line, character, invoked, selected))
        assert "error" not in reply, reply
        return reply["result"]["items"]

    def close(self) -> int:
        """Shut down as the protocol says; the exit status."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.wait()

    def kill(self) -> None:
        """No effect if it ended before."""
        if not self.ended:
            self.process.kill()
            self.wait()

    def hang_up(self) -> int:
        """Close the pipe to the server, as an editor does that vanishes; the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def wait(self) -> int:
        """The exit status, when it ends."""
        status = self.process.wait(TIMEOUT_S)
        self.ended = True
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return status


def at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": at(line, start), "end": at(line, end)}


def insert(line: int, character: int, text: str) -> dict[str, Any]:
    return {"range": span(line, character, character), "text": text}


def accept(client: LspClient, item: dict[str, Any]) -> None:
    command = item["command"]
    params = {"command": command["command"], "arguments": command["arguments"]}
    client.request("workspace/executeCommand", params)
