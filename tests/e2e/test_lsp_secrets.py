"""Secrets that were typed and never saved serve no other document, in a real server, daemon and
model worker."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from codespec.documents.sources import BUFFERS, EDITS
from tests.e2e.conftest import PATIENT, Home, Spawn
from tests.rpc import LspClient

TOKEN = "ghp_" + "Ab3" * 12
SECRET = f'token = "{TOKEN}"\n'
KNOWN = (
    "def reconcile_ledger_entries(ledger, statement, tolerance):\n"
    "    unmatched_entries = collect_unmatched(ledger, statement)\n"
    "    return unmatched_entries.within(tolerance)\n"
)
BEGUN = KNOWN[: KNOWN.index("unmatched(ledger")]  # so much that anything would draft the rest
OPTIONS = {
    **PATIENT,
    "context": {"symbols": "on", "buffers": "on", "edits": "on"},
    "drafting": {"drafters": ["lookup"], "adaptive": False},
}
_numbers = count(1)


class Desk:
    """An editor with one document in which things happen, and others that may gain by it."""

    def __init__(self, home: Home, client: LspClient) -> None:
        self._home = home
        self._client = client
        path = home.workspace / "ledger.py"
        path.write_text("import sys\n")
        self._uri = path.as_uri()
        self._version = 1
        client.initialize(home.workspace, options=OPTIONS)
        client.notify("$/setTrace", {"value": "verbose"})
        client.wait_for_status("Normal", "ready")
        client.open(self._uri, "import sys\n")

    def edit(self, text: str) -> None:
        """The buffer is this now, and the engine has seen it."""
        self._version += 1
        self._client.change(self._uri, self._version, {"text": text})
        # Not where it was asked before, or what is kept would be the answer.
        self._figures(self._uri, self._version % text.count("\n"), 0)

    def gains(self, begun: str) -> set[str]:
        """Which sources of other documents draft for a new one that begins like this, and
        "snippets" where it is shown text of theirs."""
        uri = (self._home.workspace / f"new_{next(_numbers)}.py").as_uri()
        self._client.open(uri, begun)
        lines = begun.split("\n")
        figures = self._figures(uri, len(lines) - 1, len(lines[-1]))
        self._client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        elsewhere = {BUFFERS.label, EDITS.label}
        gained = {source for source in figures["by_source"] if source in elsewhere}
        return gained | ({"snippets"} if figures["n_snippets"] else set())

    def _figures(self, uri: str, line: int, character: int) -> dict[str, Any]:
        self._client.complete(uri, line, character)
        trace = self._client.wait_for(lambda m: '"trace"' in m.get("params", {}).get("verbose", ""))
        return json.loads(trace["params"]["verbose"])["trace"]


def test_a_buffer_that_holds_a_secret_lends_all_but_that(home: Home, spawn: Spawn) -> None:
    client = spawn()
    desk = Desk(home, client)
    desk.edit(KNOWN)
    assert desk.gains(BEGUN) == {"buffers", "snippets"}
    desk.edit(KNOWN + SECRET)
    assert desk.gains(BEGUN) == {"buffers", "snippets"}
    assert "buffers" not in desk.gains(f"import os\n\n\nclient.open({TOKEN[:20]}")
    assert client.close() == 0
    assert TOKEN.encode() not in client.stderr


def test_a_secret_that_was_deleted_again_is_not_remembered(home: Home, spawn: Spawn) -> None:
    client = spawn()
    desk = Desk(home, client)
    other = KNOWN.replace("ledger", "invoice")
    desk.edit(KNOWN + other)
    desk.edit(other)  # lines that are lost serve other documents
    assert "edits" in desk.gains(BEGUN)
    desk.edit(other + SECRET)
    desk.edit("import os\n" + other + SECRET)  # elsewhere, so that the secret is no edit under way
    desk.edit("import os\n" + other)
    assert "edits" not in desk.gains(f"import os\n\n{SECRET[:20]}")
    assert client.close() == 0
    for file in (home.path / "state", home.path / "run"):
        for path in file.rglob("*"):
            assert not path.is_file() or TOKEN.encode() not in path.read_bytes()
