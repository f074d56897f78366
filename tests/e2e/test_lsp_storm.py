"""Typing, asking and cancelling at random: each request is answered once, whatever the order."""

from __future__ import annotations

import random

from tests.e2e.conftest import TIMEOUT_S
from tests.reliability.amount import amount, chance
from tests.rpc import LspClient

URIS = [f"file:///project/{name}.py" for name in "ab"]
CANCELLED = -32800
# The script takes some of them literally.
TEXTS = ["until cancelled", "x", "def f(", "raise ValueError", "return x.", "until cancelle"]


def insert(column: int, text: str) -> dict[str, object]:
    place = {"line": 0, "character": column}
    return {"range": {"start": place, "end": place}, "text": text}


def storm(client: LspClient, n_requests: int, chance: random.Random) -> int:
    """How many were answered with something. The client fails where one is answered twice."""
    texts = dict.fromkeys(URIS, "x")
    latest = dict.fromkeys(URIS, 0)
    cancelled: set[int] = set()
    for uri in URIS:
        client.open(uri, "x")
    pending: list[int] = []
    n_items = 0
    for n in range(n_requests):
        uri = chance.choice(URIS)
        if chance.random() < 0.5:
            typed = chance.choice("[abx.")
            client.change(uri, n + 2, insert(len(texts[uri]), typed))
            texts[uri] += typed
        elif chance.random() < 0.5:
            texts[uri] = chance.choice(TEXTS)
            client.change(uri, n + 2, {"text": texts[uri]})
        invoked = chance.random() < 0.3
        latest[uri] = client.post_completion(uri, 0, len(texts[uri]), invoked)
        pending.append(latest[uri])
        while chance.random() < 0.4:
            request = chance.choice(pending[-8:])
            client.notify("$/cancelRequest", {"id": request})
            cancelled.add(request)
        if chance.random() < 0.1 or len(pending) > 50 or n == n_requests - 1:
            for uri in URIS:  # nothing runs on for ever
                if latest[uri]:
                    client.notify("$/cancelRequest", {"id": latest[uri]})
                    cancelled.add(latest[uri])
            for request in pending:
                reply = client.reply(request, TIMEOUT_S)
                if "error" in reply:
                    assert reply["error"]["code"] == CANCELLED
                    assert request in cancelled
                else:
                    n_items += len(reply["result"]["items"])
            pending = []
    for uri in URIS:
        client.change(uri, n_requests + 2, {"text": "end"})
        assert client.complete(uri, 0, 3)[0]["insertText"] == "[end|]"
    assert not client.pending_replies
    return n_items


def test_no_reply_is_lost_or_doubled(scripted: LspClient) -> None:
    n_requests = amount(400)
    assert storm(scripted, n_requests, chance()) > n_requests / 10
