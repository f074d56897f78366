"""Secrets of documents, and excluded files, never reach a server: looked for in all that a
recording server was sent."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.errors import InputError
from codespec.reasons import NoSuggestion
from codespec.requests import CompletionRequest
from codespec.rules.secrets import find
from codespec.types import Snippet
from tests import planted
from tests.index_support import isolate
from tests.reliability.amount import amount, chance, tell
from tests.scripted_server import ScriptedServer, completion, models, scripted_server

N_GRAM = 8
"""Characters of a secret's random part that no request may hold."""


class Recorded(NamedTuple):
    engine: LocalEngine
    server: ScriptedServer
    root: Path

    def request(self, text: str, at: int, name: str = "a.py") -> CompletionRequest:
        return CompletionRequest(
            text[:at],
            text[at:],
            path=str(self.root / name),
            workspace=str(self.root),
            language_id="python",
            max_tokens=4,
        )

    def shown(self) -> str:
        """All that the server was sent since this was called last."""
        said = [e.raw.decode() + str(e.headers) + e.path for e in self.server.exchanges]
        self.server.exchanges.clear()
        return "\0".join(said)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    isolate(monkeypatch, tmp_path)
    root = tmp_path / "w"
    root.mkdir()
    routes = {"/v1/models": models(), "/v1/completions": completion(["value\n"])}
    shown_all = {"symbols": "on", "buffers": "on", "edits": "on"}
    with scripted_server(routes) as server:
        options = {"model": {"target": server.url}, "context": shown_all}
        with closing(LocalEngine(load_settings(options, env={}))) as engine:
            made = Recorded(engine, server, root)
            made.shown()  # what opening it asks
            yield made


def code(r: random.Random, n_lines: int) -> list[str]:
    words = ["index", "total", "value", "first", "items", "node", "path", "order", "parse"]
    lines: list[str] = []
    for _ in range(n_lines):
        a, b, c = (r.choice(words) for _ in range(3))
        made = [f"def {a}_{b}({c}):", f"    {a} = {b}({c})", f"    return {a}.{c}", "", "# " + a]
        lines.append(r.choice(made))
    return lines


class Secret(NamedTuple):
    """value: the secret. line: where it stands. fixed: characters that all of its form begin
    with."""

    value: str
    line: str
    fixed: int

    def grams(self) -> set[str]:
        random_part = self.value[self.fixed :]
        return {random_part[i : i + N_GRAM] for i in range(len(random_part) - N_GRAM + 1)}


def secret(r: random.Random) -> Secret:
    seed = r.randrange(1 << 30)
    if r.random() < 0.5:
        label = r.choice(sorted(planted.forms(0)))
        value, other = planted.forms(seed)[label], planted.forms(seed + 1)[label]
        line = r.choice(["x = '%s'", "# %s", "f('%s')", '{"a": "%s"}']) % value
    else:
        label = r.choice(sorted(planted.assignments(0)))
        value, line = planted.assignments(seed)[label]
        other = planted.assignments(seed + 1)[label][0]
    # A bot's number is public.
    public = value.index(":") if value.split(":")[0].isdigit() else 0
    fixed = public or next(i for i, (a, b) in enumerate(zip(value, other, strict=False)) if a != b)
    return Secret(value, line, fixed)


