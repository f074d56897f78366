"""Workspaces that clients send: what is taken, of whom, how much, and how it ends."""

from __future__ import annotations

import sys
import threading
import time
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from codespec.backends.remote.token_batches import (
    MOST_BATCH_BYTES,
    MOST_PARTS,
    BatchError,
    batches,
    is_sendable,
    key_of,
    packed,
    state_of,
    unpacked,
)
from codespec.serving.tenants.tenant_keys import tenant_id
from codespec.serving.tenants.tenant_store import PENDING
from tests.tenants import (
    BLUE,
    RED,
    TenantServer,
    contents,
    ids,
    opaque,
    tenant_server,
)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with tenant_server(tmp_path_factory.mktemp("tenants")) as made:
        yield made


@pytest.fixture
def server(running):
    """A server to which nobody has sent anything."""
    for key in (RED, BLUE):
        running.ask("DELETE", "/codespec/workspaces", key=key)
    running.forgotten.clear()
    return running


def files_on_disk(server: TenantServer, name: str = "red") -> list[Path]:
    return [path for path in (server.folder / tenant_id(name)).rglob("*") if path.is_file()]


def test_a_workspace_is_sent_once_and_then_what_changed(server):
    first = {f"{i}.py": f"def function_{i}(): pass\n" for i in range(20)}
    said = server.share("w", first)
    assert (said["n_files"], said["n_tokens"]) == (20, sum(map(len, first.values())))
    assert server.missing(contents(*first.values())) == []
    new = contents("changed = 1\n")
    assert server.missing(new) == list(new)
    server.send(new)
    change = {opaque("3.py"): next(iter(new))}
    status, said = server.open("w", change, base=said["state"], gone=[opaque("4.py")])
    assert (status, said["n_files"]) == (200, 19)
    files = {opaque(path): next(iter(contents(text))) for path, text in first.items()} | change
    del files[opaque("4.py")]
    assert said["state"] == state_of(files) == server.state("w")["state"]


def test_a_change_to_another_state_is_refused_with_the_one_it_is_in(server):
    said = server.share("w", {"a": "one\n"})
    status, refused = server.open("w", {}, base="0" * 32)
    assert (status, refused["state"]) == (409, said["state"])
    assert server.state("w") == said


def test_a_list_of_contents_that_were_not_sent_is_refused_with_their_keys(server):
    a, b = contents("a = 1\n"), contents("b = 1\n")
    server.send(a)
    status, said = server.open("w", {opaque("a"): next(iter(a)), opaque("b"): next(iter(b))})
    assert (status, said["missing"]) == (409, list(b))
    assert server.state("w")["n_files"] == 0


def test_a_content_is_known_to_the_tenant_alone_that_sent_it(server):
    batch = contents("secret_name = 1\n")
    server.share("w", {"a": "secret_name = 1\n"})
    assert server.missing(batch, RED) == []
    assert server.missing(batch, BLUE) == list(batch)
    status, said = server.open("w", {opaque("a"): next(iter(batch))}, BLUE)
    assert (status, said["missing"]) == (409, list(batch))
    assert server.state("w", BLUE)["n_files"] == 0
    assert server.ask("GET", "/codespec/workspaces", key=BLUE)[1] == {"workspaces": []}


def test_another_tenants_workspace_is_neither_changed_nor_deleted(server):
    said = server.share("w", {"a": "one\n"})
    server.share("w", {"a": "two\n"}, BLUE)
    for path in (f"/codespec/workspaces/{opaque('w')}", "/codespec/workspaces"):
        assert server.ask("DELETE", path, key=BLUE)[0] == 200
        assert server.state("w") == said
    assert files_on_disk(server, "blue") == []


def test_workspaces_of_a_tenant_share_contents(server):
    """Those of one team's developers differ by their edits alone."""
    texts = {f"{i}.py": f"value_{i} = {i}\n" for i in range(10)}
    server.share("one", texts)
    files = {opaque(path): next(iter(contents(text))) for path, text in texts.items()}
    assert server.open("two", files)[0] == 200
    server.ask("DELETE", f"/codespec/workspaces/{opaque('one')}")
    assert server.state("two")["n_files"] == 10


