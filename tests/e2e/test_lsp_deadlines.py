"""Deadlines: answers in time, and later ones: an engine that follows a script, real bytes."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from tests.e2e.conftest import PATIENT, Home, Spawn, daemon_of, texts, until
from tests.rpc import LspClient, insert

URI = "file:///project/a.py"


@contextmanager
def limited(home: Home, spawn: Spawn, limits: Mapping[str, object]) -> Generator[LspClient]:
    with daemon_of(home, "ok"):
        client = spawn()
        client.initialize(home.workspace, options={**PATIENT, "completion": limits})
        client.wait_for_status("Normal", "ready")
        yield client
        assert client.close() == 0


def test_at_the_deadline_finished_lines_are_shown_and_the_rest_is_kept(
    home: Home, spawn: Spawn
) -> None:
    limits = {"deadline_auto_ms": 150, "linger_ms": 500}
    with limited(home, spawn, limits) as client:
        client.open(URI, "tell")
        assert texts(client.complete(URI, 0, 4, invoked=False)) == ["one"]
        until(lambda: texts(client.complete(URI, 0, 4, invoked=False)) == ["one\ntwo\nthree"])


def test_where_no_line_was_finished_the_first_one_comes_late(home: Home, spawn: Spawn) -> None:
    limits = {"deadline_auto_ms": 150, "linger_ms": 1500}
    with limited(home, spawn, limits) as client:
        client.open(URI, "tell late")
        assert texts(client.complete(URI, 0, 9, invoked=False)) == ["one"]
        until(lambda: texts(client.complete(URI, 0, 9, invoked=False)) == ["one\ntwo\nthree"])
        # Only for who does not ask again.
        other = "file:///project/b.py"
        client.open(other, "tell late")
        waits = client.post_completion(other, 0, 9, False, None)
        client.change(other, 2, insert(0, 9, "r"))
        assert texts(client.complete(other, 0, 10, invoked=False)) == ["[tell later|]"]
        assert client.reply(waits)["result"]["items"] == []
        # And who wants that.
        pushed = {"codespec": {"server": {"completion": {**limits, "show_late": False}}}}
        client.notify("workspace/didChangeConfiguration", {"settings": pushed})
        client.open("file:///project/c.py", "tell late")
        assert texts(client.complete("file:///project/c.py", 0, 9, invoked=False)) == []


def test_who_can_show_it_is_told_of_more(home: Home, spawn: Spawn) -> None:
    limits = {"deadline_auto_ms": 3000, "linger_ms": 500}
    with daemon_of(home, "ok"):
        client = spawn()
        options = {**PATIENT, "completion": limits}
        able = {"growingCompletion": True}
        client.initialize(home.workspace, options=options, experimental=able)
        client.wait_for_status("Normal", "ready")
        client.open(URI, "tell")
        started = time.monotonic()
        (first,) = client.complete(URI, 0, 4, invoked=False)
        assert first["insertText"] == "one"
        assert time.monotonic() - started < 2.5, "it does not wait for all of it"
        said = client.wait_for(lambda m: m["method"] == "textDocument/completionGrew")["params"]
        assert said["textDocument"] == {"uri": URI}
        assert said["id"] == first["command"]["arguments"][0]
        grown = said["item"]
        assert (grown["insertText"], grown["range"]) == ("one\ntwo\nthree", first["range"])
        assert grown["command"]["arguments"] != first["command"]["arguments"]
        # What is accepted is what it was by then.
        command, arguments = grown["command"]["command"], grown["command"]["arguments"]
        client.request("workspace/executeCommand", {"command": command, "arguments": arguments})
        # Nobody is told of what is not shown any more.
        other = "file:///project/b.py"
        client.open(other, "tell")
        assert texts(client.complete(other, 0, 4, invoked=False)) == ["one"]
        client.change(other, 2, insert(0, 4, "!"))
        assert texts(client.complete(other, 0, 5, invoked=False)) == ["[tell!|]"]
        assert "textDocument/completionGrew" not in {m["method"] for m in client.notifications}
        assert client.close() == 0


def test_who_asks_has_a_deadline_of_its_own(home: Home, spawn: Spawn) -> None:
    limits = {"deadline_auto_ms": 30_000, "deadline_invoked_ms": 150, "linger_ms": 500}
    with limited(home, spawn, limits) as client:
        client.open(URI, "tell")
        assert texts(client.complete(URI, 0, 4, invoked=True)) == ["one"]
        until(lambda: texts(client.complete(URI, 0, 4)) == ["one\ntwo\nthree"])


def test_what_goes_on_for_later_use_makes_room_for_others(home: Home, spawn: Spawn) -> None:
    limits = {"deadline_auto_ms": 150, "deadline_invoked_ms": 30_000, "linger_ms": 10**6}
    with limited(home, spawn, limits) as client:
        client.open(URI, "tell")
        assert texts(client.complete(URI, 0, 4, invoked=False)) == ["one"]
        client.open("file:///project/b.py", "x")
        assert texts(client.complete("file:///project/b.py", 0, 1)) == ["[x|]"]
        # Its own document, too: what runs agrees with what is typed, until it does not.
        client.change(URI, 2, insert(0, 4, "o"))
        assert texts(client.complete(URI, 0, 5, invoked=False)) == ["ne"]
        client.change(URI, 3, insert(0, 5, "!"))
        assert texts(client.complete(URI, 0, 6, invoked=False)) == ["[tello!|]"]
