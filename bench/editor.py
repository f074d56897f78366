"""The part of an editor that measurements take: a real language server over stdio, with a daemon
and a worker of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil

from codespec.config import load_settings
from codespec.daemon import control, wire
from codespec.errors import DaemonError
from codespec.languages.registry import language_of
from codespec.requests import Completion
from codespec.system.folders import cache_path
from codespec.types import Finish

TIMEOUT_S = 60.0
_PATIENCE_S = 10.0
_HINT = f"It was waited for {TIMEOUT_S:.0f} s. Try codespec doctor, or a smaller model."


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The server's figures of an answer.

    is_kept: True if the model was not asked.
    engine_ms, model_ms: time that the generation took, in the engine and its model; 0 where the
        model was not asked.
    ahead_ms: how long before the request the generation began, with the key; 0 where it did not.
    """

    n_offers: int = 0
    is_kept: bool = False
    engine_ms: float = 0.0
    model_ms: float = 0.0
    ahead_ms: float = 0.0

    @property
    def is_made(self) -> bool:
        """True if the model was asked."""
        return self.engine_ms > 0


_NO_ANSWER = Answer()


class _Figures(msgspec.Struct):
    """Figures in a trace: of an answer, or of a generation that ended."""

    answer: Answer | None = None
    next_edits: Answer | None = None
    finish: Finish | None = None


class Reply(NamedTuple):
    """at: on the performance counter. items: texts to insert, with the ids that accept them."""

    at: float
    items: tuple[tuple[str, str], ...]
    answer: Answer


