"""A server that fails: how often it is asked, who answers meanwhile, and how people are told."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.backends.remote import failures
from codespec.backends.remote.failures import ServerFailure
from codespec.config import load_settings
from codespec.engine import served
from codespec.engine.engine_on_demand import EngineOnDemand
from codespec.engine.local import LocalEngine
from codespec.engine.served import OPEN_AGAIN_S, UNUSED_S, ServedEngine
from codespec.engine.turns import in_one_turn
from codespec.errors import ConfigError, ModelError
from codespec.next_edit import NextEditRequest, NoNextEdit
from codespec.reasons import NoSuggestion
from codespec.requests import CompletionRequest
from tests.e2e.conftest import until
from tests.index_support import Workspace
from tests.scripted_server import (
    Exchange,
    Route,
    ScriptedServer,
    completion,
    endless,
    models,
    scripted_server,
)

BEFORE, AFTER = "def f():\n    fi", "\n\nx = 1\n"
ASKED = CompletionRequest(BEFORE, AFTER, path="/w/a.py", language_id="python", max_tokens=8)
COMPLETIONS = "/v1/completions"
FINE = completion(["rst()\n"])
F = ServerFailure


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_an_engine_that_could_not_be_built_keeps_nothing_of_the_requests(clock: Clock) -> None:
    def build() -> LocalEngine:
        raise ModelError("it does not fit", "Name a smaller one.")

    engine = EngineOnDemand(build, clock=clock)
    assert engine.ready() is None
    engine.wait()
    lengths = list[int]()
    for _ in range(4):
        with pytest.raises(ModelError) as raised:
            engine.ready()
        lengths.append(len(raised.traceback))
    assert len({*lengths[1:]}) == 1


Opened = tuple[ServedEngine, ScriptedServer]
Opens = Callable[..., Opened]


@pytest.fixture
def opens(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opens]:
    """Opens an engine over a server that answers so, and that is left alone for ten minutes where
    it fails."""
    monkeypatch.setattr(failures, "PAUSE_S", 600.0)
    monkeypatch.setattr(failures, "MAX_PAUSE_S", 600.0)
    with ExitStack() as stack:

        def opened(answer: Route, about: Route | None = None, **options: object) -> Opened:
            routes = {"/v1/models": about or models(), COMPLETIONS: answer}
            server = stack.enter_context(scripted_server(routes))
            model = {"target": server.url, "draft": "", **options}
            settings = load_settings({"model": model}, env={})
            engine = ServedEngine(settings, LocalEngine, clock)
            return stack.enter_context(closing(engine)), server

        yield opened


def status(code: int, **headers: str) -> Route:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.answer(b"<html>no</html>", code, named)


def cut_off(exchange: Exchange) -> None:
    exchange.cut()


def html(exchange: Exchange) -> None:
    exchange.answer(b"<html><body>Sign in</body></html>", 200, {"Content-Type": "text/html"})


def no_json(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event("{")
    exchange.end()


def too_deep(exchange: Exchange) -> None:
    exchange.begin()
    exchange.event('{"x": ' + "[" * 100_000)
    exchange.end()


def no_text(exchange: Exchange) -> None:
    exchange.begin()
    exchange.piece(b'data: {"choices": [{"text": "\xff"}]}\n\n')
    exchange.end()


def at_once(body: bytes, **headers: str) -> Route:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.answer(body, 200, named)


def unframed(*pieces: bytes) -> Route:
    """An answer that ends where its connection does."""

    def answer(exchange: Exchange) -> None:
        exchange.handler.send_response(200)
        exchange.handler.send_header("Connection", "close")
        exchange.handler.end_headers()
        for piece in pieces:
            exchange.handler.wfile.write(piece)

    return answer


EVENT = b'data: {"choices": [{"text": "r\xc3\xa4st"}]}\n\n'


@pytest.mark.parametrize(
    ("answer", "failure", "n_asked"),
    [
        (status(500), F.BROKEN, 2),
        (status(503), F.BROKEN, 2),
        (status(429, Retry_After="60"), F.BUSY, 1),
        (status(401), F.WRONG_KEY, 1),
        (status(403), F.WRONG_KEY, 1),
        (status(404), F.WRONG_PATH, 1),
        (cut_off, F.CUT_OFF, 2),
        (html, F.NOT_UNDERSTOOD, 1),
        (no_json, F.NOT_UNDERSTOOD, 1),
        (too_deep, F.NOT_UNDERSTOOD, 1),
        (no_text, F.NOT_UNDERSTOOD, 1),
        (at_once(b"<html>Sign in</html>"), F.NOT_UNDERSTOOD, 1),
        (at_once(b"<html>", Content_Type="Text/HTML"), F.NOT_UNDERSTOOD, 1),
        (at_once(b'{"choices": [{"text": "x"}]}'), F.NOT_UNDERSTOOD, 1),
        (at_once(b"error: the prompt was ...\n"), F.BROKEN, 2),
        (at_once(gzip.compress(EVENT), Content_Encoding="gzip"), F.NOT_UNDERSTOOD, 1),
        (unframed(EVENT[: EVENT.index(b"\xc3") + 1]), F.CUT_OFF, 2),
        (unframed(b": ping\n\n", EVENT[:9]), F.CUT_OFF, 2),
    ],
)
def test_a_failure_is_told_in_words_and_not_repeated(
    opens: Opens, answer: Route, failure: ServerFailure, n_asked: int
) -> None:
    engine, server = opens(answer)
    told = f"{failure.text}: no suggestions until it does"
    for _ in range(3):
        done = engine.complete(replace(ASKED, deadline_ms=5000.0))
        assert (done.text, done.why, done.detail) == ("", NoSuggestion.SERVER_AWAY, told)
        assert engine.notice == told
        assert len(server.asked(COMPLETIONS)) == n_asked


def test_the_model_here_answers_until_the_server_does(opens: Opens, clock: Clock) -> None:
    engine, server = opens(FINE, fallback="bundled")
    assert engine.complete(ASKED).text == "rst()"
    assert engine.notice == ""
    server.routes[COMPLETIONS] = status(500)
    done = engine.complete(ASKED)
    assert (done.trace.backend, done.trace.model) != ("", "qwen2.5-coder")
    assert done.trace.n_tokens > 0
    assert engine.notice == "the server does not work: local model until it does"
    n_asked = len(server.exchanges)
    assert engine.complete(ASKED).trace.n_tokens > 0
    assert len(server.exchanges) == n_asked, "it is left alone"
    # Then it works again.
    server.routes[COMPLETIONS] = FINE
    breaker_of(engine)._pause = failures._Pause(0.0)
    assert engine.complete(ASKED).text == "rst()"
    assert engine.notice == ""
    # The memory is given back once it is not needed.
    here = engine._here
    assert here is not None
    clock.now_s = UNUSED_S + 1
    while engine.idle():
        pass
    assert here.built is None


def breaker_of(engine: ServedEngine) -> failures.CircuitBreaker:
    assert engine.main is not None
    return engine.main._decoder._generator._breaker  # pyright: ignore


def test_a_server_that_comes_later_is_opened_then(opens: Opens, clock: Clock) -> None:
    engine, server = opens(FINE, status(503))
    assert engine.notice == "the server does not work: no suggestions until it does"
    n_asked = len(server.exchanges)
    server.routes["/v1/models"] = models()
    assert engine.complete(ASKED).why is NoSuggestion.SERVER_AWAY
    assert len(server.exchanges) == n_asked
    clock.now_s += OPEN_AGAIN_S + 1
    until(lambda: engine.complete(ASKED).text == "rst()")
    assert engine.notice == ""


def test_a_server_that_is_there_again_answers_the_first_request(opens: Opens, clock: Clock) -> None:
    """It is asked what it is while the request waits, within its deadline."""
    engine, server = opens(FINE, status(503))
    server.routes["/v1/models"] = models()
    clock.now_s += OPEN_AGAIN_S + 1
    assert engine.complete(replace(ASKED, deadline_ms=60_000.0)).text == "rst()"


@pytest.mark.parametrize("indexed", [False, True])
def test_next_edits_need_no_server(opens: Opens, workspace: Workspace, indexed: bool) -> None:
    """They are looked up in the document, and in the files of an index of any vocabulary."""
    text = "def run(task):\n    first = fetch(task)\n    second = fetch(task)\n    return first\n"
    typed = text.replace("first = fetch(task)", "first = fetch_all(task)")
    path = str(workspace.write("a.py", text))
    other = str(workspace.write("b.py", "def walk(task):\n    third = fetch(task)\n"))
    if indexed:
        workspace.build()
    engine, _ = opens(FINE, status(503))
    assert engine.main is None
    asked = NextEditRequest(typed, 30, path, str(workspace.root), bar=0.0, n_most=9)
    found = engine.find_edits(asked)
    while engine.idle():
        found = engine.find_edits(asked)
    assert "fetch_all(task)" in found.edits[0].edit.text
    assert {edit.path for edit in found.edits} == ({path, other} if indexed else {path})
    assert in_one_turn(engine.finding(asked)).why is NoNextEdit.NO_MODEL
    # What was typed is forgotten with the document.
    workspace.write("a.py", typed)
    engine.closed(path)
    assert engine.find_edits(asked).why is NoNextEdit.NOTHING_EDITED


def test_a_model_that_does_not_fit_is_told(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "free_memory", lambda: 1000)
    engine, _ = opens(status(500), fallback="bundled")
    assert engine.complete(ASKED).why is NoSuggestion.SERVER_AWAY
    assert "no suggestions until it does, as the local model fails: it needs 0." in engine.notice


def test_a_server_that_never_ends_is_left_at_the_deadline(opens: Opens) -> None:
    engine, _ = opens(endless({"choices": [{"text": "rst()\n    se"}]}))
    done = engine.complete(replace(ASKED, verbatim=True, deadline_ms=3000.0))
    assert (done.text, done.finish) == ("rst()\n    se", "deadline")
    assert engine.notice == ""


def test_a_slow_server_is_given_up_in_time(opens: Opens) -> None:
    def slow(exchange: Exchange) -> None:
        exchange.wait_until_gone()

    engine, server = opens(slow, fallback="bundled")
    done = engine.complete(replace(ASKED, deadline_ms=200.0))
    assert (done.text, done.finish) == ("", "deadline")
    assert server.exchanges[-1].is_gone.wait(30)


def test_a_server_that_never_answers_is_left_alone(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request waits for it until its deadline; the next one is answered here at once. After the
    pause one tries it again, and is answered."""
    monkeypatch.setattr(failures, "SILENT_S", 0.05)
    engine, server = opens(Exchange.wait_until_gone, fallback="bundled")
    assert engine.complete(replace(ASKED, deadline_ms=100.0)).text == ""
    until(lambda: engine.notice != "")  # told by the thread that waited
    assert engine.notice == "the server does not answer in time: local model until it does"
    assert len(server.asked(COMPLETIONS)) == 1
    assert engine.complete(ASKED).trace.n_tokens > 0
    assert len(server.asked(COMPLETIONS)) == 1
    server.routes[COMPLETIONS] = FINE
    breaker_of(engine)._pause = failures._Pause(0.0)
    assert engine.complete(ASKED).text == "rst()"
    assert engine.notice == ""


