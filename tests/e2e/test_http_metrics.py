"""Metrics and the access log of a real front, beside what its answers say."""

from __future__ import annotations

import http.client
import re
import socket
import struct
import time
from contextlib import closing
from pathlib import Path

from codespec.daemon import control
from tests.e2e.conftest import Home, until
from tests.http_client import Front, front_of
from tests.unit.test_front_metrics import LINE, samples

PLANTED = "planted_in_the_text"
PATTERN = "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(8)) + "def f8(x):\n"


def scraped(front: Front, key: str = "") -> dict[tuple[str, str], float]:
    shown = {"X-Api-Key": key} if key else {}
    with closing(front.begin("/metrics", headers=shown)) as connection:
        answer = connection.getresponse()
        assert answer.status == 200
        return samples(answer.read())


def leave(connection: http.client.HTTPConnection) -> None:
    """Break a connection off. One that is closed in the usual way may be half closed, which the
    front finds out after a second: by then a text may be whole."""
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_metrics_say_what_the_answers_said(home: Home) -> None:
    with front_of(home.path) as front:
        body = {"prompt": PATTERN, "max_tokens": 24}
        status, first = front.ask("/v1/completions", body)
        assert status == 200
        *_, last, _ = front.stream("/v1/completions", body)
        timings = [first["timings"], last["timings"]]
        front.ask("/v1/completions", {**body, "n": 7})
        # A request is counted once all of its answer is sent.
        until(lambda: scraped(front)["codespec_requests_total", "answered /v1/completions"] == 2)
        found = scraped(front)

    def said(name: str) -> float:
        return sum(each[name] for each in timings)

    assert found["llamacpp:prompt_tokens_total", ""] == said("prompt_n")
    assert found["codespec_prompt_tokens_cached_total", ""] == said("cache_n")
    assert found["llamacpp:tokens_predicted_total", ""] == said("predicted_n") == 48
    assert found["llamacpp:spec_decode_num_draft_tokens_total", ""] == said("draft_n") > 0
    assert found["llamacpp:spec_decode_num_accepted_tokens_total", ""] == said("draft_n_accepted")
    assert found["codespec_target_passes_total", ""] == said("passes_n")
    for source, drafts in timings[0]["drafts"].items():
        assert found["codespec_drafted_tokens_total", source] >= drafts["draft_n"]
    assert found["codespec_first_token_seconds_count", ""] == 2
    assert found["codespec_queue_seconds_count", ""] == 2
    assert found["codespec_requests_total", "refused /v1/completions"] == 1
    assert found["codespec_ready", ""] == 1
    assert found["codespec_daemon_requests_total", ""] == 2


def test_the_access_log_has_numbers_and_names_and_no_text(home: Home, tmp_path: Path) -> None:
    keys, log = tmp_path / "keys", tmp_path / "access.log"
    keys.write_text(f"{'a' * 32} # ada\n{'b' * 32}\n")
    (home.workspace / f"{PLANTED}.py").write_text(f"{PLANTED} = 1\n")
    options = ("--key-file", str(keys), "--workspace", str(home.workspace))
    with front_of(home.path, *options, "--access-log", str(log)) as front:
        body = {
            "prompt": f"def {PLANTED}():\n    return",
            "max_tokens": 8,
            "path": f"{PLANTED}.py",
            "user": PLANTED,
        }
        ada = {"X-Api-Key": "a" * 32, "X-Request-Id": "from-ada"}
        until(lambda: front.ask("/v1/completions", body, ada)[0] == 200)
        with closing(front.begin(f"/{PLANTED}?{PLANTED}", headers=ada)) as connection:
            answer = connection.getresponse()
            assert answer.status == 404
            assert answer.headers["X-Request-Id"] == "from-ada"
        front.ask(
            "/infill", {"input_prefix": PLANTED, "nonsense": PLANTED}, {"X-Api-Key": "w" * 32}
        )
        long = {"input_prefix": PATTERN + PLANTED, "n_predict": 2000, "ignored": PLANTED}
        leave(front.begin("/infill", long, {"X-Api-Key": "b" * 32}))
        until(lambda: " left in=" in log.read_text())
        found = scraped(front, "b" * 32)
    lines = log.read_text("ascii").splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    written = next(line for line in lines if " 200 answered " in line)
    assert " client_id=from-ada key=ada workspace=1 POST /v1/completions 200 answered " in written
    assert re.search(r" in=[1-9]\d* out=([89]|1\d) first_ms=\d+\.\d ms=", written)
    assert any(" key=ada workspace=- GET other 404 refused in=- out=- " in line for line in lines)
    assert any(" key=- workspace=- POST /infill 401 refused in=- " in line for line in lines)
    assert any(" key=key-2 workspace=1 POST /infill - left in=" in line for line in lines)
    shown = log.read_text() + front.log.read_text() + repr(found)
    for secret in (PLANTED, "a" * 32, "b" * 32, str(home.workspace)):
        assert secret not in shown
    assert found["codespec_key_tokens_written_total", "ada"] >= 8
    assert found["codespec_key_requests_total", "key-2 left 1"] == 1


def test_what_was_written_for_clients_that_left_counts(home: Home, tmp_path: Path) -> None:
    """They were sent it on the way, or waited for all of it."""
    keys, log = tmp_path / "keys", tmp_path / "access.log"
    keys.write_text(f"{'a' * 32} # ada\n")
    key = {"X-Api-Key": "a" * 32}
    with front_of(home.path, "--key-file", str(keys), "--access-log", str(log)) as front:
        until(lambda: front.ask("/v1/models", headers=key)[0] == 200)
        for n, streams in enumerate((True, False), 1):
            body = {"prompt": PATTERN, "max_tokens": 2000, "stream": streams}
            connection = front.begin("/v1/completions", body, key)
            if streams:
                assert connection.getresponse().read(200)
            else:
                until(lambda: scraped(front, "a" * 32)["llamacpp:requests_processing", ""] == 1)
                time.sleep(0.2)  # the model writes meanwhile
            leave(connection)
            of = "codespec_key_requests_total", "ada left "
            until(lambda of=of, n=n: scraped(front, "a" * 32).get(of, 0) == n)
        found = scraped(front, "a" * 32)
    said = re.findall(r" (?:-|200) left in=\d+ out=(\d+) ", log.read_text("ascii"))
    outs = [int(n) for n in said]
    assert len(outs) == 2
    assert all(0 < n < 2000 for n in outs)
    assert found["codespec_key_tokens_written_total", "ada"] == sum(outs)
    assert found["llamacpp:tokens_predicted_total", ""] == sum(outs)


def test_the_access_log_goes_to_standard_error(home: Home) -> None:
    with front_of(home.path, "--access-log", "-") as front:
        front.ask("/health")
        until(lambda: " GET /health " in front.log.read_text())
    [line] = [line for line in front.log.read_text().splitlines() if " GET /health " in line]
    assert LINE.fullmatch(line)


def test_being_asked_for_metrics_starts_no_daemon(home: Home) -> None:
    with front_of(home.path) as front:
        until(lambda: scraped(front)["codespec_ready", ""] == 1)
        [pid] = home.daemon_pids()
        control.stop(home.settings)
        until(lambda: scraped(front)["codespec_ready", ""] == 0)
        for _ in range(20):
            scraped(front)
        assert home.daemon_pids() in ([], [pid])
