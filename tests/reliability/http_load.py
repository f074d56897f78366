"""An editor's suggestions while many ask over HTTP: python -m tests.reliability.http_load

64 clients in a process of their own ask for completions one after the other, and 64 connections
hold half a body. The same requests of an editor are measured before and meanwhile, through the
daemon, in the folders of a new user. Prints a table and one line of JSON.
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
from contextlib import suppress
from pathlib import Path

from codespec.config import load_settings
from codespec.daemon import control
from codespec.daemon.client import DaemonEngine
from codespec.requests import CompletionRequest
from tests.http_client import front_of

ROUTE = "/v1/completions"
N_CLIENTS = 64
KEY_S = 0.15
"""Seconds between an answer and the next key."""
DEADLINE_MS = 300.0
ABOVE = (
    "import os\n\n\ndef read_file(path):\n    with open(path) as f:\n        return f.read()\n\n\n"
)


def answered_ms(editor: DaemonEngine, n: int) -> list[float]:
    """Milliseconds from each of n keys to the answer."""
    took: list[float] = []
    for i in range(n):
        request = CompletionRequest(
            f"{ABOVE}def load_{i}(path):\n    with ", "\n", language_id="python",
            max_tokens=24, deadline_ms=DEADLINE_MS,
        )  # fmt: skip
        began = time.perf_counter()
        editor.complete(request)
        took.append((time.perf_counter() - began) * 1e3)
        time.sleep(KEY_S)
    return took


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


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def measure(n_keys: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="codespec-") as folder:
        for name in ("HOME", "CODESPEC_RUNTIME_DIR", "CODESPEC_CACHE_DIR", "XDG_CONFIG_HOME",
                     "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):  # fmt: skip
            own = Path(folder) / name.lower()
            own.mkdir(mode=0o700)
            os.environ[name] = str(own)
        settings = load_settings()
        with front_of(Path(folder)) as front, DaemonEngine(settings) as editor:
            answered_ms(editor, 10)  # costs are measured with the first ones
            alone = answered_ms(editor, n_keys)
            command = [sys.executable, "-m", __spec__.name, "--port", str(front.port)]
            with subprocess.Popen(command) as clients:
                time.sleep(2)
                beside = answered_ms(editor, n_keys)
                assert clients.poll() is None, "the clients ended"
                clients.terminate()
            control.stop(settings)
    return {
        "n_keys": n_keys,
        "n_clients": N_CLIENTS,
        "alone_p50_ms": statistics.median(alone),
        "beside_p50_ms": statistics.median(beside),
        "alone_p95_ms": p95(alone),
        "beside_p95_ms": p95(beside),
        "p95_ratio": p95(beside) / p95(alone),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100, help="of the editor, each time")
    parser.add_argument("--port", type=int, help="load this front, for ever")
    options = parser.parse_args()
    if options.port:
        ask(options.port)
    figures = measure(options.keys)
    for name, value in figures.items():
        print(f"{name:15}{value:8.1f}")
    print(json.dumps({"name": "http_load", **figures}))


if __name__ == "__main__":
    main()
