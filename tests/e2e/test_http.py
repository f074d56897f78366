"""The HTTP front as clients meet it: its own process, real sockets, a real daemon and model."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from codespec.config import load_settings
from codespec.daemon import control
from codespec.engine.local import LocalEngine
from codespec.engine.until import Until
from codespec.requests import CompletionRequest
from tests.e2e.conftest import TIMEOUT_S, Home, daemon_of, until
from tests.e2e.test_daemon import stopped

PREFIX = "import os\n\n\ndef read_file(path):\n    with open("
SUFFIX = "\n\n\ndef main():\n    pass\n"
REQUEST = CompletionRequest(PREFIX, SUFFIX, max_tokens=24, verbatim=True, drafters=())
Answer = tuple[int, Any]


@dataclass(frozen=True)
class Front:
    port: int
    log: Path
    key: str = ""

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)

    def begin(
        self, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPConnection:
        """The connection, its request sent. body: bytes as they are, None for a GET."""
        connection = self.connect()
        raw = body if isinstance(body, bytes | None) else json.dumps(body)
        key = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        method = "GET" if body is None else "POST"
        connection.request(method, path, raw, {**key, **(headers or {})})
        return connection

    def ask(
        self, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """(status, what the JSON says)."""
        with closing(self.begin(path, body, headers)) as connection:
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def text(self, **body: object) -> str:
        status, answer = self.ask("/v1/completions", body)
        assert status == 200, answer
        return answer["choices"][0]["text"]

    def stream(self, path: str, body: Mapping[str, object]) -> list[Any]:
        with closing(self.begin(path, {**body, "stream": True})) as connection:
            response = connection.getresponse()
            assert response.status == 200
            assert response.headers["Content-Type"] == "text/event-stream"
            return events(response.read())


def events(raw: bytes) -> list[Any]:
    blocks = raw.decode().split("\n\n")
    assert blocks.pop() == ""
    data = [block.removeprefix("data: ") for block in blocks]
    return [event if event == "[DONE]" else json.loads(event) for event in data]


@contextmanager
def front_of(home: Home, *options: str, key: str = "") -> Iterator[Front]:
    log = home.path / "front.log"
    command = [sys.executable, "-m", "codespec", "daemon", "http", "--port", "0", *options]
    with (
        log.open("ab") as stderr,
        subprocess.Popen(command, cwd=home.path, stdout=subprocess.PIPE, stderr=stderr) as front,
    ):
        assert front.stdout is not None
        try:
            url = front.stdout.readline().decode().strip()
            yield Front(int(url.rpartition(":")[2]), log, key)
        finally:
            front.terminate()
            front.wait(TIMEOUT_S)


@pytest.fixture
def front(home: Home) -> Iterator[Front]:
    with front_of(home) as found:
        yield found


@pytest.fixture
def scripted(home: Home) -> Iterator[Front]:
    """On a daemon whose engine does what the prompt says."""
    with daemon_of(home, "ok"), front_of(home) as found:
        yield found


@pytest.fixture(scope="module")
def plain() -> Iterator[Callable[[CompletionRequest], str]]:
    """What the model says by itself."""
    engine = LocalEngine(load_settings())
    yield lambda request: engine.complete(request).text
    engine.close()


def refusal(answer: Answer, status: int, *words: str) -> None:
    assert answer[0] == status
    error = answer[1]["error"]
    assert error["code"] == status
    assert all(word in f"{error['message']} {error['param']}" for word in words), error


# --- what is answered -----------------------------------------------------------------------


def test_openai_completions_say_what_plain_decoding_says(front, plain, home) -> None:
    body = {"prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 24, "model": "whatever"}
    status, answer = front.ask("/v1/completions", body)
    assert status == 200
    assert answer["object"] == "text_completion"
    assert answer["model"] == control.status(home.settings).model
    [choice] = answer["choices"]
    assert choice["text"] == plain(REQUEST) != ""
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 24
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + 24
    timings = answer["timings"]
    assert timings["predicted_n"] == 24
    assert timings["passes_n"] <= 24
    assert timings["draft_n"] >= timings["draft_n_accepted"] >= 24 - timings["passes_n"]

    streamed = front.stream("/v1/completions", {**body, "stream_options": {"include_usage": True}})
    assert streamed.pop() == "[DONE]"
    assert streamed.pop()["usage"]["completion_tokens"] == 24
    assert "".join(event["choices"][0]["text"] for event in streamed) == choice["text"]
    assert streamed[-1]["choices"][0]["finish_reason"] == "length"
    assert len({event["id"] for event in streamed}) == 1


def test_it_says_what_the_command_line_says(front, home) -> None:
    file = home.workspace / "a.py"
    file.write_text(PREFIX + SUFFIX)
    place = f"{file}:5:15"
    command = [sys.executable, "-m", "codespec", "complete", place, "--verbatim", "--no-draft"]
    done = subprocess.run(
        [*command, "--json", "--max-tokens", "24"], capture_output=True, check=True
    )
    expected = json.loads(done.stdout)["text"]
    assert front.text(prompt=PREFIX, suffix=SUFFIX, max_tokens=24) == expected


def test_infill_as_llama_vim_asks(front, plain) -> None:
    begin, line = PREFIX.rsplit("\n", 1)
    fields = ["content", "timings/prompt_n", "timings/predicted_n", "truncated", "missing/field"]
    body = {
        "id_slot": 0,
        "input_prefix": begin + "\n",
        "input_suffix": SUFFIX,
        "prompt": line,
        "input_extra": [{"text": "x = 1\n", "time": 3, "filename": "b.py"}],
        "n_predict": 24,
        "stop": [],
        "n_indent": 0,
        "top_k": 40,
        "top_p": 0.9,
        "cache_prompt": True,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "t_max_prompt_ms": 500,
        "t_max_predict_ms": 60_000,
        "response_fields": fields,
    }
    warm_up = {**body, "n_predict": 0, "response_fields": [""]}
    assert front.ask("/infill", warm_up) == (200, {})
    status, answer = front.ask("/infill", body)
    assert status == 200
    assert answer.pop("timings/prompt_n") >= 0
    assert answer == {"content": plain(REQUEST), "timings/predicted_n": 24, "truncated": False}

    del body["response_fields"]
    status, whole = front.ask("/infill", body)
    assert (whole["content"], whole["stop"], whole["stop_type"]) == (plain(REQUEST), True, "limit")
    streamed = front.stream("/infill", body)
    assert "".join(event["content"] for event in streamed) == plain(REQUEST)
    assert [event["stop"] for event in streamed] == [False] * (len(streamed) - 1) + [True]


def test_stop_texts_indentation_and_the_end_of_the_context(front, plain) -> None:
    long = replace(REQUEST, max_tokens=100)
    text = plain(long)
    stop = text[30:33]
    body = {"prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 100, "stop": stop}
    expected = text[: text.index(stop)]
    status, answer = front.ask("/v1/completions", body)
    assert answer["choices"][0]["text"] == expected
    assert answer["choices"][0]["finish_reason"] == "stop"
    *streamed, _ = front.stream("/v1/completions", body)
    assert "".join(event["choices"][0]["text"] for event in streamed) == expected

    infill = {"input_prefix": PREFIX, "input_suffix": SUFFIX, "n_predict": 100}
    assert front.ask("/infill", {**infill, "stop": [stop]})[1]["stop_type"] == "word"
    indented = Until(min_indent=12).cut(text)
    assert front.ask("/infill", {**infill, "n_indent": 12})[1]["content"] == indented != text
    # Already too late when the first line ends.
    short = front.ask("/infill", {**infill, "t_max_predict_ms": 1e-6})[1]["content"]
    assert text.startswith(short)
    assert short.rstrip(" ").endswith("\n")
    assert short.count("\n") == 1

    status, answer = front.ask("/infill", {**infill, "n_predict": -1})
    assert status == 200
    n_ctx = load_settings().model.window(0)
    n_all = answer["tokens_evaluated"] + answer["tokens_predicted"]
    assert answer["stop_type"] == "eos" or n_all == n_ctx
    assert answer["content"].startswith(text)


def test_sampling_is_as_asked(front) -> None:
    body = {"prompt": PREFIX, "max_tokens": 24, "temperature": 1.5}
    assert front.text(**body, seed=5) == front.text(**body, seed=5)
    assert len({front.text(**body) for _ in range(4)}) > 1
    assert front.text(**body, top_k=1) == front.text(prompt=PREFIX, max_tokens=24)
    assert front.text(prompt="is it?", grammar='root ::= "yes" | "no"') in ("yes", "no")
    refusal(front.ask("/infill", {"prompt": "is it?", "grammar": "yes"}), 400, "GBNF grammar")


def test_an_editors_suggestion_on_request(front) -> None:
    body = {"prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 64, "language": "python"}
    engine = LocalEngine(load_settings())
    with closing(engine):
        request = replace(REQUEST, max_tokens=64, language_id="python", verbatim=False)
        expected = engine.complete(request).text
    assert front.text(**body, verbatim=False) == expected
    *streamed, _ = front.stream("/v1/completions", {**body, "verbatim": False})
    assert [event["choices"][0]["text"] for event in streamed] == [expected]
    assert expected != front.text(**body)


def test_text_of_the_client_is_shown_where_buffers_are(home, monkeypatch) -> None:
    extra = [{"filename": "b.py", "text": "def open_all(paths):\n    return map(open, paths)\n"}]
    body = {"input_prefix": PREFIX, "n_predict": 4}
    for switch, is_longer in (("off", False), ("on", True)):
        monkeypatch.setenv("CODESPEC_CONTEXT_BUFFERS", switch)
        control.stop(home.settings)
        with front_of(home) as front:
            _, without = front.ask("/infill", body)
            _, with_extra = front.ask("/infill", {**body, "input_extra": extra})
        assert (with_extra["tokens_evaluated"] > without["tokens_evaluated"]) == is_longer


def test_models_and_health(front, home) -> None:
    until(lambda: front.ask("/health")[0] == 200)
    assert front.ask("/v1/health") == (200, {"status": "ok"})
    status, models = front.ask("/v1/models")
    assert (status, models["object"]) == (200, "list")
    assert [model["id"] for model in models["data"]] == [control.status(home.settings).model]


def test_clients_at_once_each_get_their_own_answer(front, plain) -> None:
    prefixes = [f"def get_{name}(self):\n    return self." for name in ("a", "size", "x_y", "id")]
    expected = [plain(replace(REQUEST, prefix=prefix, suffix="")) for prefix in prefixes]
    assert len(set(expected)) > 1
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda p: front.text(prompt=p, max_tokens=24), prefixes * 3)
        assert list(found) == expected * 3


# --- what is not ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/completions", b'{"prompt": "secret words"', 400, ["not JSON"]),
        ("/v1/completions", b'{"prompt": "\xff"}', 400, ["not JSON"]),
        ("/v1/completions", b'{"prompt": "\\ud800 lone"}', 400, ["JSON"]),
        ("/v1/completions", {}, 400, ["prompt"]),
        ("/v1/completions", {"prompt": 5}, 400, ["prompt", "str"]),
        ("/v1/completions", {"prompt": [1, 2]}, 400, ["prompt"]),
        ("/v1/completions", {"prompt": ["a", "b"]}, 400, ["prompt", "one by one"]),
        ("/v1/completions", {"prompt": "a", "echo": True}, 400, ["echo"]),
        ("/v1/completions", {"prompt": "a", "n": 2}, 400, ["n is not supported"]),
        ("/v1/completions", {"prompt": "a", "logprobs": 0}, 400, ["logprobs"]),
        ("/v1/completions", {"prompt": "a", "top_p": 1.5}, 400, ["top_p"]),
        ("/v1/completions", {"prompt": "a", "temperature": -1}, 400, ["temperature"]),
        ("/v1/completions", {"prompt": "a", "max_tokens": "many"}, 400, ["max_tokens"]),
        ("/v1/completions", {"prompt": "a", "stop": [3]}, 400, ["stop"]),
        ("/v1/completions", {"prompt": "a", "stop": ["b"] * 65}, 400, ["stop"]),
        ("/infill", {"n_predict": -2}, 400, ["n_predict"]),
        ("/infill", {"input_extra": [{"filename": "a"}]}, 400, ["input_extra", "text"]),
        ("/infill", b" " * ((4 << 20) + 1), 413, ["bytes"]),
        ("/infill", None, 405, ["POST"]),
        ("/health", {}, 405, ["GET"]),
        ("/v1/chat/completions", {}, 404, ["/v1/completions"]),
    ],
)
def test_what_cannot_be_honoured_is_named(scripted, path, body, status, words) -> None:
    refusal(scripted.ask(path, body), status, *words)
    assert scripted.text(prompt="on", suffix="off", n=1, echo=False, logit_bias={}) == "[on|off]"


def test_nothing_of_a_request_is_logged(scripted, home) -> None:
    marker = "wombat"
    scripted.text(prompt=marker)
    scripted.ask("/v1/completions", f'{{"prompt": "{marker}'.encode())
    scripted.ask("/v1/completions", {"prompt": f"raise {marker}"})
    scripted.ask(f"/{marker}", {marker: marker})
    with closing(socket.create_connection(("127.0.0.1", scripted.port))) as raw:
        raw.sendall(f"{marker}\r\n\r\n".encode())
        assert b"400" in raw.recv(1000)
    logs = [*home.path.rglob("*.log")]
    assert scripted.log in logs
    assert not [file for file in logs if marker in file.read_text()]


def test_only_programs_of_this_machine_are_let_in_without_a_key(scripted) -> None:
    until(lambda: scripted.ask("/health")[0] == 200)
    for host in ("localhost", "127.0.0.1:8012", "[::1]:8012"):
        assert scripted.ask("/health", headers={"Host": host})[0] == 200
    for host in ("evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "0.0.0.0"):
        refusal(scripted.ask("/health", headers={"Host": host}), 403, "localhost")
    for origin in ("https://evil.example", "null", "http://localhost:3000"):
        refusal(scripted.ask("/infill", {}, headers={"Origin": origin}), 403, "web pages")
    with closing(scripted.begin("/health")) as connection:
        names = [name.lower() for name, _ in connection.getresponse().getheaders()]
    assert not [name for name in names if name.startswith("access-control")]


def test_with_keys_one_of_them_is_needed(home) -> None:
    file = home.path / "keys"
    keys = ["a" * 32, "b" * 32]
    file.write_text(f"# Ada\n{keys[0]}\n\n{keys[1]}\n")
    with daemon_of(home, "ok"), front_of(home, "--key-file", str(file)) as front:
        for wrong in ("", "a" * 31, "A" * 32, "# Ada", "c" * 32):
            answer = replace(front, key=wrong).ask("/v1/completions", {"prompt": "on"})
            refusal(answer, 401, "Bearer")
        header = {"Authorization": f"Basic {keys[0]}"}
        refusal(front.ask("/v1/models", headers=header), 401, "Bearer")
        for key in keys:
            assert replace(front, key=key).text(prompt="on") == "[on|]"
        # Whoever has a key may come by any name.
        header = {"Host": "gpu.example", "Authorization": f"Bearer {keys[0]}"}
        assert front.ask("/v1/models", headers=header)[0] == 200
        assert front.ask("/health") == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "a key is needed"),
        (["--host", "::"], "a key is needed"),
        (["--key-file", "none"], "cannot read the keys"),
        (["--key-file", "short"], "16 characters"),
        (["--port", "taken"], "--port N"),
    ],
)
def test_it_does_not_start(home, options, words) -> None:
    (home.path / "short").write_text("# a comment that is long enough\nabc\n")
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        options = [str(other.getsockname()[1]) if o == "taken" else o for o in options]
        command = [sys.executable, "-m", "codespec", "daemon", "http", "--port", "0", *options]
        done = subprocess.run(
            command, cwd=home.path, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    assert done.returncode == 1
    assert words in done.stderr
    assert not home.daemon_pids()


# --- workspaces -----------------------------------------------------------------------------


def test_only_the_servers_workspaces_may_be_named(home) -> None:
    other = home.path / "other"
    other.mkdir()
    (home.workspace / "out").symlink_to(other)
    options = ("--workspace", str(home.workspace))
    with daemon_of(home, "ok"), front_of(home, *options) as front:
        assert front.text(prompt="on", path="a.py") == "[on|]"
        assert front.text(prompt="on", path=f"{home.workspace}/a.py") == "[on|]"
        assert front.text(prompt="on", workspace=str(home.workspace)) == "[on|]"
        assert front.text(prompt="on", workspace="") == "[on|]"
        for workspace in (str(other), "/", str(home.workspace / ".." / "other"), ".", "~"):
            answer = front.ask("/v1/completions", {"prompt": "on", "workspace": workspace})
            refusal(answer, 403, "workspace")
        for path in ("../other/a.py", f"{other}/a.py", "out/a.py", "/etc/passwd", "a\0b", "."):
            answer = front.ask("/v1/completions", {"prompt": "on", "path": path})
            refusal(answer, 403, "path")
        answer = front.ask("/infill", {"prompt": "on", "path": "a.py", "workspace": ""})
        refusal(answer, 403, "path")


def test_without_workspaces_none_may_be_named(scripted, home) -> None:
    body = {"prompt": "on", "workspace": str(home.workspace)}
    refusal(scripted.ask("/infill", body), 403, "workspace")
    refusal(scripted.ask("/infill", {"prompt": "on", "path": "a.py"}), 403, "path")


def test_a_document_that_was_sent_serves_no_other(home, monkeypatch) -> None:
    """Ignore and secret rules hold, and what one client sent is not shown for another's."""
    monkeypatch.setenv("CODESPEC_CONTEXT_BUFFERS", "on")
    (home.workspace / ".gitignore").write_text("gen/\n")
    for name in ("lender.py", "one.py", "two.py"):
        (home.workspace / name).write_text("saved = 1\n")
    lent = "def compute_total(first_item, second_item):\n    return first_item + second_item\n"
    asked = "total = compute_total(first_item, "
    with front_of(home, "--workspace", str(home.workspace)) as front:

        def n_prompt(prompt: str, path: str) -> int:
            status, answer = front.ask("/v1/completions", {"prompt": prompt, "path": path})
            assert status == 200
            return answer["usage"]["prompt_tokens"]

        alone = n_prompt(asked, "one.py")
        assert n_prompt(lent, "lender.py") > 0
        assert n_prompt(asked, "two.py") == alone
        for path, why in ((".env", "secrets"), ("gen/a.py", "gen/")):
            _, answer = front.ask("/v1/completions", {"prompt": asked, "path": path})
            assert answer["choices"][0]["text"] == ""
            assert why in answer["reason"]


