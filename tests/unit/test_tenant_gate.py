"""The gate of tenants over real HTTP: who comes in, and what the engine is told."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from codespec.errors import ConfigError
from codespec.serving.tenants.request_fields import FieldsError, RequestOrigin, rewritten
from codespec.serving.tenants.tenant_exchange import HeldBodies
from codespec.serving.tenants.tenant_keys import TenantKeys, tenant_id
from tests.tenants import BLUE, RED, TenantServer, opaque, tenant_server

COMPLETIONS = "/v1/completions"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with tenant_server(tmp_path_factory.mktemp("tenants")) as made:
        yield made


def told(server: TenantServer, body: object, key: str = RED, **headers: str) -> Any:
    """The body that the engine gets."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    status, _ = server.ask("POST", COMPLETIONS, body, key, named)
    assert status == 200
    return server.engine.asked[-1][3]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("GET", "/docs"),
        ("GET", "/codespec/version"),
        ("POST", COMPLETIONS),
        ("POST", "/v1/chat/completions"),
        ("POST", "/tokenize"),
        ("POST", "/invocations"),
        ("POST", "/collective_rpc"),
        ("POST", "/health"),
        ("DELETE", "/codespec/workspaces"),
    ],
)
@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {RED}", RED, f"Bearer {RED[:-1]}",
     f"Bearer {RED}x", "Bearer " + "x" * 8000],
)  # fmt: skip
def test_nothing_is_reachable_without_a_key(server, method, path, authorization):
    n_asked = len(server.engine.asked)
    shown = {} if authorization is None else {"Authorization": authorization}
    status, said = server.ask(method, path, key="", headers=shown)
    assert status == 401
    assert RED not in json.dumps(said)
    assert len(server.engine.asked) == n_asked


