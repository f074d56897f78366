"""Suggestions below lines that are whole, and whether the user wants them."""

from __future__ import annotations

from codespec.occasions import BELOW
from codespec.stats import Stats
from tests.e2e.conftest import PATIENT, Home, Spawn, daemon_of, texts
from tests.rpc import LspClient

URI = "file:///project/a.py"


def test_what_is_below_is_typed_along_after_a_line_end(scripted: LspClient) -> None:
    scripted.open(URI, "whole")
    (item,) = scripted.complete(URI, 0, 5, invoked=False)
    assert item["insertText"] == "\n    next"
    scripted.notify("textDocument/didShowCompletion", {"item": item})
    at = {"line": 0, "character": 5}
    scripted.change(URI, 2, {"range": {"start": at, "end": at}, "text": "\n    "})
    assert texts(scripted.complete(URI, 1, 4, invoked=False)) == ["next"]
    scripted.open("file:///project/b.py", "x =")
    (item,) = scripted.complete("file:///project/b.py", 0, 3, invoked=False)
    scripted.notify("textDocument/didShowCompletion", {"item": item})
    assert scripted.close() == 0
    assert Stats().habits() == {("python", BELOW): (1, 0), ("python", "within a line"): (1, 0)}


def test_those_that_are_never_accepted_are_made_less(home: Home, spawn: Spawn) -> None:
    """By a habit of their own: within lines suggestions stay."""
    stats = Stats()
    stats.habit("python", BELOW, 60, 0)
    stats.flush()
    with daemon_of(home, "ok"):
        client = spawn()
        client.initialize(home.workspace, options=PATIENT)
        client.wait_for_status("Normal", "ready")
        n = 24
        client.open(URI, "".join(f"x_{i} whole\ny_{i} =\n" for i in range(n)))
        assert client.complete(URI, 0, 99, invoked=True)
        below = [bool(client.complete(URI, 2 * i, 99, invoked=False)) for i in range(1, n)]
        within = [bool(client.complete(URI, 2 * i + 1, 99, invoked=False)) for i in range(1, n)]
        assert client.close() == 0
    assert below[-8:].count(True) == 1  # the counts are read in the background
    assert all(within)
