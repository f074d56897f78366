"""How soon a server stops once nobody waits for its answer: python -m tests.team.cancelling [URL]

URL: of llama-server, or of vLLM with its /v1; without one, a llama-server is started, or vLLM
(--vllm). A long answer is asked for, and given up at its first text. Our part is the time until the
connection is closed; the server's is the time from then until it says that it computes nothing,
asked for every few milliseconds. Prints a table and one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from unittest import mock

from codespec.backends.remote import connection
from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest, Progress
from codespec_bench.maintainers.team_engine import TeamEngine
from tests.team.llama_server import llama_server

TEXT = "def add(a, b):\n    return a + b\n\n\ndef "
LOOK_S = 0.002
PATIENCE_S = 30.0
_RUNNING = re.compile(rb"^vllm:num_requests_running\{.*\} ([\d.]+)", re.MULTILINE)


@dataclass
class Cancelled:
    """ours_ms: until the connection was closed. theirs_ms: from then until the server was idle."""

    ours_ms: float
    theirs_ms: float


def is_idle_at(url: str, backend: str) -> Callable[[], bool]:
    """Asks whether the server computes nothing."""

    def said(route: str) -> bytes:
        with urllib.request.urlopen(url.removesuffix("/v1") + route, timeout=PATIENCE_S) as answer:
            read: bytes = answer.read()
        return read

    def llama() -> bool:
        return not any(slot["is_processing"] for slot in json.loads(said("/slots")))

    def vllm() -> bool:
        return all(float(n) == 0 for n in _RUNNING.findall(said("/metrics")))

    return vllm if backend == "vLLM" else llama


def cancel_once(engine: LocalEngine, is_idle: Callable[[], bool], number: int) -> Cancelled:
    told: list[float] = []
    closed: list[float] = []
    close = connection._Connection.close  # pyright: ignore[reportPrivateUsage]

    def noted(self: connection._Connection) -> None:  # pyright: ignore[reportPrivateUsage]
        close(self)
        closed.append(time.perf_counter())

    def shown(progress: Progress) -> None:
        told.append(time.perf_counter())

    request = CompletionRequest(f"# {number}\n{TEXT}", max_tokens=1500, verbatim=True)
    with mock.patch.object(connection._Connection, "close", noted):  # pyright: ignore[reportPrivateUsage]
        done = engine.complete(request, lambda: bool(told), shown)
        assert done.finish == "cancelled", "it ended before it was cancelled"
        until_s = time.monotonic() + PATIENCE_S
        while not closed or not is_idle():
            assert time.monotonic() < until_s
            time.sleep(LOOK_S)
        idle_s = time.perf_counter()
    return Cancelled((closed[0] - told[0]) * 1e3, (idle_s - closed[0]) * 1e3)


def measure(url: str, n: int) -> list[Cancelled]:
    settings = {
        "model": {"target": url},
        "server": {"tokenizer": str(bundled(BUNDLED_TARGET))},
        "completion": {"deadline_auto_ms": 60_000},
    }
    with closing(LocalEngine(load_settings(settings, env={}))) as engine:
        engine.remembers = False
        is_idle = is_idle_at(url, engine.info.backend)
        return [cancel_once(engine, is_idle, number) for number in range(n)]


@contextmanager
def server(url: str | None, is_vllm: bool) -> Generator[str]:
    """The URL that was named, or that of a server which ends afterwards."""
    if url:
        yield url
    elif is_vllm:
        team = TeamEngine()
        team.install()
        with team.running("cancelling") as port:
            yield f"http://127.0.0.1:{port}/v1"
    else:
        with llama_server(bundled(BUNDLED_TARGET)) as started:
            yield started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--vllm", action="store_true")
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    with server(options.url, options.vllm) as url:
        found = measure(url, options.times)
    figures: dict[str, float] = {"n": len(found)}
    for part, values in (
        ("ours", [one.ours_ms for one in found]),
        ("theirs", [one.theirs_ms for one in found]),
        ("both", [one.ours_ms + one.theirs_ms for one in found]),
    ):
        figures |= {f"{part}_p50_ms": statistics.median(values), f"{part}_max_ms": max(values)}
    for name, value in figures.items():
        print(f"{name:15}{value:8.1f}")
    print(json.dumps({"name": "cancelling_elsewhere", **figures}))


if __name__ == "__main__":
    main()
