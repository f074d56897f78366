"""A model's server to be killed, in a process of its own: python -m tests.reliability.dying_engine
PORT HOW. Each answer takes a moment, so that a kill cuts some off.

HOW: fine, broken (status 500), cut (each answer breaks off in the middle)
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time

from tests.scripted_server import Exchange, models, scripted_server

ROUTE = "/v1/completions"
PIECES = ("rst", "()", "\n")
PIECE_S = 0.02


def fine(exchange: Exchange) -> None:
    exchange.begin()
    for text in PIECES:
        time.sleep(PIECE_S)
        exchange.event({"choices": [{"text": text}]})
    exchange.event("[DONE]")
    exchange.end()


def broken(exchange: Exchange) -> None:
    exchange.answer({"error": {"message": "no"}}, 500)


def cut(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event({"choices": [{"text": PIECES[0]}]})
    time.sleep(PIECE_S)
    exchange.cut()


WAYS = {"fine": fine, "broken": broken, "cut": cut}


def started(port: int, how: str) -> subprocess.Popen[str]:
    """A process that answers at this port."""
    command = [sys.executable, "-m", "tests.reliability.dying_engine", str(port), how]
    engine = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert engine.stdout is not None
    with engine.stdout as said:
        assert said.readline() == "ready\n"
    return engine


if __name__ == "__main__":
    with scripted_server({"/v1/models": models(), ROUTE: WAYS[sys.argv[2]]}, port=int(sys.argv[1])):
        print("ready", flush=True)
        threading.Event().wait()