def session(r: random.Random, recorded: Recorded, told: Secret) -> None:
    """Some requests as an editor makes them, in a file with a secret and beside it."""
    engine, name = recorded.engine, f"m{r.randrange(6)}.py"
    above, below = code(r, r.randrange(1, 12)), code(r, r.randrange(12))
    text = "\n".join([*above, told.line, *below])
    at = len("\n".join(above)) + 1 + told.line.index(told.value)
    way = r.randrange(6)
    if way == 0:  # anywhere in it
        engine.complete(recorded.request(text, r.randrange(len(text) + 1), name))
    elif way == 1:  # while it is typed, or pasted in parts
        for n in sorted(r.sample(range(1, len(told.value) + 1), 4)):
            rest = r.choice(["", text[at + len(told.value) :]])
            engine.complete(recorded.request(text[: at + n] + rest, at + n, name))
    elif way == 2:  # inside it
        engine.complete(recorded.request(text, at + r.randrange(1, len(told.value)), name))
    elif way == 3:  # in another file, while this one is open, and after its line is gone
        engine.open(recorded.request(text, 0, name))
        engine.open(recorded.request("\n".join([*above, *below]), 0, name))
        other = "\n".join(above)
        engine.complete(recorded.request(other, len(other), "other.py"))
    elif way == 4:  # in text that a client sends of other files, and in a prompt of its own
        asked = recorded.request("\n".join(above), 5, "")
        engine.complete(replace(asked, extra=(Snippet("buffers", "b.py", "sent", text),)))
        engine.complete(replace(asked, prefix=text + "\n", suffix="", raw=True))
    else:  # ahead of a request
        for _ in engine.prefetching(recorded.request(text, r.randrange(len(text) + 1), name)):
            pass


def test_no_planted_secret_is_sent(recorded: Recorded) -> None:
    r = chance()
    n = n_sent = 0
    for _ in range(amount(200)):
        told = secret(r)
        if not find(told.line):  # a made-up one may look like a word: see `tests.unit.test_secrets`
            continue
        session(r, recorded, told)
        n_sent += len(recorded.server.exchanges)
        shown = recorded.shown()
        leaked = {gram for gram in told.grams() if gram in shown}
        assert not leaked, (told, sorted(leaked))
        n += 1
    assert n_sent > n / 2, "the server was asked"
    tell(n_sessions=n, n_requests=n_sent)


@pytest.mark.parametrize("name", [".env", "server.pem", "out/a.py", "b.sql"])
def test_an_excluded_file_sends_nothing(recorded: Recorded, name: str) -> None:
    (recorded.root / ".gitignore").write_text("out/\n*.sql\n")
    request = recorded.request("x = 1\ny = ", 10, name)
    done = recorded.engine.complete(request)
    assert (done.text, done.why) == ("", NoSuggestion.EXCLUDED)
    for _ in recorded.engine.prefetching(request):
        pass
    with pytest.raises(InputError):
        recorded.engine.generate(request)
    recorded.engine.open(request)
    assert recorded.server.exchanges == []
    # Another document shows nothing of it.
    recorded.engine.complete(recorded.request("x = ", 4))
    assert "y = " not in recorded.shown()


def test_the_rest_of_a_document_is_shown_as_it_is(recorded: Recorded) -> None:
    token = planted.forms(3)["github"]
    text = f"def a():\n    return '{token}'\n\n\ndef b():\n    re"
    done = recorded.engine.complete(recorded.request(text, len(text)))
    assert done.text == "value"
    shown = recorded.server.asked("/v1/completions")[0]["prompt"]
    assert text.replace(token, "*" * len(token))[: -len("    re")] in shown


def test_what_is_suggested_fits_the_real_text(recorded: Recorded) -> None:
    """The brackets behind a secret are closed once, however long it is."""
    token = planted.forms(3)["github"]
    recorded.server.routes["/v1/completions"] = completion(["y)\n"])
    text = f"x = call('{token}', )\n"
    at = text.index(")")
    done = recorded.engine.complete(recorded.request(text, at))
    assert done.text == "y"
    assert done.edit is not None
    assert (done.edit.start, done.edit.end) == (at, at)


def test_nothing_is_asked_while_a_secret_is_typed(recorded: Recorded) -> None:
    for text in ("password = 'hun", "key = 'ghp_aB3dE", "API_KEY=a1B2"):
        done = recorded.engine.complete(recorded.request(text, len(text)))
        assert done.why is NoSuggestion.IN_SECRET
    assert recorded.server.exchanges == []