def test_a_server_that_begins_to_answer_is_only_slow(
    opens: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer's head came before the deadline: that has to happen three times."""
    monkeypatch.setattr(failures, "SILENT_S", 0.05)

    def slow(exchange: Exchange) -> None:
        exchange.begin()
        exchange.wait_until_gone()

    engine, _ = opens(slow)
    for i in range(1, 4):
        assert engine.notice == ""
        assert engine.complete(replace(ASKED, deadline_ms=300.0)).text == ""
        until(lambda i=i: breaker_of(engine)._n_few == i)  # told by the thread that waited
    assert engine.notice == "the server does not answer in time: no suggestions until it does"


def test_text_that_was_shown_is_not_asked_for_again(opens: Opens) -> None:
    def breaks_off(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event({"choices": [{"text": "rst()\n    se"}]})
        exchange.cut()

    engine, server = opens(breaks_off)
    shown: list[str] = []
    done = engine.complete(
        replace(ASKED, verbatim=True), on_progress=lambda progress: shown.append(progress.text)
    )
    assert (done.text, done.finish) == ("rst()\n    se", "deadline")
    assert len(server.asked(COMPLETIONS)) == 1
    for _ in range(2):
        assert engine.notice == ""
        engine.complete(replace(ASKED, verbatim=True, prefix=f"x = 1\n{BEFORE}"))
    assert engine.notice.startswith(F.CUT_OFF.text)


def test_no_redirect_is_followed(opens: Opens) -> None:
    with scripted_server({"/v1/completions": FINE, "/v1/models": models()}) as other:
        engine, server = opens(status(307, Location=f"{other.url}/v1/completions"))
        assert engine.complete(ASKED).text == ""
        assert engine.notice.startswith(F.REDIRECT.text)
        server.routes["/v1/models"] = status(302, Location=f"{other.url}/v1/models")
        settings = load_settings({"model": {"target": server.url}}, env={})
        again = ServedEngine(settings, LocalEngine)
        assert again.notice.startswith(F.REDIRECT.text)
        again.close()
        assert other.exchanges == []


def test_a_fallback_is_a_model_here() -> None:
    settings = load_settings(
        {"model": {"target": "http://127.0.0.1:9", "fallback": "https://other"}}, env={}
    )
    with pytest.raises(ConfigError, match="not on this machine"):
        ServedEngine(settings, LocalEngine)


def test_the_key_is_sent_and_told_to_nobody(tmp_path: Path) -> None:
    key = "sk-0123456789abcdefghij"
    (tmp_path / "key").write_text(key)
    with scripted_server({"/v1/models": models(), COMPLETIONS: status(401)}) as server:
        of_server = {"key_file": str(tmp_path / "key")}
        settings = load_settings({"model": {"target": server.url}, "server": of_server}, env={})
        with closing(ServedEngine(settings, LocalEngine)) as engine:
            done = engine.complete(ASKED)
            assert server.exchanges[-1].headers["Authorization"] == f"Bearer {key}"
            assert engine.main is not None
            inside = vars(engine.main._decoder._generator)  # pyright: ignore
            assert key not in f"{done} {engine.notice} {inside} {settings}"
