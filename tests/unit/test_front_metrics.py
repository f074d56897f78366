"""Metrics and the access log of the HTTP front: counts, formats, and labels that no client adds."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_metrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from codespec.config import Settings
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.edit_figures import EditFigures
from codespec.daemon.wire import StatusReport
from codespec.errors import ConfigError
from codespec.http import access_log
from codespec.http.access import Access, read_named_keys
from codespec.http.access_log import AccessLog, line_of
from codespec.http.front import HttpFront
from codespec.http.front_metrics import FrontMetrics
from codespec.http.served_request import ServedRequest
from codespec.types import SourceStats, Trace

ROOT = Path(__file__).resolve().parents[2]
KEY = "k" * 32
TRACE = Trace(
    n_tokens=9,
    n_target_passes=3,
    n_drafted=10,
    n_accepted=6,
    n_prompt_tokens=100,
    n_prompt_cached=60,
    by_source={"own text": SourceStats(4, 3), "repository": SourceStats(6, 3)},
    pass_depth=[4, 6, 0],
    pass_accepted=[3, 3, 0],
    ms=100.0,
    context_ms=10.0,
    first_token_ms=30.0,
    model="m",
)
LINE = re.compile(
    r"\S+Z id=[0-9a-f]{16} client_id=\S+ key=\S+ workspace=\S+ \S+ \S+ \S+ \S+ in=\S+ out=\S+"
    r" first_ms=\S+ ms=\S+"
)


def samples(shown: bytes) -> dict[tuple[str, str], float]:
    """Value by name and labels, as Prometheus' own parser reads them."""
    return {
        (sample.name, " ".join(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(shown.decode())
        for sample in family.samples
    }


def counted(metrics: FrontMetrics) -> dict[tuple[str, str], float]:
    return samples(metrics.shown("", None)[0])


def test_a_text_is_counted_by_llama_servers_names_and_ours() -> None:
    metrics = FrontMetrics()
    metrics.text(TRACE, waited_s=0.2)
    metrics.text(TRACE, waited_s=0.0)
    found = counted(metrics)
    assert found["llamacpp:prompt_tokens_total", ""] == 80
    assert found["codespec_prompt_tokens_cached_total", ""] == 120
    assert found["llamacpp:prompt_seconds_total", ""] == pytest.approx(0.06)
    assert found["llamacpp:prompt_tokens_seconds", ""] == pytest.approx(80 / 0.06)
    assert found["llamacpp:tokens_predicted_total", ""] == 18
    assert found["llamacpp:tokens_predicted_seconds_total", ""] == pytest.approx(0.12)
    assert found["llamacpp:predicted_tokens_seconds", ""] == pytest.approx(18 / 0.12)
    assert found["llamacpp:n_tokens_max", ""] == 109
    assert found["llamacpp:spec_decode_num_drafts_total", ""] == 4
    assert found["llamacpp:spec_decode_num_draft_tokens_total", ""] == 20
    assert found["llamacpp:spec_decode_num_accepted_tokens_total", ""] == 12
    assert found["codespec_drafted_tokens_total", "repository"] == 12
    assert found["codespec_accepted_tokens_total", "own text"] == 6
    assert found["codespec_target_passes_total", ""] == 6
    assert found["codespec_tokens_per_pass_bucket", "1.0"] == 2
    assert found["codespec_tokens_per_pass_sum", ""] == 18
    assert found["codespec_queue_seconds_bucket", "0.005"] == 1
    assert found["codespec_queue_seconds_sum", ""] == pytest.approx(0.2)
    assert found["codespec_first_token_seconds_sum", ""] == pytest.approx(0.28)
    # Five tokens after those of the first pass, in the 60 ms after the first token.
    assert found["codespec_token_seconds_sum", ""] == pytest.approx(2 * 0.06 / 5)


def test_the_daemons_figures_are_those_of_now() -> None:
    metrics = FrontMetrics()
    edits = EditFigures(n_asked=7, n_proposed=3, n_made=2)
    report = StatusReport(
        id=1, state="ready", n_running=1, n_waiting=4, n_clients=2, next_edits=edits
    )
    found = samples(metrics.shown("", report)[0])
    assert found["llamacpp:requests_processing", ""] == 1
    assert found["llamacpp:requests_deferred", ""] == 4
    assert found["codespec_ready", ""] == 1
    assert found["codespec_daemon_clients", ""] == 2
    assert found["codespec_next_edits_proposed_total", ""] == 3
    assert found["codespec_next_edits_made_total", ""] == 2
    assert counted(metrics)["codespec_ready", ""] == 0


def test_both_formats_and_their_media_types() -> None:
    metrics = FrontMetrics()
    metrics.text(TRACE, 0.0)
    plain, media_type = metrics.shown("text/plain", None)
    assert media_type.startswith("text/plain; version=0.0.4")
    assert len(list(text_string_to_metric_families(plain.decode()))) == len(metrics.rows())
    asked = "application/openmetrics-text;version=1.0.0;escaping=underscores;q=0.6,*/*;q=0.1"
    opened, media_type = metrics.shown(asked, None)
    assert media_type.startswith("application/openmetrics-text; version=1.0.0")
    assert len(list(open_metrics_families(opened.decode()))) == len(metrics.rows())
    for odd in ("*/*", "", ";;,,", "text/plain; version=x", "\xff" * 1000):
        assert metrics.shown(odd, None)[0] == plain


def test_the_page_has_all_of_them() -> None:
    page = (ROOT / "docs" / "http.md").read_text("utf-8")
    shown = re.findall(r"^\| `([\w:]+)` \| (\w+) \| (.+) \|$", page, re.M)
    assert shown == FrontMetrics().rows()


@pytest.fixture(autouse=True)
def _no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """No front here starts one: it would outlive the tests."""
    monkeypatch.setattr(AsyncClient, "connect", lambda _: None)


class Asked:
    """A front that is asked as an ASGI server asks it, without a daemon."""

    def __init__(self, access: Access, log: AccessLog | None = None) -> None:
        self.front = HttpFront(Settings(), access, log)

    def ask(
        self, path: str, *headers: tuple[bytes, bytes], method: str = "GET", body: bytes = b""
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        return asyncio.run(self._ask(path, headers, method, body))

    async def _ask(
        self, path: str, headers: Sequence[tuple[bytes, bytes]], method: str, body: bytes
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        given = [(b"host", b"localhost"), (b"content-length", b"%d" % len(body)), *headers]
        scope = {"type": "http", "method": method, "path": path, "headers": given}
        await self.front(scope, receive, send)
        said = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], dict(sent[0]["headers"]), said


def test_metrics_need_a_key_like_every_route() -> None:
    asked = Asked(Access((KEY,), names=("ada",)))
    assert asked.ask("/metrics")[0] == 401
    status, headers, body = asked.ask("/metrics", (b"x-api-key", KEY.encode()))
    assert status == 200
    assert headers[b"content-type"].startswith(b"text/plain; version=0.0.4")
    found = samples(body)
    assert found["codespec_requests_total", "refused /metrics"] == 1
    assert found["llamacpp:requests_processing", ""] == 0
    found = samples(asked.ask("/metrics", (b"x-api-key", KEY.encode()))[2])
    assert found["codespec_key_requests_total", "ada answered "] == 1
    assert not [labels for _, labels in found if KEY in labels]


def test_senders_without_a_key_do_not_change_the_latencies() -> None:
    asked = Asked(Access((KEY,)))
    key = (b"x-api-key", KEY.encode())
    for shown in ((b"x-api-key", b"w" * 32), key):
        asked.ask("/v1/completions", shown, method="POST", body=b"[]")
    found = samples(asked.ask("/metrics", key)[2])
    assert found["codespec_requests_total", "refused /v1/completions"] == 2
    assert found["codespec_request_seconds_count", ""] == 1


def test_no_client_adds_series_without_end() -> None:
    asked = Asked(Access((KEY,)))
    key = (b"x-api-key", KEY.encode())
    n_before = 0
    for n in range(200):
        if n == 100:
            asked.ask("/metrics", key)
            n_before = len(samples(asked.ask("/metrics", key)[2]))
        shown = (b"x-api-key", f"{n}".encode() * 16) if n % 2 else key
        asked.ask(f"/planted/{n}", shown, (b"x-request-id", b"%d" % n))
        asked.ask(f"/v1/models/planted-{n}", shown)
        asked.ask("/metrics", shown, method=f"PLANTED{n}")
        body = b'{"prompt": 1, "workspace": "planted-%d", "user": "planted"}' % n
        asked.ask("/v1/completions", shown, method="POST", body=body)
    shown = asked.ask("/metrics", key)[2]
    assert len(samples(shown)) == n_before
    assert b"planted" not in shown.lower()


def test_a_model_elsewhere_names_a_bounded_number_of_sources() -> None:
    metrics = FrontMetrics()
    for n in range(100):
        for label in (f"source {n}", "def planted():\n" * n, "x" * 1000):
            metrics.text(Trace(by_source={label: SourceStats(1, 1)}, model="m"), 0.0)
    found = counted(metrics)
    labels = {labels for name, labels in found if name == "codespec_drafted_tokens_total"}
    assert len(labels) == 33
    assert "other" in labels
    assert not any("planted" in label for label in labels)
    assert found["codespec_drafted_tokens_total", "other"] == 300 - 32


HOSTILE = (
    b"two\nlines",
    b"\r\nSet-Cookie: a=b",
    b"x" * 10_000,
    b"\x1b[31mred",
    b"a b",
    b"key=root",
    b"caf\xc3\xa9",
    b"",
    b"\x00",
)


@pytest.mark.parametrize("shown", HOSTILE)
def test_a_hostile_id_is_neither_echoed_nor_logged(tmp_path: Path, shown: bytes) -> None:
    file = tmp_path / "access.log"
    log = AccessLog(str(file))
    asked = Asked(Access(), log)
    _, headers, _ = asked.ask("/props", (b"x-request-id", shown))
    log.close()
    ours = headers[b"x-request-id"].decode()
    assert re.fullmatch("[0-9a-f]{16}", ours)
    [line] = file.read_text("ascii").splitlines()
    assert LINE.fullmatch(line)
    assert line.isprintable()
    assert f"id={ours} client_id=- " in line


def test_a_sane_id_comes_back_and_is_logged(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    log = AccessLog(str(file))
    asked = Asked(Access((KEY,), names=("ada",)), log)
    sane = (b"x-request-id", b"7f3a-b.C_1")
    for key in (KEY, "w" * 32):
        _, headers, _ = asked.ask("/v1/models/x", sane, (b"x-api-key", key.encode()))
        assert headers[b"x-request-id"] == sane[1]
    log.close()
    known, unknown = file.read_text("ascii").splitlines()
    assert " client_id=7f3a-b.C_1 key=ada workspace=- GET /v1/models/ 503 failed in=- " in known
    assert " client_id=7f3a-b.C_1 key=- workspace=- GET /v1/models/ 401 refused in=- " in unknown
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    file.touch()
    file.chmod(0o640)
    log = AccessLog(str(file))
    log.write(ServedRequest(route="/infill", method="POST", client_id=""))
    log.close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.read_text("ascii").count("\n") == 1


def test_a_client_that_left_has_no_status(tmp_path: Path) -> None:
    served = ServedRequest(route="/infill", method="POST", client_id="")
    assert " POST /infill - left in=- out=- first_ms=- ms=" in line_of(served)


def test_the_log_rotates_and_old_files_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "_MAX_BYTES", 2000)
    log = AccessLog(str(tmp_path / "access.log"))
    for _ in range(200):
        log.write(ServedRequest(route="/infill", method="POST", client_id="", is_known=True))
    log.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 5
    assert max(file.stat().st_size for file in files) <= 2000


def test_who_floods_it_without_a_key_pushes_nobody_out(tmp_path: Path) -> None:
    file, now_s = tmp_path / "access.log", 0.0
    log = AccessLog(str(file), lambda: now_s)
    for is_known in (True, *[False] * 500, True):
        log.write(ServedRequest("/infill", "POST", "", is_known=is_known, key="ada" * is_known))
    now_s = 60.0
    log.write(ServedRequest("/infill", "POST", ""))
    log.close()
    lines = file.read_text("ascii").splitlines()
    assert [" key=ada " in line for line in lines] == [True, *[False] * 10, True, False, False]
    assert re.fullmatch(r"\S+Z unwritten=490", lines[-2])
    assert all(LINE.fullmatch(line) for line in (*lines[:-2], lines[-1]))


def test_a_log_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write the access log"):
        AccessLog(str(tmp_path / "none" / "access.log"))


def test_names_of_keys_are_their_comments_of_one_word(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    rows = ("# Ada's\n", "a # ada", "b  # of Bob", "c", "d #\x1b[31m", f"e # {'x' * 33}")
    file.write_text("\n".join(re.sub(r"^([a-e])\b", lambda m: m[1] * 32, row) for row in rows))
    names = read_named_keys(file)
    assert list(names.values()) == ["ada", "key-2", "key-3", "key-4", "key-5"]
    access = Access(tuple(names), names=tuple(names.values()))
    assert access.name_of("a" * 32) == "ada"
    assert access.name_of("") == ""
    assert Access(("a" * 32, "b" * 32)).name_of("b" * 32) == "key-2"
