"""An editor's suggestions while many ask over HTTP: python -m tests.reliability.http_load

64 clients in a process of their own ask for completions one after the other, and 64 connections
hold half a body. Like requests of an editor are measured without them and beside them, in turns,
through the daemon, in the folders of a new user. Prints a table, what the time went into, and one
line of JSON; a ratio is the median over the blocks.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import chain, islice
from pathlib import Path

from codespec.config import load_settings
from codespec.daemon import control
from codespec.daemon.client import DaemonEngine
from codespec.requests import CompletionRequest
from codespec.types import Trace
from tests.http_client import front_of

ROUTE = "/v1/completions"
N_CLIENTS = 64
KEY_S = 0.15
"""Seconds between an answer and the next key."""
DEADLINE_MS = 300.0
SETTLE_S = 2.0
"""Seconds until the clients are all there, or all gone."""
FIRST = 1000
"""Number of the first key: all have as many digits."""
ABOVE = (
    "import os\n\n\ndef read_file(path):\n    with open(path) as f:\n        return f.read()\n\n\n"
)


@dataclass(frozen=True, slots=True)
class Key:
    """Milliseconds until one key's answer is there, and their parts."""

    ms: float
    outside_ms: float  # before and after the engine: queue, sockets, the daemon's event loop
    context_ms: float
    read_ms: float  # prefill, and states of the KV cache restored
    pass_ms: float
    draft_ms: float
    rest_ms: float
    paused_ms: float
    n_read: int  # tokens of the prompt that no cache held
    n_passes: int


PARTS = [f.name for f in fields(Key)]


def key_of(ms: float, trace: Trace) -> Key:
    passes_ms = trace.draft_ms + trace.target_ms
    read_ms = max(0.0, trace.model_ms - passes_ms)
    known = trace.context_ms + read_ms + passes_ms + trace.paused_ms
    return Key(
        ms=ms,
        outside_ms=ms - trace.ms,
        context_ms=trace.context_ms,
        read_ms=read_ms,
        pass_ms=trace.target_ms,
        draft_ms=trace.draft_ms,
        rest_ms=trace.ms - known,
        paused_ms=trace.paused_ms,
        n_read=trace.n_prompt_tokens - trace.n_prompt_cached,
        n_passes=trace.n_target_passes,
    )


def type_keys(editor: DaemonEngine, numbers: Iterable[int]) -> list[Key]:
    """One key a number, each asked for a while after the last one's answer."""
    keys: list[Key] = []
    for i in numbers:
        request = CompletionRequest(
            f"{ABOVE}def load_{i}(path):\n    with ", "\n", language_id="python",
            max_tokens=24, deadline_ms=DEADLINE_MS,
        )  # fmt: skip
        began = time.perf_counter()
        answer = editor.complete(request)
        keys.append(key_of((time.perf_counter() - began) * 1e3, answer.trace))
        time.sleep(KEY_S)
    return keys


def ask(port: int) -> None:
    """Load the front until the process ends: the other side of the measurement."""

    def write(number: int) -> None:
        body = json.dumps({"prompt": f"# {number}\ndef f{number}(x):\n    return"})
        while True:
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST", ROUTE, body)
                connection.getresponse().read()
                connection.close()

    for number in range(N_CLIENTS):
        threading.Thread(target=write, args=(number,), daemon=True).start()
    half = f"POST {ROUTE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{".encode()
    while True:  # those that the front has closed by then are replaced
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(N_CLIENTS)]
        for connection in held:
            connection.sendall(half)
        time.sleep(4)
        for connection in held:
            connection.close()


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def measure(n_keys: int, n_blocks: int) -> tuple[list[list[Key]], list[list[Key]]]:
    """Keys of each block (alone, beside), in turns."""
    alone: list[list[Key]] = []
    beside: list[list[Key]] = []
    numbers = iter(range(FIRST, FIRST + 10 + 2 * n_keys * n_blocks))

    def block(n: int) -> list[Key]:
        return type_keys(editor, list(islice(numbers, n)))

    with tempfile.TemporaryDirectory(prefix="codespec-") as folder:
        for name in ("HOME", "CODESPEC_RUNTIME_DIR", "CODESPEC_CACHE_DIR", "XDG_CONFIG_HOME",
                     "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):  # fmt: skip
            own = Path(folder) / name.lower()
            own.mkdir(mode=0o700)
            os.environ[name] = str(own)
        settings = load_settings()
        with front_of(Path(folder)) as front, DaemonEngine(settings) as editor:
            block(10)  # costs are measured with the first ones
            for _ in range(n_blocks):
                time.sleep(SETTLE_S)
                alone.append(block(n_keys))
                command = [sys.executable, "-m", __spec__.name, "--port", str(front.port)]
                with subprocess.Popen(command) as clients:
                    time.sleep(SETTLE_S)
                    beside.append(block(n_keys))
                    assert clients.poll() is None, "the clients ended"
                    clients.terminate()
            control.stop(settings)
    return alone, beside


def figures_of(alone: list[list[Key]], beside: list[list[Key]]) -> dict[str, float]:
    def ms(block: list[Key]) -> list[float]:
        return [key.ms for key in block]

    ratios = [p95(ms(b)) / p95(ms(a)) for a, b in zip(alone, beside, strict=True)]
    middles = [
        statistics.median(ms(b)) / statistics.median(ms(a))
        for a, b in zip(alone, beside, strict=True)
    ]
    return {
        "n_keys": len(alone[0]),
        "n_blocks": len(alone),
        "n_clients": N_CLIENTS,
        "alone_p50_ms": statistics.median(t for b in alone for t in ms(b)),
        "beside_p50_ms": statistics.median(t for b in beside for t in ms(b)),
        "alone_p95_ms": statistics.median(p95(ms(b)) for b in alone),
        "beside_p95_ms": statistics.median(p95(ms(b)) for b in beside),
        "p50_ratio": statistics.median(middles),
        "p95_ratio": statistics.median(ratios),
        "p95_ratio_least": min(ratios),
        "p95_ratio_most": max(ratios),
    }


def print_parts(alone: list[Key], beside: list[Key]) -> None:
    """Means over all keys, and over the twentieth of them that came latest."""

    def late(keys: list[Key]) -> list[Key]:
        return sorted(keys, key=lambda key: key.ms)[-max(1, len(keys) // 20) :]

    print(f"{'mean of a key':15}{'alone':>9}{'beside':>9}{'late':>9}{'late':>9}")
    for part in PARTS:
        means = (
            statistics.mean(getattr(key, part) for key in keys)
            for keys in (alone, beside, late(alone), late(beside))
        )
        print(f"{part:15}" + "".join(f"{mean:9.2f}" for mean in means))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=60, help="of the editor, a block")
    parser.add_argument("--blocks", type=int, default=5, help="alone and beside, in turns")
    parser.add_argument("--port", type=int, help="load this front, for ever")
    options = parser.parse_args()
    if options.port:
        ask(options.port)
    alone, beside = measure(options.keys, options.blocks)
    figures = figures_of(alone, beside)
    for name, value in figures.items():
        print(f"{name:15}{value:9.2f}")
    print_parts(list(chain(*alone)), list(chain(*beside)))
    print(json.dumps({"name": "http_load", **figures}))


if __name__ == "__main__":
    main()