NOT_TEXT = [
    (-1,),
    (1, 2, -(2**31)),
    (260,),
    (2**31 - 1,),
    (97, 256, 98),
    (259,),
]


@pytest.mark.parametrize("tokens", NOT_TEXT, ids=str)
def test_ids_that_no_text_has_are_refused(server, tokens):
    status, _ = server.send({**contents("fine\n"), **ids(*tokens)})
    assert status == 422
    assert server.missing(contents("fine\n")) == list(contents("fine\n"))


def raw(*rows: object) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(list(rows)))


KEY, PART = key_of([np.array([97], np.int32)]), b"a\0\0\0"
SPOILT = {
    "nothing": b"",
    "not compressed": b"hello",
    "cut off": packed(contents("a" * 1000))[:-4],
    "followed": packed(contents("a")) + b"x",
    "no list": zlib.compress(msgspec.msgpack.encode({"a": 1})),
    "no message": zlib.compress(b"\xc1"),
    "another hash": raw([KEY, [b"b\0\0\0"]]),
    "a hash of parts elsewhere": raw([KEY, [PART, b""]]),
    "no hash": raw(["x" * 32, [PART]]),
    "a path": raw(["../../../../../../../tmp/x", [PART]]),
    "floats": raw([KEY, [[97.0]]]),
    "half an id": raw([KEY, [b"a\0\0"]]),
    "text": raw([KEY, ["a"]]),
    "more fields": raw([KEY, [PART], 1]),
    "no parts": raw([KEY]),
    "no part": raw([key_of([]), []]),
    "no tokens": raw([KEY, [PART]], [key_of([np.array([], np.int32)]), [b""]]),
    "many parts": raw([KEY, [b""] * 10_001]),
    "many parts in all": raw(*[[KEY, [b""] * 10_000]] * 27),
    "deep": zlib.compress(b"\x91" * 100_000),
    "a bomb": zlib.compress(b"\0" * (MOST_BATCH_BYTES + 2)),
    "a bomb that says so": zlib.compress(b"\xc6\xff\xff\xff\xff" + b"\0" * MOST_BATCH_BYTES),
}


@pytest.mark.parametrize("body", SPOILT.values(), ids=SPOILT)
def test_batches_that_were_spoilt_are_refused_and_nothing_is_kept(server, body):
    status, said = server.ask("POST", "/codespec/contents", body)
    assert status == 422
    assert said["error"]["message"]
    assert files_on_disk(server) == []


def test_no_more_of_a_bomb_is_unpacked_than_its_bound(monkeypatch):
    n_bytes = list[int]()
    make = zlib.decompressobj

    class Noting:
        def __init__(self) -> None:
            self.own = make()

        def decompress(self, body: bytes, most: int) -> bytes:
            found = self.own.decompress(body, most)
            n_bytes.append(len(found))
            return found

    bomb = zlib.compress(b"\0" * (3 * MOST_BATCH_BYTES), 1)
    monkeypatch.setattr(zlib, "decompressobj", Noting)
    with pytest.raises(BatchError, match="unpacked"):
        unpacked(bomb)
    assert n_bytes == [MOST_BATCH_BYTES + 1]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", {"keys": "x"}, {"keys": ["x"]}, {"keys": ["a" * 33]}, {"keys": [1.5]},
     {"keys": [], "more": 1}, {"keys": ["../" + "a" * 29]}],
)  # fmt: skip
def test_questions_that_are_none_are_refused(server, body):
    assert server.ask("POST", "/codespec/contents/known", body)[0] == 422


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", {"files": [["a", "b"]]}, {"files": {"a": "b"}}, {"files": {"a" * 32: "../x"}},
     {"files": {"../" + "a" * 29: "a" * 32}}, {"files": {"a" * 32 + "\n": "a" * 32}},
     {"gone": ["x"]}, {"gone": ["a" * 32 + "\n"]}, {"root": "/etc"}, {"base": 1}],
)  # fmt: skip
def test_changes_that_are_none_are_refused(server, body):
    path = f"/codespec/workspaces/{opaque('w')}"
    assert server.ask("POST", path, body)[0] == 422
    assert files_on_disk(server) == []