# --- what dies ------------------------------------------------------------------------------


def n_asked(home: Home) -> int:
    report = control.status(home.settings)
    return report.n_requests if report else 0


def test_a_client_that_leaves_takes_its_generation_along(scripted, home) -> None:
    """Both would go on for ever otherwise, and nobody else be answered."""
    with closing(scripted.begin("/infill", {"prompt": "until cancelled"})):
        until(lambda: n_asked(home) == 1)
    assert scripted.text(prompt="on") == "[on|]"
    with closing(scripted.begin("/infill", {"prompt": "tell", "stream": True})) as connection:
        first = connection.getresponse().readline()
        assert json.loads(first.removeprefix(b"data: "))["content"] == "one\ntw"
    assert scripted.text(prompt="on") == "[on|]"


def test_what_may_become_a_stop_text_is_held_back(scripted) -> None:
    body = {"prompt": "tell", "stream": True, "stop": ["none", "two"]}
    with closing(scripted.begin("/infill", body)) as connection:
        first = connection.getresponse().readline()
        assert json.loads(first.removeprefix(b"data: "))["content"] == "one\n"


def test_a_worker_that_dies(scripted, home) -> None:
    refusal(scripted.ask("/infill", {"prompt": "die"}), 503, "SIGKILL")
    assert scripted.text(prompt="on") == "[on|]"
    with closing(scripted.begin("/infill", {"prompt": "tell", "stream": True})) as connection:
        response = connection.getresponse()
        first = response.readline()
        os.kill(control.status(home.settings).worker_pid, signal.SIGKILL)
        error = events(first + response.read())[-1]["error"]
    assert "SIGKILL" in error["message"]
    assert scripted.text(prompt="on") == "[on|]"


def test_a_daemon_that_dies(front, home) -> None:
    body = {"prompt": PREFIX, "max_tokens": 8}
    expected = front.text(**body)
    report = control.status(home.settings)
    with ThreadPoolExecutor() as pool, stopped(report.worker_pid):
        answer = pool.submit(front.ask, "/v1/completions", body)
        until(lambda: n_asked(home) == 2)
        os.kill(report.pid, signal.SIGKILL)
        refusal(answer.result(TIMEOUT_S), 503, "the daemon ended")
    assert front.text(**body) == expected
    control.stop(home.settings)
    assert front.text(**body) == expected


def test_a_model_that_cannot_be_loaded(home) -> None:
    with daemon_of(home, "refuse"), front_of(home) as front:
        refusal(front.ask("/infill", {"prompt": "on"}), 503, "no such model", "Choose another one")
        refusal(front.ask("/health"), 503, "no such model")
