"""Tenants of a real vLLM: each has its key, sends its workspaces by our own client, and is drafted
for from them alone."""

from __future__ import annotations

import http.client
import json
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from codespec.backends.registry import open_vocabulary
from codespec.backends.remote import server_address
from codespec.backends.remote.connection import ServerClient
from codespec.backends.remote.server_session import session_of
from codespec.backends.remote.trust import Trust
from codespec.backends.remote.workspace_upload import WorkspaceUpload
from codespec.config import Settings
from codespec.index.reader import WorkspaceIndex
from codespec_bench.demo import index
from codespec_bench.engine_client import EngineClient
from codespec_bench.maintainers.team_engine import DRAFTER, N_DRAFTED, TeamEngine
from codespec_bench.served_places import ServedPlace

from .conftest import MODEL, N_TOKENS, REPOSITORY

RED, BLUE = "key-of-red-" + "r" * 32, "key-of-blue-" + "b" * 32
PROMPT = "x = 1\nfrom codespec.serving.row_gu"
"""A text that repeats nothing of itself."""


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
        "tenants": {"keys": str(keys), "folder": str(folder / "workspaces")},
        "budget_ms": 100,
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


@pytest.fixture(scope="module")
def prompt() -> list[int]:
    with closing(open_vocabulary(str(MODEL))) as vocabulary:
        return vocabulary.tokenizer.encode(PROMPT).tolist()


def drafted(port: int, key: str, workspace: str, prompt: list[int]) -> int:
    """Tokens that are drafted for the prompt."""
    client = EngineClient(port, workspace, key=key)
    before = client.counters()["drafted"]
    client.complete(prompt, 6)
    return client.counters()["drafted"] - before


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
    tenants: int, workspace: str, prompt: list[int]
) -> None:
    assert drafted(tenants, RED, workspace, prompt) > 0
    assert drafted(tenants, BLUE, workspace, prompt) == 0
    assert drafted(tenants, RED, "0" * 32, prompt) == 0


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
    tenants: int, workspace: str, prompt: list[int], team: TeamEngine
) -> None:
    assert drafted(tenants, RED, workspace, prompt) > 0
    assert asked(tenants, "DELETE", "/codespec/workspaces", RED) == 200
    assert drafted(tenants, RED, workspace, prompt) == 0
    log = Path(team.folder, "tenants.log").read_text()
    assert "workers were not told" not in log
    assert PROMPT not in log
