"""Servers know a workspace by a name that tells nothing of it, the same in all its requests."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.backends.remote.server_session import HEADER, session_headers, session_of
from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.requests import CompletionRequest
from codespec.system.folders import cache_dir
from tests.scripted_server import completion, models, scripted_server

ASKED = CompletionRequest("def f():\n    fi", "\n\nx = 1\n", path="/w/a.py", workspace="/w")


def test_another_process_of_the_user_gives_the_same_name(tmp_path: Path) -> None:
    name = session_of(str(tmp_path))
    code = (
        "import sys; from codespec.backends.remote.server_session import session_of;"
        " print(session_of(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.strip() == name
    assert len(bytes.fromhex(name)) == 16


def test_workspaces_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert session_of(str(tmp_path)) != session_of(str(tmp_path / "a"))
    assert session_of(str(tmp_path / "link")) == session_of(str(tmp_path / "a"))
    assert session_headers("") == {}


@pytest.mark.parametrize("kept", [b"", b"cut off", b"x" * 32])
def test_its_secret_is_kept_for_the_user_alone(tmp_path: Path, kept: bytes) -> None:
    file = cache_dir() / "session.key"
    file.write_bytes(kept)
    file.chmod(0o644)
    name = session_of(str(tmp_path))
    key = file.read_bytes()
    assert name
    assert len(key) == 32
    assert (key == kept) == (len(kept) == 32)
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o077 == 0


def test_without_a_place_for_it_no_name_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "file"))
    assert session_headers(str(tmp_path)) == {}


@pytest.mark.parametrize(("owner", "is_named"), [("vllm", True), ("", False)])
def test_vllm_is_sent_it_with_each_request(owner: str, is_named: bool) -> None:
    routes = {"/v1/models": models(owner), "/v1/completions": completion(["rst()\n"])}
    with scripted_server(routes) as server:
        settings = load_settings({"model": {"target": f"{server.url}/v1"}}, env={})
        sent = list[str]()
        with closing(LocalEngine(settings)) as engine:
            engine.remembers = False
            engine.watch(lambda _: None, sent.append)
            for asked in (ASKED, replace(ASKED, prefix="x = 2\n"), replace(ASKED, workspace="")):
                engine.complete(asked)
        prompts = [e for e in server.exchanges if e.path == "/v1/completions"]
        said = [e.headers.get(HEADER) for e in prompts]
    name = session_of("/w") if is_named else None
    assert said == [name, name, None]
    # What is sent is shown as it is.
    assert sum(f"\n{HEADER}: {name}\n" in shown for shown in sent) == (2 if is_named else 0)
