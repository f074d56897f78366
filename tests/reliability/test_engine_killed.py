"""The model's server is killed again and again while editors ask: each request is answered, late or
with nothing, and whoever asks after the server is back gets text."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.e2e.conftest import Home, Spawn, report_of
from tests.reliability.amount import amount, chance, tell
from tests.reliability.dying_engine import started

N_EDITORS = 2
PAUSE_S = 0.05
"""Seconds between two requests of an editor."""
PATIENCE_S = 90.0
"""Most seconds until text comes again: a server that failed is left alone for a minute at most."""
DEADLINE_MS = 2_000.0
TEXT = "def f():\n    fi\n\n\nx = {}\n"
SETTINGS = {"completion": {"deadline_invoked_ms": DEADLINE_MS}, "index": {"enabled": False}}


@dataclass
class Count:
    """Requests of an editor: all, answered ones, those answered with text."""

    n_asked: int = 0
    n_answered: int = 0
    n_with_text: int = 0


def test_no_request_is_lost(home: Home, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    n_kills, r = amount(3), chance()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", f"http://127.0.0.1:{port}")
    counts = [Count() for _ in range(N_EDITORS)]
    is_over = threading.Event()

    def ask(editor: int) -> None:
        """Ask about a text that is another one each time, until all is over."""
        client, count = spawn(), counts[editor]
        client.initialize(home.workspace, options=SETTINGS)
        uri = (home.workspace / f"{editor}.py").as_uri()
        client.open(uri, TEXT.format(0))
        while not is_over.wait(PAUSE_S):
            count.n_asked += 1
            client.change(uri, count.n_asked + 1, {"text": TEXT.format(count.n_asked)})
            items = client.complete(uri, 1, 6)
            count.n_answered += 1
            count.n_with_text += bool(items)
        assert not client.pending_replies
        assert client.close() == 0

    def wait_for_text() -> float:
        """Wait until each editor has had some from now on. Returns: seconds."""
        began_s, before = time.monotonic(), [count.n_with_text for count in counts]
        while any(c.n_with_text == n for c, n in zip(counts, before, strict=True)):
            assert time.monotonic() - began_s < PATIENCE_S
            assert not any(editor.done() for editor in editors), "an editor failed"
            time.sleep(PAUSE_S)
        return time.monotonic() - began_s

    engine = started(port, "fine")
    with ThreadPoolExecutor(N_EDITORS) as pool:
        editors = [pool.submit(ask, editor) for editor in range(N_EDITORS)]
        try:
            longest_s = 0.0
            wait_for_text()
            for n in range(n_kills):
                engine.kill()
                engine.wait()
                time.sleep(r.uniform(0, 0.5))  # nobody listens
                if n % 3:
                    engine = started(port, ("broken", "cut")[n % 3 - 1])
                    time.sleep(r.uniform(0, 1))
                    engine.kill()
                    engine.wait()
                engine = started(port, "fine")
                longest_s = max(longest_s, wait_for_text())
        finally:
            is_over.set()
            engine.kill()
            engine.wait()
        for editor in editors:
            editor.result()
        assert report_of(home.settings).n_respawns == 0
    n_asked, n_answered = (sum(c.n_asked for c in counts), sum(c.n_answered for c in counts))
    tell(
        kills=n_kills,
        asked=n_asked,
        answered=n_answered,
        with_text=sum(count.n_with_text for count in counts),
        back_s_max=round(longest_s, 1),
    )
    assert n_asked == n_answered > 0
