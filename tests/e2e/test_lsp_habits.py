"""Acceptance by kind of place, also of suggestions below complete lines."""

from __future__ import annotations

from codespec.usage.statistics import Stats
from codespec.usage.suppression import PlaceKind
from tests.e2e.conftest import PATIENT, Home, Spawn, daemon_of, texts
from tests.rpc import LspClient, accept, insert

URI = "file:///project/a.py"


def test_what_is_below_is_typed_along_after_a_line_end(scripted: LspClient) -> None:
    scripted.open(URI, "whole")
    (item,) = scripted.complete(URI, 0, 5, invoked=False)
    assert item["insertText"] == "\n    next"
    scripted.notify("textDocument/didShowCompletion", {"item": item})
    scripted.change(URI, 2, insert(0, 5, "\n    "))
    assert texts(scripted.complete(URI, 1, 4, invoked=False)) == ["next"]
    scripted.open("file:///project/b.py", "x =")
    (item,) = scripted.complete("file:///project/b.py", 0, 3, invoked=False)
    scripted.notify("textDocument/didShowCompletion", {"item": item})
    assert scripted.close() == 0
    assert Stats().habits() == {
        ("python", PlaceKind.BELOW): (1, 0),
        ("python", PlaceKind.WITHIN_LINE): (1, 0),
    }


def test_those_below_that_are_never_accepted_are_made_less(home: Home, spawn: Spawn) -> None:
    """By a habit of their own: within lines suggestions stay."""
    stats = Stats()
    stats.habit("python", PlaceKind.BELOW, 60, 0)
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


def test_suggestions_that_are_never_accepted_are_made_less(home: Home, spawn: Spawn) -> None:
    def answers(n: int, adaptive: bool) -> tuple[list[bool], list[str]]:
        client = spawn()
        completion = {**PATIENT["completion"], "adaptive": adaptive}
        client.initialize(home.workspace, options={**PATIENT, "completion": completion})
        client.notify("$/setTrace", {"value": "messages"})
        client.wait_for_status("Normal", "ready")
        client.open(URI, "".join(f"line_{i} =\n" for i in range(n)))
        assert client.complete(URI, 0, 4, invoked=True)
        found = [bool(client.complete(URI, i, 99, invoked=False)) for i in range(n)]
        traces = [
            m["params"]["message"] for m in client.notifications if m["method"] == "$/logTrace"
        ]
        assert client.close() == 0
        return found, traces

    stats = Stats()
    stats.habit("python", PlaceKind.WITHIN_LINE, 60, 0)
    stats.flush()
    with daemon_of(home, "ok"):
        found, traces = answers(16, adaptive=True)
        # The counts are read in the background.
        assert found[-8:].count(True) == 1
        assert any("were passed over: 0 of 60 accepted" in trace for trace in traces)
        assert answers(4, adaptive=False)[0] == [True] * 4


def test_showing_and_accepting_are_the_users_habits(home: Home, scripted: LspClient) -> None:
    scripted.open(URI, "x = ")
    (item,) = scripted.complete(URI, 0, 4, invoked=False)
    scripted.notify("textDocument/didShowCompletion", {"item": item})
    text = item["insertText"]
    scripted.change(URI, 2, insert(0, 4, text[0]))  # typed along: the same suggestion
    (item,) = scripted.complete(URI, 0, 5, invoked=False)
    scripted.notify("textDocument/didShowCompletion", {"item": item})
    accept(scripted, item)
    (asked_for,) = scripted.complete(URI, 0, 3, invoked=True)
    scripted.notify("textDocument/didShowCompletion", {"item": asked_for})
    assert scripted.close() == 0
    assert Stats().habits() == {("python", PlaceKind.WITHIN_LINE): (1, 1)}
