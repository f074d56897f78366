"""Typing, asking and cancelling at random: each request is answered once, whatever the order."""

from __future__ import annotations

import os
import random

from tests.e2e.conftest import TIMEOUT_S
from tests.rpc import LspClient

N_REQUESTS = int(os.environ.get("SOAK_REQUESTS", "400"))
URIS = [f"file:///project/{name}.py" for name in "ab"]
CANCELLED = -32800
# The script takes some of them literally.
TEXTS = ["until cancelled", "x", "def f(", "raise ValueError", "return x.", "until cancelle"]


def insert(column: int, text: str) -> dict[str, object]:
    place = {"line": 0, "character": column}
    return {"range": {"start": place, "end": place}, "text": text}


def test_no_reply_is_lost_or_doubled(scripted: LspClient) -> None:
    """The client fails where a request is answered twice."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    texts = dict.fromkeys(URIS, "x")
    latest = dict.fromkeys(URIS, 0)
    cancelled: set[int] = set()
    for uri in URIS:
        scripted.open(uri, "x")
    pending: list[int] = []
    n_items = 0
    for n in range(N_REQUESTS):
        uri = chance.choice(URIS)
        if chance.random() < 0.5:
            typed = chance.choice("[abx.")
            scripted.change(uri, n + 2, insert(len(texts[uri]), typed))
            texts[uri] += typed
        elif chance.random() < 0.5:
            texts[uri] = chance.choice(TEXTS)
            scripted.change(uri, n + 2, {"text": texts[uri]})
        invoked = chance.random() < 0.3
        latest[uri] = scripted.post_completion(uri, 0, len(texts[uri]), invoked)
        pending.append(latest[uri])
        while chance.random() < 0.4:
            request = chance.choice(pending[-8:])
            scripted.notify("$/cancelRequest", {"id": request})
            cancelled.add(request)
        if chance.random() < 0.1 or len(pending) > 50 or n == N_REQUESTS - 1:
            for uri in URIS:  # nothing runs on for ever
                if latest[uri]:
                    scripted.notify("$/cancelRequest", {"id": latest[uri]})
                    cancelled.add(latest[uri])
            for request in pending:
                reply = scripted.reply(request, TIMEOUT_S)
                if "error" in reply:
                    assert reply["error"]["code"] == CANCELLED
                    assert request in cancelled
                else:
                    n_items += len(reply["result"]["items"])
            pending = []
    for uri in URIS:
        scripted.change(uri, N_REQUESTS + 2, {"text": "end"})
        assert scripted.complete(uri, 0, 3)[0]["insertText"] == "[end|]"
    assert n_items > N_REQUESTS / 10
    assert not scripted.pending_replies
