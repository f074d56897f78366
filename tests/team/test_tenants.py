"""Tenants of a real vLLM: each has its key, sends its workspaces by our own client, and is drafted
for from them alone."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from codespec.backends.registry import open_vocabulary
from codespec.backends.remote import server_address
from codespec.backends.remote.connection import ServerClient
from codespec.backends.remote.server_session import session_of
from codespec.backends.remote.token_batches import key_of, packed
from codespec.backends.remote.trust import Trust
from codespec.backends.remote.workspace_upload import WorkspaceUpload
from codespec.config import Settings, load_settings
from codespec.engine.local import LocalEngine
from codespec.index.reader import WorkspaceIndex
from codespec.requests import CompletionRequest
from codespec_bench.demo import index
from codespec_bench.engine_client import EngineClient
from codespec_bench.maintainers.team_engine import DRAFTER, N_DRAFTED, TeamEngine
from codespec_bench.served_places import ServedPlace

from .conftest import MODEL, N_TOKENS, REPOSITORY

RED, BLUE = "key-of-red-" + "r" * 32, "key-of-blue-" + "b" * 32
UNKNOWN = "0" * 32


@pytest.fixture(scope="module")
def tenants(
    team: TeamEngine, tmp_path_factory: pytest.TempPathFactory
) -> Generator[int, None, None]:
    """The port of an engine with the tenants red and blue."""
    folder = tmp_path_factory.mktemp("tenants")
    keys = folder / "keys"
    keys.write_text(f"red {RED}\nblue {BLUE}\n")
    keys.chmod(0o600)
    drafting = {"method": "custom_class", "model": DRAFTER, "num_speculative_tokens": N_DRAFTED}
    settings = {
        "tenants": {
            "keys": str(keys),
            "folder": str(folder / "workspaces"),
            "operators": ["red", "blue"],  # the engine's own counters are compared
            "removed_s": 1.0,
        },
        # Nothing that depends on the time: counts are compared.
        "budget_ms": 5000,
        "learns_cost": False,
    }
    index(REPOSITORY, Settings())
    with team.running("tenants", drafting, settings) as port:
        yield port


@pytest.fixture(scope="module")
def workspace(tenants: int) -> str:
    """The opaque name of a workspace that red sent, while the engine runs."""
    with closing(open_vocabulary(str(MODEL))) as vocabulary:
        tokenizer_hash = vocabulary.tokenizer.hash
    opened = WorkspaceIndex.open(REPOSITORY, tokenizer_hash)
    assert opened is not None
    name = session_of(str(REPOSITORY))
    address = server_address.parse(f"http://127.0.0.1:{tenants}")
    with closing(ServerClient(address, Trust(RED))) as client:
        upload = WorkspaceUpload(client, name)
        assert upload.is_taken(tokenizer_hash)
        assert upload.bring(opened).n_contents > 10
        assert upload.bring(opened).n_contents == 0
    return name


class Counts(NamedTuple):
    """Counts of a run over all places."""

    steps: int
    drafted: int
    accepted: int


def counts(port: int, key: str, workspace: str, places: Sequence[ServedPlace]) -> Counts:
    run = EngineClient(port, workspace, key=key).run(places, N_TOKENS)
    return Counts(run.steps, run.drafted, run.accepted)


@pytest.fixture(scope="module")
def alone(tenants: int, places: list[ServedPlace]) -> Counts:
    """Counts where there is no workspace, but the text of each request."""
    return counts(tenants, RED, UNKNOWN, places)


def asked(port: int, method: str, path: str, key: str, body: Any = None) -> int:
    """Status of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        shown = {"Authorization": f"Bearer {key}"} if key else {}
        raw = None if body is None else json.dumps(body)
        connection.request(method, path, raw, {"Content-Type": "application/json", **shown})
        return connection.getresponse().status


def test_without_a_key_nothing_is_reachable(tenants: int) -> None:
    body = {"model": "codespec-base", "prompt": [1], "max_tokens": 1}
    for key in ("", "wrong"):
        for path in ("/v1/completions", "/tokenize", "/invocations", "/codespec/contents"):
            assert asked(tenants, "POST", path, key, body) == 401
        for path in ("/metrics", "/v1/models", "/docs", "/openapi.json", "/codespec/version"):
            assert asked(tenants, "GET", path, key) == 401
    assert asked(tenants, "POST", "/v1/completions", RED, body) == 200
    assert asked(tenants, "POST", "/invocations", RED, body) == 404


def test_drafts_come_from_the_workspace_of_the_keys_tenant_alone(
    tenants: int, workspace: str, alone: Counts, places: list[ServedPlace]
) -> None:
    assert counts(tenants, BLUE, workspace, places) == alone
    red = counts(tenants, RED, workspace, places)
    assert red.steps < alone.steps


