"""`codespec bench hop`: what lies between a keystroke and its suggestion, beside the model.

A real language server, daemon and worker, driven over stdio as an editor does it: lines of a file
are typed again, key by key, at a human pace, and each key asks for a suggestion.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from codespec import config

from . import workspace
from .results import Row

N_TOKENS = 1_000_000
N_FILE_LINES = 2_000
_TIMEOUT_S = 60.0
_CHAR = 2  # of a line's text, from where on keys are typed
_MS = re.compile(r"([\d.]+) ms in the engine, ([\d.]+) in the model")


class Editor:
    """As little of an editor as it takes: one document, requests in flight, times of replies."""

    def __init__(self, folder: Path, env: dict[str, str], options: object) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "codespec", "lsp"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=folder, env=env,
        )  # fmt: skip
        started = time.perf_counter()
        self._id = 0
        self._news = threading.Condition()
        self._replies: dict[int, tuple[float, str]] = {}
        self._n_replies: Counter[int] = Counter()
        self._trace = ""
        self._status = ""
        threading.Thread(target=self._read, daemon=True).start()
        self._send(
            "initialize",
            {
                "processId": None,
                "rootUri": folder.as_uri(),
                "initializationOptions": options,
                "trace": "messages",
                "capabilities": {},
            },
            request=True,
        )
        self.wait(self._id)
        self.startup_ms = (time.perf_counter() - started) * 1e3
        self._send("initialized", {})
        self._send("$/setTrace", {"value": "messages"})

    def change(self, uri: str, version: int, line: int, start: int, end: int, text: str) -> None:
        places = {
            "start": {"line": line, "character": start},
            "end": {"line": line, "character": end},
        }
        self._send(
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [{"range": places, "text": text}],
            },
        )

    def open(self, uri: str, text: str) -> None:
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self._send("textDocument/didOpen", {"textDocument": document})

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

    def cancel(self, request: int) -> None:
        self._send("$/cancelRequest", {"id": request})

    def wait(self, request: int) -> tuple[float, str]:
        """(time of the reply on the performance counter, what the trace says about it)."""
        with self._news:
            if not self._news.wait_for(lambda: request in self._replies, _TIMEOUT_S):
                raise TimeoutError("the language server does not answer")
            return self._replies.pop(request)

    def wait_ready(self) -> None:
        with self._news:
            if not self._news.wait_for(lambda: self._status.startswith("ready"), _TIMEOUT_S):
                raise TimeoutError(f"the model is not ready: {self._status}")

    def n_replies(self, request: int) -> int:
        """How many replies a request has had up to now."""
        with self._news:
            return self._n_replies[request]

    def close(self) -> None:
        self._send("shutdown", None, request=True)
        self.wait(self._id)
        self._send("exit", None)
        self._server.wait(_TIMEOUT_S)

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
                    self._trace = message["params"]["message"]
                elif message.get("method") == "didChangeStatus":
                    self._status = message["params"]["message"]
                elif "method" not in message:
                    self._replies[message["id"]] = now, self._trace
                    self._n_replies[message["id"]] += 1
                    self._trace = ""
                self._news.notify_all()


def run(
    file: Path | None,
    folder: Path | None,
    n_lines: int,
    key_ms: float,
    model: str,
    n_threads: int,
    n_storm: int = 0,
    progress: Callable[[str], None] = lambda words: None,
) -> list[Row]:
    """Figures of `n_lines` lines of `file`, typed with `key_ms` between keys.

    folder:  the workspace, which is indexed first. Without it a file stands alone; without both, a
             workspace of `N_TOKENS` is made of the standard library, and a file of it is taken.
    n_storm: then so many requests as fast as they go, some cancelled.
    """
    with tempfile.TemporaryDirectory(prefix="codespec-hop-") as temporary:
        if file is None and folder is None:
            progress("copying the standard library")
            folder = Path(temporary, "workspace")
            folder.mkdir()
            workspace.copy_library(folder, N_TOKENS)
        if file is None:
            assert folder is not None
            file = workspace.file_of(folder, N_FILE_LINES)
        env = {**os.environ, "CODESPEC_RUNTIME_DIR": str(Path(temporary, "run"))}
        rows: list[Row] = []
        if folder is not None:
            progress("indexing")
            env["CODESPEC_CACHE_DIR"] = _cache_in(temporary)
            n_tokens = workspace.index(folder, env, model)
            rows.append({"what": "tokens in the indexed workspace", "n": n_tokens})
        with _editor(folder, file.parent, env, model, n_threads) as editor:
            rows += _measure(editor, file, n_lines, key_ms, progress)
            if n_storm:
                progress(f"{n_storm} requests")
                rows.append(_storm(editor, file.as_uri(), n_storm))
    return rows


def _measure(
    editor: Editor, file: Path, n_lines: int, key_ms: float, progress: Callable[[str], None]
) -> list[Row]:
    lines = file.read_text("utf-8").split("\n")
    chance = random.Random(0)
    places = [i for i, line in enumerate(lines) if 12 <= len(line.strip()) <= 60]
    chosen = sorted(chance.sample(places, min(n_lines, len(places))))
    times: dict[str, list[float]] = {}
    uri = file.as_uri()
    editor.open(uri, "\n".join(lines))
    editor.wait_ready()
    started = time.perf_counter()
    first, trace = editor.wait(editor.ask(uri, len(lines) - 1, 0, invoked=True))
    _note(times, "first", (first - started) * 1e3, trace)
    version = 1
    for n, at in enumerate(chosen):
        progress(f"line {n + 1} of {len(chosen)}")
        version = _retype(editor, uri, version, lines, at, key_ms / 1e3, times)
        version = _supersede(editor, uri, version, at, times)
    times = {"start to the reply to initialize": [editor.startup_ms], **times}
    return [{"what": what, **_figures(values)} for what, values in times.items()]


def _storm(editor: Editor, uri: str, n_requests: int) -> Row:
    """Each request is to have one reply, whatever became of it."""
    chance = random.Random(1)
    requests: list[int] = []
    for n in range(n_requests):
        editor.change(uri, 100_000 + n, 0, 0, n % 2, "" if n % 2 else "x")
        requests.append(editor.ask(uri, 0, 1 - n % 2, invoked=chance.random() < 0.5))
        if chance.random() < 0.4:
            editor.cancel(chance.choice(requests[-4:]))
        if n % 100 == 99:  # or both pipes fill up
            editor.wait(requests[-1])
    started = time.perf_counter()
    while time.perf_counter() - started < _TIMEOUT_S and not all(map(editor.n_replies, requests)):
        time.sleep(0.05)
    n_wrong = sum(editor.n_replies(request) != 1 for request in requests)
    what = "requests with random cancels, of them with no reply or several"
    return {"what": what, "n": n_requests, "n_wrong": n_wrong}


def _retype(
    editor: Editor,
    uri: str,
    version: int,
    lines: list[str],
    at: int,
    pause_s: float,
    times: dict[str, list[float]],
) -> int:
    """Type a line again. Each key cancels the request of the last one, if it still waits."""
    line = lines[at]
    indent = len(line) - len(line.lstrip()) + _CHAR
    version += 1
    editor.change(uri, version, at, indent, len(line), "")
    waiting: tuple[int, float] | None = None
    for n, key in enumerate(line[indent:], indent):
        time.sleep(pause_s)
        if waiting is not None:
            _take(editor, waiting, times)
        version += 1
        started = time.perf_counter()
        editor.change(uri, version, at, n, n, key)
        waiting = editor.ask(uri, at, n + 1), started
    if waiting is not None:
        _take(editor, waiting, times)
    return version


def _take(editor: Editor, waiting: tuple[int, float], times: dict[str, list[float]]) -> None:
    replied, trace = editor.wait(waiting[0])
    _note(times, "", (replied - waiting[1]) * 1e3, trace)


def _supersede(
    editor: Editor, uri: str, version: int, at: int, times: dict[str, list[float]]
) -> int:
    """A generation in full swing, and other text: how long until the model is free for it."""
    editor.change(uri, version + 1, at, 0, 0, "de")
    editor.ask(uri, at, 2, invoked=True)
    time.sleep(0.03)
    started = time.perf_counter()
    editor.change(uri, version + 2, at, 0, 2, "")
    replied, trace = editor.wait(editor.ask(uri, at, 0, invoked=True))
    if (engine := _MS.search(trace)) is not None:
        waited = (replied - started) * 1e3 - float(engine[1])
        times.setdefault("superseded work stops, hop included", []).append(waited)
    return version + 2


def _note(times: dict[str, list[float]], kind: str, ms: float, trace: str) -> None:
    engine = _MS.search(trace)
    if "no suggestion" in trace or "suggestions," not in trace:
        where = "by the model" if engine is not None else "without the model"
        times.setdefault(f"nothing to suggest, {where}", []).append(ms)
    elif engine is None:
        times.setdefault("typed through", []).append(ms)
    else:
        kind = kind or "suggestion by the model"
        engine_ms, model_ms = map(float, engine.groups())
        times.setdefault(kind, []).append(ms)
        times.setdefault(f"{kind}, beside the engine", []).append(ms - engine_ms)
        times.setdefault(f"{kind}, beside the model", []).append(ms - model_ms)


@contextmanager
def _editor(
    root: Path | None, folder: Path, env: dict[str, str], model: str, n_threads: int
) -> Generator[Editor]:
    """A server with a daemon of its own, which ends with it. root: an indexed workspace."""
    from codespec.config import load_settings
    from codespec.daemon import control

    options = {
        "model": {"target": model, "n_threads": n_threads},
        "index": {"enabled": root is not None},
        "stats": {"enabled": False},
    }
    editor = Editor(root or folder, env, options)
    before = os.environ.get("CODESPEC_RUNTIME_DIR")
    try:
        yield editor
        editor.close()
    finally:
        os.environ["CODESPEC_RUNTIME_DIR"] = env["CODESPEC_RUNTIME_DIR"]
        control.stop(load_settings(options))
        if before is None:
            del os.environ["CODESPEC_RUNTIME_DIR"]
        else:
            os.environ["CODESPEC_RUNTIME_DIR"] = before


def _cache_in(temporary: str) -> str:
    """A cache folder of our own, which knows what passes cost here if that is known."""
    folder = Path(temporary, "cache")
    folder.mkdir()
    curves = config.cache_dir() / "curves.json"
    if curves.is_file():
        shutil.copyfile(curves, folder / curves.name)
    return str(folder)


def _figures(values: list[float]) -> Row:
    values = sorted(values)
    pick = [values[min(len(values) - 1, int(len(values) * q))] for q in (0.5, 0.95)]
    return {"n": len(values), "p50_ms": round(pick[0], 2), "p95_ms": round(pick[1], 2)}


def print_rows(rows: list[Row]) -> None:
    table = Table("", "n", "p50 ms", "p95 ms", title="from key to suggestion")
    for row in rows:
        n_wrong = [f"{row['n_wrong']} wrong"] if "n_wrong" in row else []
        figures = [str(row[key]) for key in ("n", "p50_ms", "p95_ms") if key in row]
        table.add_row(row["what"], *figures, *n_wrong)
    Console().print(table)
