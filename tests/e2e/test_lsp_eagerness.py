"""`completion.eagerness` over the language server, with the real model."""

from __future__ import annotations

import pytest

from codespec.usage.statistics import Stats
from codespec.usage.suppression import PlaceKind
from tests.e2e.conftest import PATIENT, Home, Spawn, texts
from tests.rpc import LspClient, accept

CODE = '''def mean(values):
    """The mean of some numbers."""
    total = 0
    for value in values:
        total += value
    return total / len(values)


def variance(values):
    """The variance of some numbers."""
    middle = mean(
    total = 0
    for value in values:
        total +=
    return
'''
LOOP = "for value in values:\n    total += value\n    print(value)\n"
SURE = f"{LOOP}for value in others:\n    total += \n"
PLACES = ((0, 9), (4, 14), (8, 13), (10, 18), (12, 8), (13, 16), (14, 10))


def started(home: Home, spawn: Spawn, level: str) -> LspClient:
    client = spawn()
    asked = {**PATIENT["completion"], "deadline_auto_ms": 30_000, "eagerness": level}
    client.initialize(home.workspace, options={**PATIENT, "completion": asked})
    client.notify("$/setTrace", {"value": "messages"})
    client.wait_for_status("Normal", "ready")
    return client


def cut_at(place: tuple[int, int]) -> str:
    """The code with nothing behind the place in its line."""
    lines = CODE.split("\n")
    lines[place[0]] = lines[place[0]][: place[1]]
    return "\n".join(lines)


def test_less_is_suggested_unasked_and_the_same_when_asked(home: Home, spawn: Spawn) -> None:
    unasked: dict[str, list[str]] = {}
    invoked: dict[str, list[str]] = {}
    traces: list[str] = []
    for level in ("high", "medium", "low"):
        client = started(home, spawn, level)
        for n, place in enumerate(PLACES):
            uri = f"file:///project/{n}.py"
            client.open(uri, cut_at(place))
            for found, is_asked in ((unasked, False), (invoked, True)):
                items = texts(client.complete(uri, *place, invoked=is_asked))
                found.setdefault(level, []).append(items[0] if items else "")
        notes = (m for m in client.notifications if m["method"] == "$/logTrace")
        traces += [m["params"]["message"] for m in notes if level != "high"]
        assert client.close() == 0
    assert sum(map(bool, unasked["high"])) > 3
    assert invoked["high"] == invoked["medium"] == invoked["low"]
    for whole, some, few in zip(*(unasked[k] for k in ("high", "medium", "low")), strict=True):
        assert whole.startswith(some)
        assert some.startswith(few)
    assert len("".join(unasked["low"])) < len("".join(unasked["high"]))
    assert any("not likely enough to be kept (completion.eagerness)" in note for note in traces)


@pytest.mark.parametrize("level", ["high", "medium"])
def test_outcomes_are_counted_where_probabilities_are(home: Home, spawn: Spawn, level: str) -> None:
    client = started(home, spawn, level)
    uri = "file:///project/a.py"
    client.open(uri, SURE)
    (item,) = client.complete(uri, 4, 13, invoked=False)
    client.notify("textDocument/didShowCompletion", {"item": item})
    accept(client, item)
    assert client.close() == 0
    counted = Stats().outcomes()
    if level == "high":
        assert counted == {}
    else:
        ((language, kind), (n_shown, said, n_kept)), *others = counted.items()
        assert (language, kind, others) == ("python", PlaceKind.WITHIN_LINE, [])
        assert (n_shown, n_kept, 0 < said < 1) == (1, 1, True)