class Editor:
    """An editor, as little of one as it takes: documents, requests in flight, times of replies. Its
    server runs from the beginning, and until it is ended or closed."""

    def __init__(self, folder: Path, options: dict[str, Any]) -> None:
        self._folder = folder
        self._options = options
        self._started = time.perf_counter()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "codespec", "lsp"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            # Not in the workspace: Python would import what it needs from there.
            cwd=Path(sys.executable).parent, env=_with_bytecode(),
        )  # fmt: skip
        self._id = 0
        self._news = threading.Condition()
        self._replies: dict[int, Reply] = {}
        self._n_replies: Counter[int] = Counter()
        self._answer = self._edit_answer = _NO_ANSWER
        self._generations: list[Completion] = []
        self._status: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def initialize(self) -> None:
        self._send(
            "initialize",
            {
                "processId": None,
                "rootUri": self._folder.as_uri(),
                "initializationOptions": self._options,
                "trace": "verbose",
                "capabilities": {"experimental": {"inlineEdits": True}},
            },
            request=True,
        )
        self.wait(self._id)
        self.startup_ms = self.elapsed_ms()
        self._send("initialized", {})
        self._send("$/setTrace", {"value": "verbose"})

    def change(self, uri: str, version: int, line: int, start: int, end: int, text: str) -> None:
        self.replace(uri, version, (line, start), (line, end), text)

    def replace(
        self, uri: str, version: int, start: tuple[int, int], end: tuple[int, int], text: str
    ) -> None:
        """start, end: (line, character)."""
        ends = {
            name: {"line": line, "character": character}
            for name, (line, character) in (("start", start), ("end", end))
        }
        self._send(
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [{"range": ends, "text": text}],
            },
        )

    def open(self, uri: str, text: str) -> None:
        language = language_of(uri)
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self._send("textDocument/didOpen", {"textDocument": document})

    def focus(self, uri: str, line: int, character: int) -> None:
        """The cursor rests here."""
        place = {"line": line, "character": character}
        params = {"textDocument": {"uri": uri}, "position": place}
        self._send("textDocument/didFocus", params)

    def shut(self, uri: str) -> None:
        self._send("textDocument/didClose", {"textDocument": {"uri": uri}})

    def accept(self, item_id: str) -> None:
        command = {"command": "codespec.accepted", "arguments": [item_id]}
        self._send("workspace/executeCommand", command, request=True)

    def ask(self, uri: str, line: int, character: int, invoked: bool = False) -> int:
        self._send(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": uri},
                "position": {"line": line, "character": character},
                "context": {"triggerKind": 1 if invoked else 2},
            },
            request=True,
        )
        return self._id

    def ask_edit(self, uri: str, version: int, line: int, character: int) -> int:
        """Ask for the next edit."""
        params = {
            "textDocument": {"uri": uri, "version": version},
            "position": {"line": line, "character": character},
        }
        self._send("textDocument/copilotInlineEdit", params, request=True)
        return self._id

    def cancel(self, request: int) -> None:
        self._send("$/cancelRequest", {"id": request})

    def wait(self, request: int) -> Reply:
        with self._news:
            if not self._news.wait_for(lambda: request in self._replies, TIMEOUT_S):
                raise DaemonError("the language server does not answer", _HINT)
            return self._replies.pop(request)

    def reply_by(self, request: int, at: float) -> Reply | None:
        """The reply, if it comes until `at` on the performance counter."""
        with self._news:
            self._news.wait_for(
                lambda: request in self._replies, max(0.0, at - time.perf_counter())
            )
            return self._replies.pop(request, None)

    def n_replies(self, request: int) -> int:
        """How many replies a request has had up to now."""
        with self._news:
            return self._n_replies[request]

    def generations(self) -> list[Completion]:
        """The generations that ended since the last call, without their texts."""
        with self._news:
            ended, self._generations = self._generations, []
            return ended

    def daemon(self) -> wire.StatusReport | None:
        return control.status(load_settings(self._options))

    def elapsed_ms(self) -> float:
        """Since the server's process was started."""
        return (time.perf_counter() - self._started) * 1e3

    def memory_mib(self) -> dict[str, float]:
        """Resident memory of each process."""
        report = self.daemon()
        pids = {"server": self._server.pid}
        if report is not None:
            pids |= {"daemon": report.pid, "worker": report.worker_pid}
        found: dict[str, float] = {}
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self._server.pid).children(recursive=True):
                pids[f"indexer {child.pid}"] = child.pid
        for name, pid in pids.items():
            with contextlib.suppress(psutil.Error):
                role = name.partition(" ")[0]
                rss = psutil.Process(pid).memory_info().rss / 2**20
                found[role] = round(found.get(role, 0.0) + rss, 1)
        return found

    def wait_ready(self) -> None:
        with self._news:
            if not self._news.wait_for(lambda: self._is_ready, TIMEOUT_S):
                raise DaemonError(f"the model is not ready: {self._status.get('message')}", _HINT)

    @property
    def _is_ready(self) -> bool:
        return self._status.get("kind") == "Normal" and not self._status["busy"]

    def close(self) -> None:
        self._send("shutdown", None, request=True)
        self.wait(self._id)
        self._send("exit", None)
        self._server.wait(TIMEOUT_S)

    def end(self) -> None:
        """The server, if it runs, with its indexer: in order where it can be."""
        self._server.terminate()
        try:
            self._server.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._reader.join(_PATIENCE_S)
        if self._reader.is_alive():  # a process that the server left holds its output
            return
        for pipe in (self._server.stdin, self._server.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, method: str, params: object, request: bool = False) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            self._id += 1
            message["id"] = self._id
        body = json.dumps(message).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._server.stdin.flush()

    def _read(self) -> None:
        out = self._server.stdout
        assert out is not None
        while True:
            n_bytes = 0
            while (line := out.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                n_bytes = int(value) if name == b"Content-Length" else n_bytes
            if not n_bytes:
                return
            message = json.loads(out.read(n_bytes))
            now = time.perf_counter()
            with self._news:
                if message.get("method") == "$/logTrace":
                    self._told(message["params"].get("verbose") or "{}")
                elif message.get("method") == "didChangeStatus":
                    self._status = message["params"]
                elif "method" not in message:
                    self._n_replies[message["id"]] += 1
                    self._replies[message["id"]] = self._reply(message, now)
                self._news.notify_all()

    def _reply(self, message: dict[str, Any], now: float) -> Reply:
        result = message.get("result")
        if isinstance(result, dict) and "edits" in result:
            answer, self._edit_answer = self._edit_answer, _NO_ANSWER
            return Reply(now, (), answer)
        answer, self._answer = self._answer, _NO_ANSWER
        return Reply(now, _items(message), answer)

    def _told(self, figures: str) -> None:
        """Take figures of a trace."""
        found = msgspec.json.decode(figures, type=_Figures)
        if found.answer is not None:
            self._answer = found.answer
        elif found.next_edits is not None:
            self._edit_answer = found.next_edits
        elif found.finish is not None:
            self._generations.append(msgspec.json.decode(figures, type=Completion))


def _with_bytecode() -> dict[str, str]:
    """The environment of an installed server, where Python keeps the bytecode of modules."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _items(message: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    result = message.get("result")
    found: list[dict[str, Any]] = result.get("items", []) if isinstance(result, dict) else []
    return tuple((item["insertText"], item["command"]["arguments"][0]) for item in found)


@contextlib.contextmanager
def own_folders(*, with_cache: bool) -> Generator[Path]:
    """A temporary folder, and a runtime folder in it for daemons of our own. with_cache: a cache
    folder, too, which knows what passes cost here if that is known."""
    with tempfile.TemporaryDirectory(prefix="codespec-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        folders = {"CODESPEC_RUNTIME_DIR": str(folder / "run")}
        if with_cache:
            curves = cache_path() / "curves.json"
            cache = folder / "cache"
            cache.mkdir()
            if curves.is_file():
                shutil.copyfile(curves, cache / curves.name)
            folders["CODESPEC_CACHE_DIR"] = str(cache)
        try:
            with environment(folders):
                yield folder
        finally:
            _end_those_in(folders["CODESPEC_RUNTIME_DIR"])


def _end_those_in(runtime_folder: str) -> None:
    """End the processes that an interrupted editor left: a daemon on its way up is nobody's child
    yet, and holds no lock that would tell of it."""
    silent: set[int] = set()  # gone by now, but may have started another after all were listed
    while True:
        left: list[psutil.Process] = []
        n_silent = len(silent)
        for pid in psutil.pids():
            try:
                process = psutil.Process(pid)
                command = process.cmdline()
            except psutil.AccessDenied:
                continue  # somebody else's
            except psutil.Error:
                silent.add(pid)
                continue
            if runtime_folder in command:
                left.append(process)
            elif not command:  # ended, not yet waited for
                silent.add(pid)
        if not left and len(silent) == n_silent:
            return
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=_PATIENCE_S)


@contextlib.contextmanager
def environment(values: dict[str, str]) -> Generator[None]:
    """Environment variables of this process and its children, for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def editor_of(
    folder: Path,
    model: Mapping[str, Any],
    *,
    indexed: bool,
    patient: bool = False,
) -> Generator[Editor]:
    """A server for a folder, and the daemon that it starts, which ends with it: to be used within
    `own_folders`. model: settings of that section. patient: no deadline that matters."""
    options: dict[str, Any] = {
        "model": dict(model),
        "index": {"enabled": indexed},
        "stats": {"enabled": False},
        "completion": {"deadline_auto_ms": TIMEOUT_S * 1e3} if patient else {},
    }
    editor = Editor(folder, options)
    try:
        editor.initialize()
        yield editor
        editor.close()
    finally:
        editor.end()  # first: it would start the daemon again
        control.stop(load_settings(options))
