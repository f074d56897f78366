"""An engine's HTTP API in a process of its own, which tests may stop or kill.

    python -m tests.team.scripted_engine PORT LOG

It wants `KEY`, answers each completion with `TEXT` in pieces, and appends a line of JSON to LOG for
every request and for every client that left before the end.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.scripted_server import Exchange, Route, models, scripted_server

KEY = "team-key"
TEXT = "rst(alpha, beta)"
FULL = "/codespec/contents"
"""Route of an engine whose disk is full."""
ENDLESS = "endless"
"""Text of a prompt that is answered without an end."""


def main(port: int, log: Path) -> None:
    def told(exchange: Exchange, **more: object) -> None:
        session = exchange.headers.get("X-Session-Id", exchange.headers.get("x-session-id", ""))
        line = {"path": exchange.path, "session": session, **more}
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def for_key(route: Route) -> Route:
        def answer(exchange: Exchange) -> None:
            named = {name.lower(): value for name, value in exchange.headers.items()}
            if named.get("authorization") != f"Bearer {KEY}":
                exchange.answer({"error": {"message": "no key"}}, 401)
                return
            told(exchange)
            route(exchange)

        return answer

    def complete(exchange: Exchange) -> None:
        exchange.begin()
        is_endless = ENDLESS in exchange.body["prompt"]
        try:
            while is_endless:
                exchange.event({"choices": [{"index": 0, "text": " x"}]})
                time.sleep(0.01)
        except OSError:
            told(exchange, left=True)
            raise
        for piece in TEXT:
            exchange.event({"choices": [{"index": 0, "text": piece}]})
            time.sleep(0.001)
        exchange.event({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
        exchange.event("[DONE]")
        exchange.end()

    routes: dict[str, Route] = {
        "/health": lambda exchange: exchange.answer({}),
        "/metrics": lambda exchange: exchange.answer({}),
        "/v1/models": for_key(models("vllm", max_model_len=2048)),
        "/v1/completions": for_key(complete),
        FULL: for_key(lambda exchange: exchange.answer({}, 507)),
        "/codespec/workspaces": for_key(lambda exchange: exchange.answer({"port": port})),
    }
    with scripted_server(routes, port=port), suppress(KeyboardInterrupt):
        threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
