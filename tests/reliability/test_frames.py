"""Messages that are none, at random: over the language server's pipe and the daemon's socket. What
comes after them is answered. (Single ones: `test_lsp_hostile.py`, `test_daemon_server.py`.)"""

from __future__ import annotations

import json
import random
import socket
import struct
import sys
from typing import Any

import pytest

from codespec.daemon.address import address_of
from tests.e2e.conftest import Home, daemon_of, report_of, texts, until
from tests.reliability.amount import amount, chance
from tests.rpc import LspClient

URI = "file:///w/a.py"
METHODS = (
    *("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"),
    *("textDocument/didSave", "textDocument/inlineCompletion", "textDocument/didFocus"),
    *("$/cancelRequest", "$/setTrace", "workspace/executeCommand", "nothing/known"),
    *("workspace/didChangeConfiguration", "workspace/didChangeWorkspaceFolders"),
    *("notebookDocument/didOpen", "notebookDocument/didChange", "initialize", "initialized"),
)
KEYS = ("textDocument", "uri", "position", "line", "character", "context", "contentChanges", "text")
KEYS += ("range", "start", "end", "version", "id", "command", "arguments", "settings", "event")
LEAVES: tuple[Any, ...] = (None, True, 0, -1, 1, 1 << 31, 1 << 63, 10**30, 1.5, 1e308, "", "x")
LEAVES += ("\x00", "é😀", "file:///../../etc/passwd", "a" * 1000, "file:///w/b.py")


def junk(rng: random.Random, depth: int = 0) -> object:
    if depth < 4 and rng.random() < 0.6:
        if rng.random() < 0.3:
            return [junk(rng, depth + 1) for _ in range(rng.randrange(4))]
        return {rng.choice(KEYS): junk(rng, depth + 1) for _ in range(rng.randrange(5))}
    return rng.choice(LEAVES)


def message(rng: random.Random) -> bytes:
    said = {"jsonrpc": "2.0", "method": rng.choice(METHODS), "params": junk(rng)}
    if rng.random() < 0.3:  # which the client fails at if it is answered twice
        said["id"] = rng.choice((f"s{rng.random()}", -rng.randrange(1 << 50)))
    if rng.random() < 0.1:
        del said[rng.choice(list(said))]
    return json.dumps(said).encode()


def body(rng: random.Random) -> bytes:
    whole = message(rng)
    return rng.choice(
        (
            whole,
            whole,
            whole[: rng.randrange(len(whole))],
            rng.randbytes(rng.randrange(1, 60)),
            b"[" * rng.randrange(1, 3000),
            b"[" + b",".join([whole] * 3) + b"]",
            b'{"jsonrpc":"2.0","id":"x","result":[[]]}',
            b'{"jsonrpc":"2.0","id":"x","error":{"code":"x","message":5}}',
            b"\xff\xfe" + whole,
        )
    )


def test_a_language_server_goes_on(scripted: LspClient) -> None:
    """Documents that the junk opened, changed or closed are not those that are asked about."""
    rng = chance()
    stdin = scripted.process.stdin
    assert stdin is not None
    for n in range(amount(600) // 20):
        for _ in range(20):
            data = body(rng)
            stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        stdin.flush()
        uri = f"{URI}{n}"
        scripted.open(uri, "on")
        assert texts(scripted.complete(uri, 0, 2)) == ["[on|]"]
        scripted.notifications.clear()
    assert scripted.close() == 0
    assert "Traceback" not in scripted.stderr.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="a port there")
def test_a_daemon_goes_on(home: Home) -> None:
    rng = chance()
    with daemon_of(home, "ok"):
        address = address_of(home.settings)
        before = report_of(home.settings)
        for _ in range(amount(60)):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(address.socket))
                data = rng.randbytes(rng.randrange(200))
                sizes = (len(data), 0, 1, 1 << 20, 1 << 31, (1 << 32) - 1, rng.randrange(1 << 32))
                client.sendall(struct.pack("<I", rng.choice(sizes)) + data)
                if rng.random() < 0.5:
                    client.shutdown(socket.SHUT_WR)
                    client.recv(1 << 16)
        until(lambda: report_of(home.settings).n_clients <= before.n_clients)
        after = report_of(home.settings)
        assert (after.pid, after.worker_pid, after.n_respawns) == (
            *(before.pid, before.worker_pid),
            0,
        )
