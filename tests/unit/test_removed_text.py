"""Text that left a workspace leaves the server's disk: it is looked for in all bytes there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from codespec.errors import IndexBusyError
from codespec.serving.tenants import tenant_store
from codespec.serving.tenants.tenant_keys import tenant_id
from codespec.serving.tenants.tenant_store import TenantStore, workspace_store
from codespec.serving.tenants.workspace_change import WorkspaceChange
from tests.tenants import RED, TOKENIZER, TenantServer, contents, opaque, tenant_server

# With a letter beyond ASCII each text takes eight bits a token in a segment.
REMOVED = "password_of_the_machine = 'né'\n"
KEPT = "class Kept:\n    value = 'né'\n"
NEW = "nothing = 'né'\n"
TENANT = tenant_id("red")


@pytest.fixture
def server(tmp_path: Path) -> Generator[TenantServer]:
    with tenant_server(tmp_path, removed_s=3600.0) as made:
        yield made


def holders(server: TenantServer, text: str) -> list[Path]:
    """Files on disk that hold a text: as ids that were sent, or in a segment, which packs each id,
    and one more, into as many bits as the largest takes."""
    ids = TOKENIZER.encode(text)
    needles = ids.tobytes(), bytes((ids + 1).tolist())
    found = list[Path]()
    for path in server.folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # it is being rewritten
            if path.is_file() and any(needle in path.read_bytes() for needle in needles):
                found.append(path)
    return found


def removed(server: TenantServer, how: str) -> str:
    """Share two files, then remove or replace one. Returns: the state after it."""
    state = server.share("w", {"removed.py": REMOVED, "kept.py": KEPT})["state"]
    assert holders(server, REMOVED)
    files = {}
    if how == "replaced":
        new = contents(NEW)
        server.send(new)
        files = {opaque("removed.py"): next(iter(new))}
    gone = [opaque("removed.py")] if how == "removed" else []
    status, said = server.open("w", files, base=state, gone=gone)
    assert status == 200
    return said["state"]


def age(server: TenantServer, s: float) -> None:
    """Make it so many seconds ago that the text left."""
    then = time.time() - s
    for mark in server.folder.rglob("removed"):
        os.utime(mark, (then, then))


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_it_leaves_the_disk_once_its_time_is_over(server: TenantServer, how: str) -> None:
    state = removed(server, how)
    age(server, 3500.0)
    server.store.clean(TENANT)
    assert holders(server, REMOVED)
    assert server.reopened == []
    age(server, 3600.0)
    server.store.clean(TENANT)
    assert holders(server, REMOVED) == []
    assert holders(server, KEPT)
    assert server.state("w")["state"] == state
    assert server.reopened == [(TENANT, opaque("w"))]
    assert server.missing(contents(REMOVED)) == list(contents(REMOVED))
    assert server.missing(contents(KEPT)) == []
    server.store.clean(TENANT)  # there is nothing more to do
    assert len(server.reopened) == 1


def test_its_time_begins_with_the_first_text_that_left(server: TenantServer) -> None:
    """Changes of files all the time do not put it off."""
    state = removed(server, "replaced")
    age(server, 3600.0)
    new = contents(NEW.replace("nothing", "something"))
    server.send(new)
    assert server.open("w", {opaque("removed.py"): next(iter(new))}, base=state)[0] == 200
    server.store.clean(TENANT)
    assert holders(server, REMOVED) == []
    assert holders(server, NEW) == []


def test_it_leaves_with_the_change_where_the_settings_say_so(tmp_path: Path) -> None:
    with tenant_server(tmp_path, removed_s=0.0) as server:
        removed(server, "replaced")
        assert holders(server, REMOVED) == []
        assert holders(server, KEPT)


def test_text_that_other_files_have_stays(server: TenantServer) -> None:
    files = {"a.py": REMOVED, "b.py": REMOVED, "kept.py": KEPT}
    state = server.share("w", files)["state"]
    assert server.open("w", {}, base=state, gone=[opaque("a.py")])[0] == 200
    age(server, 3600.0)
    server.store.clean(TENANT)
    assert holders(server, REMOVED)
    assert server.reopened == []


def test_a_workspace_of_which_everything_left_holds_no_text(server: TenantServer) -> None:
    server.share("w", {"removed.py": REMOVED})
    assert server.open("w", {})[0] == 200
    age(server, 3600.0)
    server.store.clean(TENANT)
    assert holders(server, REMOVED) == []
    assert server.share("w", {"removed.py": REMOVED})["n_files"] == 1


def test_contents_that_no_workspace_listed_leave_the_disk_unasked(
    server: TenantServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.send(contents(REMOVED))
    sent = [path for path in server.folder.rglob("*") if path.is_file()]
    assert sent
    monkeypatch.setattr(tenant_store, "PENDING_S", -1.0)
    server.store.clean(TENANT)
    assert not [path for path in sent if path.exists()]


def test_it_is_done_by_itself(server: TenantServer) -> None:
    removed(server, "removed")
    age(server, 3600.0)
    (server.folder / "no tenant").touch()
    routes = server.desk.routes
    assert routes is not None
    routes._clean_every_s = 0.01

    async def run() -> None:
        cleaning = asyncio.create_task(routes.keep_clean())
        while holders(server, REMOVED):
            await asyncio.sleep(0.01)
        cleaning.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await cleaning

    asyncio.run(run())
    assert holders(server, KEPT)


def test_one_of_several_engines_rewrites_it(server: TenantServer) -> None:
    """They share the folder; a change that began before is refused, and loses nothing."""
    state = removed(server, "removed")
    age(server, 3600.0)
    other = TenantStore(server.settings, TOKENIZER.hash)
    store = workspace_store(server.folder, TENANT, opaque("w"), TOKENIZER.hash)
    with store.writing():
        server.store.clean(TENANT)
    assert holders(server, REMOVED)
    assert server.reopened == []
    with other.of(TENANT) as folder:
        read = folder._elsewhere

        def meanwhile(workspace: str, keys: Sequence[str]) -> dict[str, tuple[str, int]]:
            server.store.clean(TENANT)
            return read(workspace, keys)

        folder._elsewhere = meanwhile
        with pytest.raises(IndexBusyError):
            folder.open(opaque("w"), WorkspaceChange(base=state, gone=[]))
    assert server.state("w")["state"] == state
    assert server.missing(contents(KEPT), RED) == []
    assert holders(server, REMOVED) == []