def test_two_keys_at_once_are_none(server):
    """Each of two readers of the request might take another one."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as sent:
        keys = "".join(f"Authorization: Bearer {key}\r\n" for key in (RED, BLUE))
        sent.sendall(f"GET /v1/models HTTP/1.1\r\nHost: x\r\n{keys}\r\n".encode())
        assert b" 401 " in sent.recv(4096)


def test_whether_the_engine_works_needs_no_key(server):
    assert server.ask("GET", "/health", key="")[0] == 200


def test_metrics_are_shown_to_operators_alone(server, tmp_path):
    """They are counts of all tenants."""
    n_asked = len(server.engine.asked)
    for key in (RED, BLUE):
        status, said = server.ask("GET", "/metrics", key=key)
        assert status == 403
        assert "tenants.operators" in said["error"]["message"]
    assert len(server.engine.asked) == n_asked
    with tenant_server(tmp_path, operators=("blue", "nobody")) as other:
        assert [other.ask("GET", "/metrics", key=key)[0] for key in (RED, BLUE)] == [403, 200]
        for path in ("/metrics/", "/metrics/x"):
            assert other.ask("GET", path, key=BLUE)[0] == 404
        assert other.ask("POST", "/metrics", key=BLUE)[0] == 404


@pytest.mark.parametrize("path", ["/v1/models", "/version"])
def test_what_reaches_nobodys_requests_is_passed_on(server, path):
    assert server.ask("GET", path)[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/collective_rpc"),
        ("POST", "/reset_prefix_cache"),
        ("POST", "/invocations"),
        ("POST", "/v1/responses"),
        ("POST", "/inference/v1/generate"),
        ("POST", "/v1/load_lora_adapter"),
        ("POST", "/v1/completions/"),
        ("POST", "//v1/completions"),
        ("POST", "/v1/completions/render"),
        ("GET", "/docs"),
        ("PUT", "/v1/completions"),
        ("POST", "/codespec/"),
        ("GET", "/codespec/workspaces/../x"),
        ("GET", "/codespec/workspaces/%2e%2e"),
    ],
)
def test_other_routes_are_not_there_with_a_key(server, method, path):
    n_asked = len(server.engine.asked)
    assert server.ask(method, path)[0] == 404
    assert len(server.engine.asked) == n_asked


FORGED: list[dict[str, Any]] = [
    {},
    {"cache_salt": "x"},
    {"cache_salt": None},
    {"cache_salt": ["x"]},
    {"vllm_xargs": None},
    {"vllm_xargs": {}},
    {"vllm_xargs": {"codespec_workspace": "blue/w"}},
    {"vllm_xargs": {"codespec_workspace": ["blue/w"], "codespec_path": 7}},
    {"vllm_xargs": {"Codespec_Workspace": "blue/w", " codespec_workspace": "blue/w"}},
    {"vllm_xargs": {"codespec_tenant": "blue", "codespec_draft": {"x": 1}}},
    {"priority": -5, "request_id": "cmpl-of-blue", "session_id": "s", "kv_transfer_params": {}},
    {"vllm_xargs": {"session_id": "s", "kv_transfer_params": "x", "ec_transfer_params": "x"}},
]


@pytest.mark.parametrize("forged", FORGED, ids=str)
@pytest.mark.parametrize("path", [COMPLETIONS, "/v1/chat/completions"])
def test_what_a_client_says_of_its_tenant_is_dropped(server, forged, path):
    blue = tenant_id("blue")
    text = json.dumps(forged).replace("blue/w", f"{blue}/{opaque('w')}")
    body = {"model": "m", "prompt": [1, 2], **json.loads(text)}
    assert server.ask("POST", path, body)[0] == 200
    said = server.engine.asked[-1][3]
    assert said["prompt"] == [1, 2]
    assert said["vllm_xargs"] == {
        "codespec_workspace": f"{tenant_id('red')}/",
        "codespec_path": "",
        "codespec_draft": 1,
    }
    assert len(said["cache_salt"]) == 64
    assert {*said} == {"model", "prompt", "vllm_xargs", "cache_salt"}
    assert blue not in json.dumps(said)


def test_of_a_field_twice_the_engine_sees_one(server):
    body = b'{"cache_salt": "a", "vllm_xargs": {"codespec_path": "a"}, "cache_salt": "b"}'
    assert server.ask("POST", COMPLETIONS, body)[0] == 200
    assert server.engine.asked[-1][3]["cache_salt"] not in ("a", "b")


def test_other_arguments_and_the_way_without_drafts_are_the_clients_own(server):
    said = told(server, {"vllm_xargs": {"mine": 1, "codespec_draft": 0}})
    assert (said["vllm_xargs"]["mine"], said["vllm_xargs"]["codespec_draft"]) == (1, 0)


def test_salts_are_those_of_tenants(server):
    red, again = (told(server, {}, RED)["cache_salt"] for _ in range(2))
    assert red == again
    assert told(server, {}, BLUE)["cache_salt"] != red


def test_a_workspace_is_one_of_the_keys_tenant(server):
    for key, name in ((RED, "red"), (BLUE, "blue")):
        said = told(server, {}, key, X_Session_Id=opaque("w"), X_Codespec_File=opaque("f"))
        assert said["vllm_xargs"]["codespec_workspace"] == f"{tenant_id(name)}/{opaque('w')}"
        assert said["vllm_xargs"]["codespec_path"] == opaque("f")


def test_headers_say_nothing_that_is_dropped_of_bodies(server):
    """vLLM takes a priority, a request's id and an engine of several from headers, too."""
    told(
        server, {}, X_Session_Id=opaque("w"), X_Codespec_File=opaque("f"), X_Vllm_Priority="-9",
        X_Request_Id="of-blue", X_data_parallel_rank="1", Content_Type="application/json",
    )  # fmt: skip
    _, _, headers, _ = server.engine.asked[-1]
    assert headers[b"content-type"] == b"application/json"
    assert {*headers} <= {b"accept", b"content-length", b"content-type", b"host", b"user-agent"}


@pytest.mark.parametrize(
    "named", ["", "..", "w", "../../x", f"{tenant_id('blue')}/{opaque('w')}", "G" * 32, "a" * 33]
)
def test_what_is_no_opaque_id_names_no_workspace(server, named):
    said = told(server, {}, X_Session_Id=named)
    assert said["vllm_xargs"]["codespec_workspace"] == f"{tenant_id('red')}/"


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"1", b"null", b"{", b"\xff", b'{"vllm_xargs": 1}', b'{"vllm_xargs": []}',
     b'{"a": NaN}', b"[" * 100_000, b'{"a":' * 200 + b"1" + b"}" * 200],
)  # fmt: skip
def test_what_is_no_request_is_refused(server, body):
    n_asked = len(server.engine.asked)
    assert server.ask("POST", COMPLETIONS, body)[0] == 400
    assert len(server.engine.asked) == n_asked