def test_a_key_deletes_all_that_it_sent(server):
    server.share("one", {"a": "one\n"})
    server.share("two", {"a": "two\n"})
    server.send(contents("pending\n"))
    assert server.ask("DELETE", f"/codespec/workspaces/{opaque('one')}")[0] == 200
    assert server.state("one")["n_files"] == 0
    assert server.state("two")["n_files"] == 1
    assert server.forgotten == [(tenant_id("red"), opaque("one"))]
    assert server.ask("DELETE", "/codespec/workspaces")[0] == 200
    assert not (server.folder / tenant_id("red")).exists()
    assert server.forgotten[1:] == [(tenant_id("red"), w) for w in (opaque("two"), "")]


def test_a_disk_that_deletes_nothing_is_told_of(server, monkeypatch):
    server.share("w", {"a": "one\n"})

    def stays(folder: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(13, "Permission denied")

    for path in (f"/codespec/workspaces/{opaque('w')}", "/codespec/workspaces"):
        with monkeypatch.context() as patched:
            patched.setattr("codespec.serving.tenants.tenant_store.shutil.rmtree", stays)
            status, said = server.ask("DELETE", path)
        assert status == 507
        assert "Permission denied" in said["error"]["message"]
        assert server.state("w")["n_files"] == 1


def test_requests_of_one_tenant_do_not_hold_up_those_of_others(server):
    routes = server.desk.routes
    with routes._store.of(tenant_id("red")):  # as one of its requests that takes long
        threads = [
            threading.Thread(target=server.send, args=(contents(f"{i}\n"),)) for i in range(3)
        ]
        for thread in threads:
            thread.start()
        n_bytes = sum(len(packed(contents(f"{i}\n"))) for i in range(3))
        while server.desk.bodies._held[tenant_id("red")] < n_bytes:
            time.sleep(0.005)
        assert server.missing({}, BLUE) == []
    for thread in threads:
        thread.join()


@pytest.mark.skipif(sys.platform == "win32", reason="profiles are private there")
def test_what_was_sent_is_readable_by_the_server_alone(server):
    server.share("w", {"a": "one\n"})
    server.send(contents("pending\n"))
    for path in [server.folder, *server.folder.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_tenant_has_a_quota_of_files(tmp_path):
    with tenant_server(tmp_path, max_files=3) as server:
        server.share("w", {str(i): f"{i}\n" for i in range(3)})
        four = {opaque(str(i)): next(iter(contents("0\n"))) for i in range(4)}
        status, said = server.open("w", four)
        assert status == 413
        assert "3 files" in said["error"]["message"]
        assert server.state("w")["n_files"] == 3


def test_a_tenant_has_a_quota_of_tokens(tmp_path):
    with tenant_server(tmp_path, max_tokens=10_000) as server:
        assert server.send(contents("x" * 11_000))[0] == 413
        for i in range(4):
            server.send(contents(f"{i}" * 3_000))
            key = next(iter(contents(f"{i}" * 3_000)))
            status, said = server.open("w", {opaque(str(n)): key for n in range(2)})
            assert status == 200, said
        # What no file has any more does not count for ever.
        assert server.state("w")["n_tokens"] <= 10_000
        many = contents(*(f"{i}" * 3_000 for i in "abc"), "1" * 3_000)
        for key, parts in many.items():
            server.send({key: parts})
        status, said = server.open("w", {opaque(str(i)): key for i, key in enumerate(many)})
        assert status == 413, said
        assert "10,000 tokens" in said["error"]["message"]


def test_many_small_files_are_as_many_tokens_as_they_have(tmp_path):
    texts = {f"{i}.py": f"{i:02}" for i in range(60)}
    with tenant_server(tmp_path, max_tokens=300) as server:
        assert server.share("w", texts)["n_tokens"] == 120


def test_pending_contents_have_the_same_quotas_and_end(tmp_path, monkeypatch):
    with tenant_server(tmp_path, max_files=9) as server:
        statuses = [server.send(contents(f"{i}"))[0] for i in range(12)]
        assert statuses == [200] * 9 + [413] * 3
        assert server.send(contents("blue's"), BLUE)[0] == 200
        monkeypatch.setattr("codespec.serving.tenants.tenant_store.PENDING_S", -1.0)
        assert server.missing(contents("1")) == list(contents("1"))
        assert not any((server.folder / tenant_id("red") / PENDING).iterdir())


def test_the_workspace_used_least_recently_goes_first(tmp_path):
    with tenant_server(tmp_path, max_workspaces=2) as server:
        server.share("a", {"a": "one\n"})
        server.share("b", {"a": "two\n"})
        status, _ = server.ask("POST", "/v1/completions", {}, headers={"X-Session-Id": opaque("a")})
        assert status == 200
        server.share("other", {"a": "of blue\n"}, BLUE)
        server.share("c", {"a": "three\n"})
        assert [server.state(name)["n_files"] for name in "abc"] == [1, 0, 1]
        assert server.state("other", BLUE)["n_files"] == 1
        assert server.forgotten == [(tenant_id("red"), opaque("b"))]


def test_a_workspace_that_was_damaged_is_sent_again(server):
    said = server.share("w", {"a": "one\n"})
    for segment in server.folder.rglob("*.seg"):
        segment.with_suffix(".bad").touch()
    assert server.state("w")["n_files"] == 0
    status, refused = server.open("w", {}, base=said["state"])
    assert (status, refused["state"]) == (409, "")
    assert server.share("w", {"a": "one\n"}) == said


def test_a_content_whose_writing_was_interrupted_is_sent_again(server):
    batch = contents("one\n")
    server.send(batch)
    (file,) = (server.folder / tenant_id("red") / PENDING).iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    status, said = server.open("w", {opaque("a"): next(iter(batch))})
    assert (status, said["missing"]) == (409, list(batch))


def test_changes_at_once_leave_one_of_the_states(server):
    texts = [f"value_{i} = 1\n" for i in range(8)]
    server.send(contents(*texts))
    files = [{opaque("f"): next(iter(contents(text)))} for text in texts]
    said = list[int]()
    threads = [
        threading.Thread(target=lambda f=f: said.append(server.open("w", f)[0])) for f in files
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [200] * 8
    assert server.state("w")["state"] in [state_of(f) for f in files]


def test_batches_are_bounded_and_hold_each_content_whole():
    sent = {}
    for n in (10, 300_000, 1_200_000, 5, 700):
        parts = [np.full(n, 97, np.int32)]
        sent[key_of(parts)] = parts
    made = list(batches(sent.items()))
    assert [len(batch) for batch in made] == [2, 1, 2]
    found = {key: parts for batch in made for key, parts in unpacked(packed(batch)).items()}
    assert {key: parts[0].tolist() for key, parts in found.items()} == {
        key: parts[0].tolist() for key, parts in sent.items()
    }


def test_a_file_that_no_server_takes_is_left_out():
    assert list(batches(contents("x" * (MOST_BATCH_BYTES // 8 + 1)).items())) == []
    parts = [np.array([97], np.int32)] * (MOST_PARTS + 1)
    assert list(batches([(key_of(parts), parts)])) == []
    assert not is_sendable(parts)
    assert is_sendable(parts[1:])


def test_a_key_tells_parts_apart():
    a, b = np.array([1, 2], np.int32), np.array([3], np.int32)
    assert (
        len({key_of(p) for p in ([a, b], [b, a], [a], [np.concatenate([a, b])], [a, b, b[:0]])})
        == 5
    )
