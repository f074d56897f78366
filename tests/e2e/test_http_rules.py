"""Refusals of the HTTP front, and clients, workers and daemons that end during a request."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from codespec.config import config_path
from codespec.daemon import control
from tests.e2e.conftest import Home, daemon_of, report_of, until
from tests.e2e.test_daemon import stopped
from tests.http_client import TIMEOUT_S, Front, events, front_of, refusal

PREFIX = "import os\n\n\ndef read_file(path):\n    with open("


@pytest.fixture
def front(home: Home) -> Iterator[Front]:
    with front_of(home.path) as found:
        yield found


@pytest.fixture
def scripted(home: Home) -> Iterator[Front]:
    """A front on a daemon whose engine follows the prompt."""
    with daemon_of(home, "ok"), front_of(home.path) as found:
        yield found


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/completions", b'{"prompt": "secret words"', 400, ["not JSON"]),
        ("/v1/completions", b'{"prompt": "\xff"}', 400, ["not JSON"]),
        ("/v1/completions", {}, 400, ["prompt"]),
        ("/v1/completions", {"prompt": 5}, 400, ["prompt", "str"]),
        ("/v1/completions", {"prompt": [1, 2]}, 400, ["prompt"]),
        ("/v1/completions", {"prompt": ["a", "b"], "stream": True}, 400, ["prompt"]),
        ("/v1/completions", {"prompt": "a", "echo": True}, 400, ["echo"]),
        ("/v1/completions", {"prompt": "a", "n": 2}, 400, ["n is not supported"]),
        ("/infill", {"prompt": "a", "response_format": {"type": "xml"}}, 400, ["json_object"]),
        ("/infill", [], 400, ["object"]),
        ("/v1/completions", {"prompt": "a", "logprobs": 0}, 400, ["logprobs"]),
        ("/v1/completions", {"prompt": "a", "top_p": 1.5}, 400, ["top_p"]),
        ("/v1/completions", {"prompt": "a", "temperature": -1}, 400, ["temperature"]),
        ("/v1/completions", {"prompt": "a", "max_tokens": "many"}, 400, ["max_tokens"]),
        ("/v1/completions", {"prompt": "a", "repeat_penalty": 1e-320}, 400, ["repeat_penalty"]),
        ("/infill", {"prompt": "a", "grammar": "a" * 65537}, 400, ["grammar", "65536"]),
        ("/v1/completions", {"prompt": "a", "stop": [3]}, 400, ["stop"]),
        ("/v1/completions", {"prompt": "a", "stop": ["b"] * 65}, 400, ["stop"]),
        ("/infill", {"n_predict": -2}, 400, ["n_predict"]),
        ("/infill", {"input_extra": [{"filename": "a"}]}, 400, ["input_extra", "text"]),
        ("/infill", b" " * ((4 << 20) + 1), 413, ["bytes"]),
        ("/infill", None, 405, ["POST"]),
        ("/health", {}, 405, ["GET"]),
        ("/v1/models/scripted", {}, 405, ["GET"]),
        ("/v1/responses", {}, 404, ["/v1/completions", "/v1/chat/completions"]),
        ("/v1/chat/completions", {}, 400, ["messages"]),
        ("/v1/chat/completions", {"messages": []}, 400, ["messages", "empty"]),
        ("/v1/chat/completions", {"messages": [{"role": "tool"}]}, 400, ["messages", "tool"]),
    ],
)
def test_what_cannot_be_honoured_is_named(scripted, path, body, status, words) -> None:
    refusal(scripted.ask(path, body), status, *words)
    assert scripted.text(prompt="on", suffix="off", n=1, echo=False, logit_bias={}) == "[on|off]"


def test_several_prompts_are_answered_in_turn(scripted) -> None:
    body = {"prompt": ["on", "off", "over"], "suffix": "x"}
    status, answer = scripted.ask("/v1/completions", body)
    assert status == 200
    texts = [(choice["index"], choice["text"]) for choice in answer["choices"]]
    assert texts == [(0, "[on|x]"), (1, "[off|x]"), (2, "[over|x]")]
    # One that fails fails all, as there is one status.
    refusal(scripted.ask("/v1/completions", {"prompt": ["on", "raise x"]}), 503)
    status, nothing = scripted.ask("/v1/completions", {**body, "max_tokens": 0})
    assert [choice["text"] for choice in nothing["choices"]] == ["", "", ""]


def test_numbers_larger_than_any_vocabulary_are_as_good_as_it(scripted) -> None:
    assert scripted.text(prompt="on", suffix="off", top_k=2**70) == "[on|off]"


def test_a_head_is_an_answer_without_its_body(scripted) -> None:
    """Monitors of servers send HEAD."""
    until(lambda: scripted.ask("/health")[0] == 200)
    with closing(scripted.connect()) as connection:
        connection.request("HEAD", "/health")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
        assert int(response.headers["Content-Length"]) > 0


def test_an_offer_to_upgrade_is_passed_over(scripted) -> None:
    for protocol in ("h2c", "websocket"):
        headers = {"Connection": f"Upgrade, {protocol}", "Upgrade": protocol}
        status, answer = scripted.ask("/infill", {"prompt": "on"}, headers)
        assert (status, answer["content"]) == (200, "[on|]")
    assert "pgrade" not in scripted.log.read_text()
    assert "WebSocket" not in scripted.log.read_text()


def test_a_stream_of_no_tokens_is_a_stream(scripted) -> None:
    *parts, done = scripted.stream("/v1/completions", {"prompt": "on", "max_tokens": 0})
    assert done == "[DONE]"
    assert [part["choices"][0]["finish_reason"] for part in parts] == ["length"]
    [end] = scripted.stream("/infill", {"prompt": "on", "n_predict": 0})
    assert (end["content"], end["stop"], end["stop_type"]) == ("", True, "limit")


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
    # Images and scripts of a page; an address that somebody typed.
    for site, status in (("cross-site", 403), ("same-site", 403), ("none", 200)):
        assert scripted.ask("/health", headers={"Sec-Fetch-Site": site})[0] == status
    with closing(scripted.begin("/health")) as connection:
        names = [name.lower() for name, _ in connection.getresponse().getheaders()]
    assert not [name for name in names if name.startswith("access-control")]


def test_with_keys_one_of_them_is_needed(home) -> None:
    file = home.path / "keys"
    keys = ["a" * 32, "b" * 32]
    file.write_text(f"# Ada\n{keys[0]}\n\n{keys[1]}\n")
    with daemon_of(home, "ok"), front_of(home.path, "--key-file", str(file)) as front:
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
        (["--host", ".local"], ".local: no host has such a name"),
        (["--key-file", "none"], f"the keys in none: {os.strerror(errno.ENOENT)}\n"),
        (["--key-file", "short"], "16 characters"),
        (["--port", "taken"], f": {os.strerror(errno.EADDRINUSE)}\n"),
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


def test_markers_that_make_no_template_are_warned_of_and_logged_without_text(scripted) -> None:
    body = {"prompt": "<fim_prefix>uncommon<fim_middle>"}
    status, answer = scripted.ask("/v1/completions", body)
    assert status == 200
    [warning] = answer["warnings"]
    assert scripted.stream("/v1/completions", body)[-2]["warnings"] == [warning]
    until(lambda: scripted.log.read_text().count(warning) == 2)
    assert "uncommon" not in scripted.log.read_text()


def test_settings_that_change_are_followed(home) -> None:
    config = config_path()
    config.parent.mkdir(parents=True, exist_ok=True)
    file = home.path / "keys"
    file.write_text("k" * 32)
    with daemon_of(home, "ok"), front_of(home.path, "--key-file", str(file)) as anyone:
        front = replace(anyone, key="k" * 32)
        until(lambda: front.ask("/health") == (200, {"status": "ok"}))
        config.write_text("[completion]\nmax_token = 9\n")
        until(lambda: "max_tokens" in front.ask("/health")[1].get("warning", ""))
        assert anyone.ask("/health") == (200, {"status": "ok"})
        assert front.text(prompt="on") == "[on|]"
        config.write_text("[drafting]\nmax_width = 8\n")
        with daemon_of(home, "refuse"):
            until(lambda: front.ask("/health")[0] == 503)
            refusal(front.ask("/infill", {"prompt": "on"}), 503, "no such model")
            said = anyone.ask("/health")[1]["error"]["message"]
            assert said == "failed", "a reason names files of this machine"
            config.unlink()
            until(lambda: front.ask("/health") == (200, {"status": "ok"}))
            assert front.text(prompt="on") == "[on|]"


# --- workspaces -----------------------------------------------------------------------------


def test_only_the_servers_workspaces_may_be_named(home) -> None:
    other = home.path / "other"
    other.mkdir()
    (home.workspace / "out").symlink_to(other)
    options = ("--workspace", str(home.workspace))
    with daemon_of(home, "ok"), front_of(home.path, *options) as front:
        assert front.text(prompt="on", path="a.py") == "[on|]"
        assert front.text(prompt="on", path=f"{home.workspace}/a.py") == "[on|]"
        assert front.text(prompt="on", workspace=str(home.workspace)) == "[on|]"
        assert front.text(prompt="on", workspace="") == "[on|]"
        # On a client's machine it is elsewhere, and known by its name.
        name = home.workspace.name
        assert front.ask("/codespec/workspaces") == (200, {"workspaces": [name]})
        assert front.text(prompt="on", workspace=name, path="a.py") == "[on|]"
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
    with front_of(home.path, "--workspace", str(home.workspace)) as front:

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
            assert answer["reason_key"] == "excluded"


def test_a_document_that_was_sent_serves_no_other_before_its_answer_either(
    home, monkeypatch
) -> None:
    """While its generation is left off for another, and while it waits for its answer."""
    monkeypatch.setenv("CODESPEC_CONTEXT_BUFFERS", "on")
    body = "".join(f"def zebra_engine_{i}(gears):\n    return gears + {i}\n\n" for i in range(20))
    lent = {"prompt": body, "path": "lender.py", "max_tokens": 500, "stream": True}
    asked = "def report(gears):\n    return zebra_engine_7(gears) + zebra_engine_9(gears)\n"
    with front_of(home.path, "--workspace", str(home.workspace)) as front:

        def n_prompt(path: str) -> int:
            status, answer = front.ask("/v1/completions", {"prompt": asked, "path": path})
            assert status == 200
            return answer["usage"]["prompt_tokens"]

        alone = n_prompt("one.py")
        with closing(front.begin("/v1/completions", lent)) as connection:
            assert connection.getresponse().readline()
            assert n_prompt("two.py") == alone


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


def test_long_answers_hold_up_no_short_one(scripted, home) -> None:
    endless = {"prompt": "until paused 1000000", "stream": True}
    with ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(closing(scripted.begin("/infill", endless)))
            assert connection.getresponse().readline()  # it has had a turn
        assert scripted.text(prompt="on") == "[on|]"
    assert scripted.text(prompt="on") == "[on|]"
    assert report_of(home.settings).n_respawns == 0


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
        os.kill(report_of(home.settings).worker_pid, signal.SIGKILL)
        error = events(first + response.read())[-1]["error"]
    assert "SIGKILL" in error["message"]
    assert scripted.text(prompt="on") == "[on|]"


def test_a_daemon_that_dies(front, home) -> None:
    body = {"prompt": PREFIX, "max_tokens": 8}
    expected = front.text(**body)
    report = report_of(home.settings)
    with ThreadPoolExecutor() as pool, stopped(report.worker_pid):
        answer = pool.submit(front.ask, "/v1/completions", body)
        until(lambda: n_asked(home) == 2)
        os.kill(report.pid, signal.SIGKILL)
        refusal(answer.result(TIMEOUT_S), 503, "the daemon ended")
    assert front.text(**body) == expected
    control.stop(home.settings)
    assert front.text(**body) == expected


def test_a_model_that_cannot_be_loaded(home) -> None:
    with daemon_of(home, "refuse"), front_of(home.path) as front:
        refusal(front.ask("/infill", {"prompt": "on"}), 503, "no such model", "Choose another one")
        refusal(front.ask("/health"), 503, "no such model", "Choose another one")