@pytest.mark.parametrize(
    "path", [COMPLETIONS, "/tokenize", "/codespec/contents", "/codespec/contents/known"]
)
@pytest.mark.parametrize("length", ["Content-Length: 99999999", "Transfer-Encoding: chunked"])
def test_a_body_has_a_bound(server, path, length):
    n_asked = len(server.engine.asked)
    with socket.create_connection(("127.0.0.1", server.port), 10) as sent:
        shown = f"Host: x\r\nAuthorization: Bearer {RED}\r\n{length}"
        sent.sendall(f"POST {path} HTTP/1.1\r\n{shown}\r\n\r\n".encode())
        if "chunked" in length:
            with contextlib.suppress(ConnectionError):  # it does not read on
                for _ in range(9):
                    sent.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
        with contextlib.suppress(ConnectionError):
            assert b" 413 " in sent.recv(4096)
    assert len(server.engine.asked) == n_asked


def test_bodies_of_one_tenant_have_a_bound_together(server, monkeypatch):
    """Those of others are taken meanwhile."""
    half_sent = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(2)]
    monkeypatch.setattr(server.desk, "bodies", HeldBodies(1000))
    for sent, n in zip(half_sent, (600, 600), strict=True):
        head = f"POST {COMPLETIONS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {RED}\r\n"
        sent.sendall(f"{head}Content-Length: 700\r\n\r\n".encode() + b" " * n)
        while sent is half_sent[0] and not server.desk.bodies._held:
            time.sleep(0.005)
    assert b" 429 " in half_sent[1].recv(4096)
    assert server.ask("POST", COMPLETIONS, {"a": "x" * 600}, BLUE)[0] == 200
    for sent in half_sent:
        sent.close()
    while server.desk.bodies._held:
        time.sleep(0.005)
    assert server.ask("POST", COMPLETIONS, {"a": "x" * 600})[0] == 200


def test_before_the_model_is_known_no_workspaces_are_taken(server, monkeypatch):
    monkeypatch.setattr(server.desk, "routes", None)
    assert server.ask("GET", "/codespec/version")[0] == 503
    assert told(server, {}, X_Session_Id=opaque("w"))["vllm_xargs"]


def test_fields_are_written_whatever_they_were():
    origin = RequestOrigin("t" * 32, "salt")
    assert json.loads(rewritten(b"{}", origin))["cache_salt"] == "salt"
    with pytest.raises(FieldsError):
        rewritten(b'"x"', origin)


def keys_in(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "keys"
    file.write_text(text)
    file.chmod(mode)
    return file


def shown(keys: TenantKeys, key: str) -> str | None:
    return keys.tenant([f"Bearer {key}".encode()])


def test_keys_are_read_again_after_a_change(tmp_path):
    file = keys_in(tmp_path, f"red {RED}\n")
    keys = TenantKeys(file)
    assert (shown(keys, RED), shown(keys, BLUE)) == ("red", None)
    keys_in(tmp_path, f"blue {BLUE}\nblue {BLUE}2\n")
    assert (shown(keys, RED), shown(keys, BLUE), shown(keys, f"{BLUE}2")) == (None, "blue", "blue")
    file.unlink()
    assert shown(keys, BLUE) is None
    keys_in(tmp_path, f"red {RED}\n")
    assert shown(keys, RED) == "red"


def test_a_file_of_keys_that_was_spoilt_lets_nobody_in(tmp_path, caplog):
    keys = TenantKeys(keys_in(tmp_path, f"red {RED}\n"))
    keys_in(tmp_path, f"red {RED}\nno key")
    assert shown(keys, RED) is None
    assert "line 2" in caplog.text
    assert RED not in caplog.text


@pytest.mark.parametrize(
    "text", ["", "# no key\n", "red\n", "red short\n", f"red {RED} more\n", f"re/d {RED}\n",
             f"red {RED}\nblue {RED}\n", f"red {RED}é\n", "\0\n"]
)  # fmt: skip
def test_wrong_files_of_keys_stop_the_start(tmp_path, text):
    with pytest.raises(ConfigError) as e:
        TenantKeys(keys_in(tmp_path, text))
    assert RED not in str(e.value)


def test_a_file_of_keys_that_is_not_there_stops_the_start(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        TenantKeys(tmp_path / "none")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_keys_that_would_have_to_be_waited_for_let_nobody_in(tmp_path):
    keys = TenantKeys(keys_in(tmp_path, f"red {RED}\n"))
    (tmp_path / "keys").unlink()
    os.mkfifo(tmp_path / "keys", 0o600)
    assert shown(keys, RED) is None
    with pytest.raises(ConfigError, match="no file"):
        TenantKeys(tmp_path / "keys")


@pytest.mark.skipif(sys.platform == "win32", reason="profiles are private there")
def test_keys_that_others_may_read_stop_the_start(tmp_path):
    with pytest.raises(ConfigError, match="others may read"):
        TenantKeys(keys_in(tmp_path, f"red {RED}\n", 0o640))
