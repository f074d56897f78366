"""Access to the HTTP front: keys, hosts, workspaces, and pages of other origins."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codespec.config import HttpSettings, Settings
from codespec.daemon.async_client import AsyncClient
from codespec.errors import ConfigError
from codespec.http.access import Access, KeyRefused, is_loopback, read_named_keys
from codespec.http.dialects.registry import route_of
from codespec.http.front import HttpFront
from codespec.http.wrong_keys import WrongKeys


def test_a_key_that_no_header_holds_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    keys = ["a" * 32, "b" * 32]
    file.write_text(f"# für Ada\n{keys[0]}\n\n{keys[1]}\n", "utf-8")
    assert tuple(read_named_keys(file)) == tuple(keys)
    file.write_text(f"{keys[0]}\n\n{'ü' * 32}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"line 3: .*ASCII"):
        read_named_keys(file)


def test_a_workspace_that_no_request_could_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"not UTF-8.*udcff"):
        Access(workspaces=("/home/\udcff\U0001f600",))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.168.0.1", "localhost.example", "1"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.fixture(autouse=True)
def _no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """No front here starts one: it would outlive the tests."""
    monkeypatch.setattr(AsyncClient, "connect", lambda _: None)


KEY = "a" * 32
PAGE = "https://app.example"


def sent_to(
    *headers: tuple[bytes, bytes],
    keys: tuple[str, ...] = (KEY,),
    method: str = "GET",
    path: str = "/v1/models",
) -> tuple[int, dict[bytes, bytes], bytes]:
    """(status, headers, body) of an answer, of a front whose settings name a page."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def nothing() -> Any:
        return {"type": "http.request", "body": b"{}"}

    async def ask() -> None:
        settings = Settings(http=HttpSettings(cors_origins=(PAGE,)))
        given = [(b"host", b"localhost"), *headers]
        scope = {"type": "http", "method": method, "path": path, "headers": given}
        await HttpFront(settings, Access(keys))(scope, nothing, send)

    asyncio.run(ask())
    start, body = sent
    return start["status"], dict(start["headers"]), body["body"]


BEARER = (b"authorization", b"Bearer " + KEY.encode())
ORIGIN = (b"origin", PAGE.encode())


def test_a_key_is_shown_in_either_of_two_ways() -> None:
    access = Access((KEY, "b" * 32))
    wrong = b"c" * 32
    shown: list[dict[bytes, bytes]] = [
        dict([BEARER]),
        {b"authorization": b"bearer  " + KEY.encode()},
        {b"x-api-key": KEY.encode()},
        {b"x-api-key": KEY.encode(), b"authorization": b"Bearer " + wrong},
        {b"x-api-key": wrong, b"authorization": b"Bearer " + KEY.encode()},
        {b"x-api-key": b"", b"authorization": b"Bearer " + KEY.encode()},
    ]
    for headers in shown:
        assert access.check(headers, is_public=False) == KEY
    for headers in ({}, {b"x-api-key": b""}, {b"authorization": b"Basic " + KEY.encode()}):
        with pytest.raises(KeyRefused) as refused:
            access.check(headers, is_public=False)
        assert not refused.value.was_shown
    for headers in ({b"x-api-key": wrong}, {b"authorization": b"Bearer \xff"}):
        with pytest.raises(KeyRefused) as refused:
            access.check(headers, is_public=False)
        assert refused.value.was_shown


def test_comments_in_a_file_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# Ada's\n{'a' * 32} # of Ada\n  # Bob's\n\t{'b' * 32}\t#\n{'c' * 16}#d\n")
    assert tuple(read_named_keys(file)) == ("a" * 32, "b" * 32, "c" * 16 + "#d")
    file.write_bytes(b"\xef\xbb\xbf# of Windows\r\n" + b"a" * 32 + b" # ada\r\n")
    assert read_named_keys(file) == {"a" * 32: "ada"}
    file.write_text(f"{'a' * 32} {'b' * 32}\n")
    with pytest.raises(ConfigError, match=r"line 1: .*no spaces"):
        read_named_keys(file)


def test_the_log_tells_wrong_keys_from_none_and_the_answer_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = sent_to((b"authorization", b"Bearer " + b"w" * 32))
    assert "requests refused for a wrong key: 1" in caplog.text
    assert "for no key" not in caplog.text
    assert "wwww" not in caplog.text
    none = sent_to()
    assert "requests refused for no key: 1" in caplog.text
    for _, headers, _ in (wrong, none):
        del headers[b"x-request-id"]
    assert wrong == none
    assert none[0] == 401


def test_whoever_tries_keys_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    refused = WrongKeys(lambda: now)
    for _ in range(100):
        refused.note(was_shown=True)
    refused.note(was_shown=False)
    now = 60.0
    refused.note(was_shown=True)
    said = [record.getMessage() for record in caplog.records]
    kind = "requests refused for a wrong key"
    assert said == [f"{kind}: 1", "requests refused for no key: 1", f"{kind}: 100"]


def test_pages_of_named_origins_read_answers_to_requests_with_a_key() -> None:
    asks = (b"access-control-request-method", b"POST")
    status, headers, body = sent_to(ORIGIN, asks, method="OPTIONS", path="/v1/completions")
    assert (status, body) == (204, b"")
    assert headers[b"access-control-allow-origin"] == PAGE.encode()
    assert b"authorization" in headers[b"access-control-allow-headers"].lower()
    # A page's client has headers of its own.
    own = (b"access-control-request-headers", b"authorization,x-stainless-lang")
    _, headers, _ = sent_to(ORIGIN, asks, own, method="OPTIONS", path="/v1/completions")
    assert headers[b"access-control-allow-headers"] == own[1]
    # Errors, too: a page shows them.
    status, headers, _ = sent_to(ORIGIN, BEARER, path="/v1/none")
    assert (status, headers[b"access-control-allow-origin"]) == (404, PAGE.encode())
    assert headers[b"vary"] == b"Origin"


@pytest.mark.parametrize(
    ("headers", "keys", "method", "path"),
    [
        ([ORIGIN], (KEY,), "GET", "/v1/models"),
        ([ORIGIN], (KEY,), "GET", "/health"),
        ([ORIGIN, (b"x-api-key", b"c" * 32)], (KEY,), "GET", "/v1/models"),
        ([ORIGIN], (), "GET", "/v1/models"),
        ([ORIGIN, (b"access-control-request-method", b"GET")], (), "OPTIONS", "/v1/models"),
        ([(b"origin", b"https://other.example"), BEARER], (KEY,), "GET", "/v1/none"),
        ([(b"origin", PAGE.encode() + b".evil.example"), BEARER], (KEY,), "GET", "/v1/none"),
        ([(b"origin", b""), BEARER], (KEY,), "GET", "/v1/none"),
        ([BEARER], (KEY,), "GET", "/v1/none"),
        ([ORIGIN], (KEY,), "OPTIONS", "/v1/models"),
    ],
)
def test_no_other_answer_is_for_pages(
    headers: list[tuple[bytes, bytes]], keys: tuple[str, ...], method: str, path: str
) -> None:
    _, answered, _ = sent_to(*headers, keys=keys, method=method, path=path)
    assert not [name for name in answered if name.startswith(b"access-control")]


@pytest.mark.parametrize("path", ["/v1/models/", "//v1/models", "/v1//models//"])
def test_slashes_too_many_mean_nothing(path: str) -> None:
    assert route_of(path) == route_of("/v1/models")
    assert route_of("/infill/")[1] is route_of("/infill")[1] is not None
    assert route_of(f"{path}/a/b")[2] == "a/b"