def test_greedy_text_is_that_without_drafts(
    tenants: int, workspace: str, places: list[ServedPlace]
) -> None:
    plain = EngineClient(tenants, workspace, False, RED).run(places, N_TOKENS)
    assert plain.drafted == 0
    for at_once in (1, len(places)):
        run = EngineClient(tenants, workspace, True, RED).run(places, N_TOKENS, at_once)
        assert run.tokens == plain.tokens
        assert run.accepted > 0
    other = EngineClient(tenants, workspace, True, BLUE).run(places, N_TOKENS)
    assert other.tokens == plain.tokens
    assert run.steps <= other.steps


def test_a_deleted_workspace_drafts_no_more(
    tenants: int, workspace: str, alone: Counts, places: list[ServedPlace], team: TeamEngine
) -> None:
    """The worker has forgotten it, and all that was learned from it."""
    assert asked(tenants, "DELETE", "/codespec/workspaces", RED) == 200
    assert counts(tenants, RED, workspace, places) == alone
    log = Path(team.folder, "tenants.log").read_text()
    assert "workers were not told" not in log


def test_an_editors_engine_keeps_its_workspace_there(
    tenants: int, alone: Counts, places: list[ServedPlace], tmp_path: Path
) -> None:
    index(REPOSITORY, Settings())  # a test has a cache folder of its own
    key = tmp_path / "key"
    key.write_text(BLUE)
    settings = load_settings(
        {
            "model": {"target": f"http://127.0.0.1:{tenants}"},
            "server": {
                "key_file": str(key),
                "tokenizer": str(MODEL),
                "share_workspace": True,
            },
        },
        env={},
    )
    file = REPOSITORY / "row_guard.py"
    text = file.read_text()
    at = text.index("def draft(")
    with closing(LocalEngine(settings)) as engine:
        request = CompletionRequest(
            text[:at], text[at:], path=str(file), workspace=str(REPOSITORY), deadline_ms=0
        )
        engine.complete(request)
        ends_s = time.monotonic() + 120
        while not (shared := workspaces(tenants, BLUE)):
            assert time.monotonic() < ends_s
            time.sleep(0.5)
    assert [one["id"] for one in shared] == [session_of(str(REPOSITORY))]
    assert shared[0]["n_files"] > 10
    assert workspaces(tenants, RED) == []
    assert counts(tenants, BLUE, shared[0]["id"], places).steps < alone.steps


def workspaces(port: int, key: str) -> list[dict[str, Any]]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(
            "GET", "/codespec/workspaces", headers={"Authorization": f"Bearer {key}"}
        )
        return json.loads(connection.getresponse().read())["workspaces"]


def sent(port: int, path: str, body: Any) -> Any:
    """The answer that red gets. body: bytes as they are."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        raw = body if isinstance(body, bytes) else json.dumps(body)
        connection.request("POST", path, raw, {"Authorization": f"Bearer {RED}"})
        answer = connection.getresponse()
        said = json.loads(answer.read())
        assert answer.status == 200, said
        return said


def mapped_but_gone() -> list[str]:
    """Segments that processes which were started here map, though they have left the disk."""
    found = list[str]()
    for process in psutil.Process().children(recursive=True):
        lines = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
        found += [line for line in lines if line.endswith(".seg (deleted)")]
    return found


def test_text_of_a_removed_file_leaves_the_disk_and_the_workers_memory(
    tenants: int, places: list[ServedPlace]
) -> None:
    """The server is at rest: nobody asks for the workspace any more."""
    with closing(open_vocabulary(str(MODEL))) as vocabulary:
        encode = vocabulary.tokenizer.encode
        texts = [[encode(file.read_text())] for file in sorted(REPOSITORY.glob("*.py"))]
    keys = [key_of(parts) for parts in texts]
    sent(tenants, "/codespec/contents", packed(dict(zip(keys, texts, strict=True))))
    name, files = "7" * 32, {f"{i:032x}": key for i, key in enumerate(keys)}
    opened = sent(tenants, f"/codespec/workspaces/{name}", {"files": files})
    assert EngineClient(tenants, name, key=RED).run(places, N_TOKENS).accepted > 0
    gone = {"base": opened["state"], "gone": list(files)[:2]}
    state = sent(tenants, f"/codespec/workspaces/{name}", gone)
    assert state["n_tokens"] == opened["n_tokens"]  # they are on disk still
    n_left = sum(len(part) for parts in texts[2:] for part in parts)
    ends_s = time.monotonic() + 60
    while [w["n_tokens"] for w in workspaces(tenants, RED)] != [n_left] or mapped_but_gone():
        assert time.monotonic() < ends_s
        time.sleep(0.1)
    assert counts(tenants, RED, name, places).accepted > 0
