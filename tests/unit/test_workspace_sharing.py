"""Workspaces that a client keeps on a server of tenants, over real HTTP: what is sent, and when."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from codespec.backends.registry import open_vocabulary
from codespec.backends.remote import server_address, workspace_sharing
from codespec.backends.remote.connection import ServerClient
from codespec.backends.remote.server_session import files_of, session_of
from codespec.backends.remote.token_batches import unpacked
from codespec.backends.remote.trust import Trust
from codespec.backends.remote.workspace_sharing import FILE_HEADER, WorkspaceSharing
from codespec.backends.remote.workspace_upload import (
    UploadReport,
    WorkspaceRefusedError,
    WorkspaceUpload,
)
from codespec.config import IndexSettings, load_settings
from codespec.engine.local import LocalEngine
from codespec.index.build import build_index
from codespec.index.reader import WorkspaceIndex
from codespec.index.word_encoder import WordEncoder
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest
from tests import planted
from tests.index_support import Workspace, isolate
from tests.tenants import BLUE, RED, TOKENIZER, TenantServer, tenant_server


@pytest.fixture
def workspace(tmp_path, monkeypatch) -> Workspace:
    isolate(monkeypatch, tmp_path)
    return Workspace(tmp_path / "project")


@pytest.fixture
def server(tmp_path):
    (tmp_path / "server").mkdir()
    with tenant_server(tmp_path / "server") as made:
        yield made


class Sent(ServerClient):
    """A client that keeps what it sent."""

    def __init__(self, server: TenantServer, key: str = RED) -> None:
        super().__init__(server_address.parse(server.url), Trust(key))
        self.bodies: list[object] = []
        self.routes: list[str] = []

    def ask(self, path, body=None, **options):
        self.routes.append(path)
        self.bodies.append(body)
        return super().ask(path, body, **options)

    @property
    def tokens(self) -> list[bytes]:
        """The text of each part that was sent."""
        return [
            TOKENIZER.decode(part)
            for body in self.bodies
            if isinstance(body, bytes)
            for parts in unpacked(body).values()
            for part in parts
        ]


def opened(workspace: Workspace) -> WorkspaceIndex:
    workspace.build()
    index = workspace.open()
    assert index is not None
    return index


def file_of(workspace: str, path: str) -> str:
    return files_of(workspace, [path])[path]


def names(server: TenantServer, key: str = RED) -> list[str]:
    said = server.ask("GET", "/codespec/workspaces", key=key)[1]
    return [one["id"] for one in said["workspaces"]]


def test_what_changed_is_sent_and_nothing_else(server, workspace):
    for i in range(30):
        workspace.write(f"m{i}.py", f"def function_{i}(argument):\n    return argument + {i}\n")
    root = str(workspace.root)
    with closing(Sent(server)) as client:
        upload = WorkspaceUpload(client, session_of(root))
        first = upload.bring(opened(workspace))
        assert first.n_contents == 30
        assert upload.bring(opened(workspace)).n_contents == 0
        workspace.write("m3.py", "def another(argument):\n    return argument\n")
        (workspace.root / "m4.py").unlink()
        again = upload.bring(opened(workspace))
        assert (again.n_contents, again.n_asked) == (1, 4)
        assert again.n_bytes < 1000
        (said,) = server.ask("GET", "/codespec/workspaces")[1]["workspaces"]
        assert said["n_files"] == 29
    # Another client of the tenant has nothing to send but the list.
    with closing(Sent(server)) as client:
        other = WorkspaceUpload(client, "0" * 32)
        assert other.bring(opened(workspace)).n_contents == 0
        assert client.tokens == []


def test_what_the_server_lost_is_sent_again(server, workspace):
    workspace.write("a.py", "first = 1\n")
    with closing(Sent(server)) as client:
        upload = WorkspaceUpload(client, session_of(str(workspace.root)))
        upload.bring(opened(workspace))
        assert upload.is_there()
        server.ask("DELETE", "/codespec/workspaces")
        assert not upload.is_there()
        assert upload.bring(opened(workspace)).n_contents == 1
        assert upload.is_there()


def test_a_large_list_is_sent_in_pieces(server, workspace, monkeypatch):
    monkeypatch.setattr("codespec.backends.remote.workspace_upload._MOST_KEYS", 7)
    for i in range(20):
        workspace.write(f"m{i}.py", f"value_{i} = {i}\n")
    with closing(Sent(server)) as client:
        upload = WorkspaceUpload(client, session_of(str(workspace.root)))
        upload.bring(opened(workspace))
        assert upload.is_there()
        (said,) = server.ask("GET", "/codespec/workspaces")[1]["workspaces"]
        assert said["n_files"] == 20
        for i in range(18):
            (workspace.root / f"m{i}.py").unlink()
        workspace.write("m18.py", "changed = 1\n")
        client.bodies.clear()
        upload.bring(opened(workspace))
        assert upload.is_there()
        for body in client.bodies:
            if isinstance(body, dict) and "gone" in body:
                assert len(body["gone"]) + len(body["files"]) <= 7
    (said,) = server.ask("GET", "/codespec/workspaces")[1]["workspaces"]
    assert said["n_files"] == 2


def test_a_workspace_beyond_the_quota_is_refused(tmp_path, workspace):
    workspace.write("a.py", "".join(f"value_{i} = {i}\n" for i in range(200)))
    (tmp_path / "small").mkdir()
    with (
        tenant_server(tmp_path / "small", max_tokens=100) as server,
        closing(Sent(server)) as client,
        pytest.raises(WorkspaceRefusedError, match="larger"),
    ):
        WorkspaceUpload(client, "0" * 32).bring(opened(workspace))


def test_no_secret_no_ignored_file_and_no_path_is_sent(server, workspace):
    marks = planted.workspace(7)
    for mark in marks:
        workspace.write(mark.path, mark.text)
    workspace.write(".gitignore", "ignored_folder/\n")
    workspace.write("ignored_folder/a.py", "never_to_be_sent = 1\n")
    workspace.write("folder_of_a_customer/plain.py", "sent_as_it_is = 1\n")
    with closing(Sent(server)) as client:
        shown = list[str]()
        client.on_sent = shown.append
        WorkspaceUpload(client, session_of(str(workspace.root))).bring(opened(workspace))
        said = b"\n".join(client.tokens).decode("utf-8", "replace")
        in_json = repr([body for body in client.bodies if not isinstance(body, bytes)])
    assert "sent_as_it_is" in said
    for secret in [*(mark.secret for mark in marks), "never_to_be_sent"]:
        assert secret not in said
        assert secret not in in_json
    for path in ("project", "folder_of_a_customer", "plain", ".py", str(workspace.root)):
        assert path not in in_json
        assert not any(path in text for text in shown)
    stored = b"".join(f.read_bytes() for f in server.folder.rglob("manifest.json"))
    assert b"plain.py" not in stored


def until(true: Callable[[], bool]) -> None:
    """Wait until something is so. Fails after 20 seconds."""
    ends_s = time.monotonic() + 20
    while not true():
        assert time.monotonic() < ends_s
        time.sleep(0.01)


@pytest.fixture
def quick(monkeypatch) -> None:
    """No waits between two looks."""
    monkeypatch.setattr(workspace_sharing, "LOOK_S", 0.01)
    monkeypatch.setattr(workspace_sharing, "CHECK_S", 0.02)
    monkeypatch.setattr(workspace_sharing, "PAUSE_S", 0.01)


@pytest.mark.usefixtures("quick")
def test_a_workspace_in_use_is_kept_up_to_date(server, workspace):
    workspace.write("a.py", "first = 1\n")
    workspace.build()
    root = str(workspace.root)
    with closing(WorkspaceSharing(Sent(server), TOKENIZER.hash)) as sharing:
        assert names(server) == []
        named = sharing.headers(root, f"{root}/a.py")
        assert named == {FILE_HEADER: file_of(root, "a.py")}
        until(lambda: names(server) == [session_of(root)])
        workspace.write("b.py", "second = 1\n")
        workspace.build()

        def n_files() -> int:
            (said,) = server.ask("GET", "/codespec/workspaces")[1]["workspaces"] or [{}]
            return said.get("n_files", 0)

        until(lambda: n_files() == 2)
        server.ask("DELETE", "/codespec/workspaces")
        until(lambda: n_files() == 2)
    assert names(server, BLUE) == []
    assert not any(t.name == "codespec-sharing" for t in threading.enumerate())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("key", ["wrong-key-of-nobody", ""])
def test_without_a_key_nothing_is_sent_and_completions_go_on(server, workspace, key, caplog):
    workspace.write("a.py", "first = 1\n")
    workspace.build()
    client = Sent(server, key)
    with closing(WorkspaceSharing(client, TOKENIZER.hash)) as sharing:
        assert sharing.headers(str(workspace.root), "") == {}
        until(lambda: bool(client.routes))
        until(lambda: "is not on the server" in caplog.text)
    assert set(client.routes) == {"/codespec/version"}
    assert client.tokens == []


@pytest.mark.usefixtures("quick")
def test_another_vocabulary_is_not_sent(server, workspace, caplog):
    caplog.set_level("INFO")
    workspace.write("a.py", "first = 1\n")
    workspace.build()
    client = Sent(server)
    server.desk.routes._version["vocabularies"] = ("another",)
    with closing(WorkspaceSharing(client, TOKENIZER.hash)) as sharing:
        sharing.headers(str(workspace.root), "")
        until(lambda: "takes no workspaces of this vocabulary" in caplog.text)
    assert client.routes == ["/codespec/version"]


def test_names_of_files_are_opaque_and_of_this_user(tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path)
    one = file_of("/w", "src/a.py")
    assert re.fullmatch("[0-9a-f]{32}", one)
    assert one == file_of("/w", "src/a.py")
    assert len({one, file_of("/w", "src/b.py"), file_of("/v", "src/a.py")}) == 3
    (tmp_path / "cache" / "session.key").unlink()
    session_of.__globals__["_named"].cache_clear()
    assert file_of("/w", "src/a.py") != one


def test_a_file_elsewhere_is_not_named(server, tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path)
    with closing(WorkspaceSharing(Sent(server), TOKENIZER.hash)) as sharing:
        assert sharing.headers(str(tmp_path / "w"), "/etc/passwd") == {}
        assert sharing.headers("", "/etc/passwd") == {}

        def on_another_drive(path: str, start: str) -> str:
            raise ValueError("path is on mount 'D:', start on mount 'C:'")

        monkeypatch.setattr("os.path.relpath", on_another_drive)
        assert sharing.headers(str(tmp_path / "w"), str(tmp_path / "w" / "a")) == {}


def test_it_is_off_unless_the_users_own_settings_say_so(tmp_path: Path) -> None:
    assert load_settings({}, env={}).server.share_workspace is False
    said = load_settings({"server": {"share_workspace": True}}, env={})
    assert said.server.share_workspace is True


def test_reports_count_what_was_asked():
    assert UploadReport().and_asked(7).and_asked(3) == UploadReport(n_bytes=10, n_asked=2)


def test_contents_come_back_from_an_index_as_they_are(workspace):
    workspace.write("a.py", "def f():\n    return 1\n")
    index = opened(workspace)
    (key,) = index.contents.values()
    parts = index.content(key)
    assert b"".join(TOKENIZER.decode(part) for part in parts) == b"def f():\n    return 1\n"
    assert [part.dtype for part in parts] == [np.int32] * len(parts)
    assert index.content("0" * 32) == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("shares", [True, False])
def test_an_engine_shares_where_the_settings_say_so_and_not_else(workspace, tmp_path, shares):
    """A whole engine over a server in vLLM's form, behind the gate."""
    root, file = str(workspace.root), str(workspace.write("a.py", "first = 1\n"))
    (tmp_path / "key").write_text(RED)
    asked = {
        "server": {
            "key_file": str(tmp_path / "key"),
            "tokenizer": str(bundled(BUNDLED_TARGET)),
            "share_workspace": shares,
        }
    }
    with closing(open_vocabulary(str(bundled(BUNDLED_TARGET)))) as model:
        tokenizer = model.tokenizer
        controls = set(model.special_tokens.values())
        pieces = [b"" if i in controls else tokenizer.piece(i) for i in range(model.info.n_vocab)]
        build_index(workspace.root, WordEncoder(tokenizer), IndexSettings())
        said = {"choices": [{"text": "", "token_ids": tokenizer.encode("second = 2\n").tolist()}]}
        (tmp_path / "server").mkdir()
        with tenant_server(tmp_path / "server", pieces, tokenizer.hash) as server:
            server.engine.answers = {
                "/v1/models": lambda _: b'{"data": [{"id": "m", "owned_by": "vllm"}]}',
                "/tokenize": lambda body: json.dumps(
                    {"tokens": tokenizer.encode(body["prompt"]).tolist()}
                ).encode(),
                "/v1/completions": lambda _: f"data: {json.dumps(said)}\ndata: [DONE]\n".encode(),
            }
            settings = load_settings({"model": {"target": server.url}, **asked}, env={})
            with closing(LocalEngine(settings)) as engine:
                done = engine.complete(CompletionRequest("x = 1\n", path=file, workspace=root))
                assert done.text.startswith("second")
                if shares:
                    until(lambda: names(server) == [session_of(root)])
            (told,) = [b for _, path, _, b in server.engine.asked if path == "/v1/completions"]
            assert names(server) == ([session_of(root)] if shares else [])
    arguments = told["vllm_xargs"]
    assert arguments["codespec_workspace"].endswith(f"/{session_of(root)}")
    assert arguments["codespec_path"] == (file_of(root, "a.py") if shares else "")
