"""Downloads from a real HTTP server on this machine: whole, cut off, resumed, changed, wrong."""

from __future__ import annotations

import errno
import ssl
from email.message import Message
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request

import pytest

from codespec.errors import InputError, ModelError
from codespec.models import download, provenance
from tests.hub import CONTENT, SHA256, Hub, hub

__all__ = ["hub"]


def url() -> str:
    return download.hub_url("maker/model-GGUF", "model-q8_0.gguf")


def test_a_whole_download(hub: Hub, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    fetched = download.fetch(
        url(), tmp_path / "models", on_progress=lambda done, total: seen.append((done, total))
    )
    assert fetched.path == tmp_path / "models" / "model-q8_0.gguf"
    assert fetched.path.read_bytes() == CONTENT
    assert fetched.sha256 == SHA256
    assert fetched.is_verified, "the hub stated the checksum"
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 2
    assert sorted(p.name for p in fetched.path.parent.iterdir()) == ["model-q8_0.gguf"]


def test_it_goes_on_where_it_was_cut_off(hub: Hub, tmp_path: Path) -> None:
    hub.cut = 3_000_000
    with pytest.raises(ModelError, match="the same command goes on"):
        download.fetch(url(), tmp_path)
    assert not (tmp_path / "model-q8_0.gguf").exists()
    assert (tmp_path / "model-q8_0.gguf.part").stat().st_size == 3_000_000
    hub.cut = None
    assert download.fetch(url(), tmp_path).path.read_bytes() == CONTENT
    assert hub.ranges == [None, "bytes=3000000-"]


def test_a_file_that_changed_meanwhile_is_fetched_anew(hub: Hub, tmp_path: Path) -> None:
    hub.cut, hub.stated = 3_000_000, None
    with pytest.raises(ModelError):
        download.fetch(url(), tmp_path)
    hub.cut, hub.etag = None, '"two"'
    hub.content = CONTENT[:4] + CONTENT[::-1]
    fetched = download.fetch(url(), tmp_path)
    assert fetched.path.read_bytes() == hub.content
    assert not fetched.is_verified


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_without_a_proof_of_sameness_nothing_is_resumed(
    hub: Hub, tmp_path: Path, etag: str
) -> None:
    hub.cut, hub.etag = 3_000_000, etag
    with pytest.raises(ModelError):
        download.fetch(url(), tmp_path)
    assert list(tmp_path.iterdir()) == [], "nobody could go on with it"
    with pytest.raises(KeyboardInterrupt):
        download.fetch(url(), tmp_path, on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    hub.cut = None
    assert download.fetch(url(), tmp_path).path.read_bytes() == CONTENT
    assert hub.ranges == [None, None, None]


def interrupt(_done: int, _total: int) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_download_goes_on(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        download.fetch(url(), tmp_path, on_progress=interrupt)
    assert download.fetch(url(), tmp_path).path.read_bytes() == CONTENT
    assert hub.ranges[0] is None
    assert hub.ranges[1] is not None


def test_what_came_before_a_stall_is_kept(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_TIMEOUT_S", 0.2)
    hub.cut, hub.stalls = 1_000, True
    with pytest.raises(ModelError, match="the same command goes on"):
        download.fetch(url(), tmp_path)
    assert (tmp_path / "model-q8_0.gguf.part").stat().st_size == 1_000


def test_another_files_part_stays_where_the_address_is_wrong(hub: Hub, tmp_path: Path) -> None:
    hub.cut = 3_000_000
    with pytest.raises(ModelError):
        download.fetch(url(), tmp_path)
    hub.shutdown()
    hub.server_close()
    with pytest.raises(ModelError, match="download failed"):
        download.fetch(url().replace("maker", "another"), tmp_path)
    assert (tmp_path / "model-q8_0.gguf.part").stat().st_size == 3_000_000


def test_a_server_that_does_not_resume(hub: Hub, tmp_path: Path) -> None:
    hub.cut = 3_000_000
    with pytest.raises(ModelError):
        download.fetch(url(), tmp_path)
    hub.cut, hub.resumes = None, False
    assert download.fetch(url(), tmp_path).path.read_bytes() == CONTENT


def test_a_part_that_begins_elsewhere_is_not_appended(hub: Hub, tmp_path: Path) -> None:
    hub.cut, hub.stated = 3_000_000, None
    with pytest.raises(ModelError):
        download.fetch(url(), tmp_path)
    hub.cut, hub.starts_at = None, 0
    assert download.fetch(url(), tmp_path).path.read_bytes() == CONTENT
    assert hub.ranges == [None, "bytes=3000000-", None]


def test_a_part_that_says_not_where_it_begins_is_not_appended(hub: Hub, tmp_path: Path) -> None:
    hub.cut, hub.stated = 3_000_000, None
    with pytest.raises(ModelError):
        download.fetch(url(), tmp_path)
    hub.cut, hub.starts_at, hub.extent = None, 0, ""
    assert download.fetch(url(), tmp_path).path.read_bytes() == CONTENT
    assert hub.ranges == [None, "bytes=3000000-", None]


@pytest.mark.parametrize(
    ("extent", "why"), [("", "without saying of what"), ("bytes 9-99/100", "from byte 9 on")]
)
def test_a_part_that_nobody_asked_for_is_refused(
    hub: Hub, tmp_path: Path, extent: str, why: str
) -> None:
    hub.sends_parts, hub.extent, hub.stated = True, extent, None
    with pytest.raises(ModelError, match=f"the server sends a part {why}"):
        download.fetch(url(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_size_than_was_said_is_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.cut, hub.stated = 3_000_000, None
    with pytest.raises(ModelError):
        download.fetch(url(), tmp_path)
    hub.cut, hub.extent = None, f"bytes 3000000-{len(CONTENT) - 2}/{len(CONTENT) - 1}"
    with pytest.raises(ModelError, match=f"it has {len(CONTENT):,} bytes, not "):
        download.fetch(url(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_part_longer_than_the_file_is_none_of_it(hub: Hub, tmp_path: Path) -> None:
    hub.stated = None
    part = tmp_path / "model-q8_0.gguf.part"
    part.write_bytes(CONTENT + b"and more")
    provenance.record(part, url(), hub.etag)
    assert download.fetch(url(), tmp_path).path.read_bytes() == CONTENT


def test_what_is_refused_does_not_take_the_name(hub: Hub, tmp_path: Path) -> None:
    path = download.fetch(url(), tmp_path).path
    hub.content, hub.stated = CONTENT[:1_000_000], None

    def check(part: Path) -> None:
        raise ModelError(f"{part.name} is not whole")

    with pytest.raises(ModelError, match="part is not whole"):
        download.fetch(url(), tmp_path, check=check)
    assert path.read_bytes() == CONTENT
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_here_already_is_not_fetched_again(hub: Hub, tmp_path: Path) -> None:
    first = download.fetch(url(), tmp_path)
    assert download.fetch(url(), tmp_path) == first
    assert len(hub.ranges) == 1
    first.path.write_bytes(b"GGUF and something else")
    assert download.fetch(url(), tmp_path) == first
    assert first.path.read_bytes() == CONTENT


def test_where_nobody_states_a_checksum_the_servers_tag_tells(hub: Hub, tmp_path: Path) -> None:
    hub.stated = None
    address = f"{hub.address}/plain/model-q8_0.gguf"
    first = download.fetch(address, tmp_path)
    assert not first.is_verified
    assert download.fetch(address, tmp_path) == first
    assert hub.n_sent == 1
    first.path.write_bytes(b"GGUF and something else")  # not what came from there
    assert download.fetch(address, tmp_path).path.read_bytes() == CONTENT
    hub.etag, hub.content = '"two"', CONTENT[:1_000_000]
    assert download.fetch(address, tmp_path).path.read_bytes() == CONTENT[:1_000_000]
    assert hub.n_sent == 3
    provenance.delete(first.path)
    assert list(tmp_path.iterdir()) == []


def test_two_at_once_do_not_mix_their_bytes(hub: Hub, tmp_path: Path) -> None:
    refused: list[str] = []

    def on_progress(_done: int, _total: int) -> None:
        if not refused:
            with pytest.raises(InputError, match="another process") as error:
                download.fetch(url(), tmp_path)
            refused.append(str(error.value))

    assert download.fetch(url(), tmp_path, on_progress=on_progress).path.read_bytes() == CONTENT
    assert refused


def test_headers_and_letters_of_any_kind(hub: Hub, tmp_path: Path) -> None:
    hub.length = "many"
    path = download.fetch(f"{hub.address}/data/modèle.gguf", tmp_path).path
    assert path.name == "modèle.gguf"
    assert path.read_bytes() == CONTENT


def test_nothing_is_said_to_be_kept_that_is_not(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        download.fetch(f"{hub.address}/data/missing.gguf", tmp_path)
    assert "kept" not in error.value.hint
    hub.cut, hub.etag = 3_000_000, ""
    with pytest.raises(ModelError, match="the connection ended") as error:
        download.fetch(url(), tmp_path)
    assert "kept" not in error.value.hint


def test_a_part_that_is_whole_already(hub: Hub, tmp_path: Path) -> None:
    path = download.fetch(url(), tmp_path).path
    part = path.rename(tmp_path / f"{path.name}.part")
    provenance.record(part, url(), hub.etag)
    assert download.fetch(url(), tmp_path).path.read_bytes() == CONTENT
    assert hub.ranges == [None, f"bytes={len(CONTENT)}-"]


def test_a_wrong_checksum_is_not_kept(hub: Hub, tmp_path: Path) -> None:
    for stated, given in ((SHA256, "0" * 64), ("1" * 64, None)):
        hub.stated = stated
        with pytest.raises(ModelError, match=r"its SHA-256 is .*, not"):
            download.fetch(url(), tmp_path, given)
        assert list(tmp_path.iterdir()) == []
    assert download.fetch(url(), tmp_path, SHA256.upper()).is_verified


def test_what_is_no_model_is_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.content, hub.stated = b"<html>sign in first</html>", None
    with pytest.raises(ModelError, match="no GGUF file"):
        download.fetch(url(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_servers_that_refuse(hub: Hub, tmp_path: Path) -> None:
    hub.has_head = False
    assert not download.fetch(url(), tmp_path).is_verified
    with pytest.raises(ModelError, match="Not Found"):
        download.fetch(f"{hub.address}/data/missing.gguf", tmp_path)
    hub.shutdown()
    hub.server_close()
    with pytest.raises(ModelError, match="download failed"):
        download.fetch(url(), tmp_path)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "codespec models add FILE"),
        (404, "Check the address."),
        (429, "Try again later."),
        (503, "Try again later."),
    ],
)
def test_what_to_do_where_a_server_refuses(
    hub: Hub, tmp_path: Path, status: int, words: str
) -> None:
    hub.refuses = status, "\x1b[2Jno"
    with pytest.raises(ModelError, match=rf"\({status} \[2Jno\)") as error:
        download.fetch(url(), tmp_path)
    assert words in error.value.hint


def test_a_proxy_is_named_where_one_is_asked(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://user:secret@127.0.0.1:9")
    with pytest.raises(ModelError, match="download failed") as error:
        download.fetch(url(), tmp_path)
    assert "the proxy that http_proxy names" in error.value.hint
    assert "secret" not in str(error.value)


def test_a_certificate_that_nobody_here_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def urlopen(*_: object, **__: object) -> None:
        raise URLError(ssl.SSLCertVerificationError(1, "self-signed certificate"))

    monkeypatch.setattr(download, "_announced", urlopen)
    with pytest.raises(ModelError, match="self-signed certificate") as error:
        download.fetch("https://127.0.0.1/m.gguf", tmp_path)
    assert "SSL_CERT_FILE" in error.value.hint


def test_a_server_leads_to_no_other_kind_of_address(hub: Hub, tmp_path: Path) -> None:
    for scheme in ("ftp", "file"):
        hub.leads_to = f"{scheme}://127.0.0.1/model-q8_0.gguf"
        with pytest.raises(ModelError, match=scheme):
            download.fetch(url(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_encrypted_connection_leads_to_no_plain_one(hub: Hub, tmp_path: Path) -> None:
    def leads(start: str, to: str) -> Request | None:
        headers = Message()
        return download._Redirects().redirect_request(
            Request(start), None, 302, "Found", headers, to
        )

    plain, encrypted = "http://a/m.gguf", "https://a/m.gguf"
    with pytest.raises(ValueError, match="from https to http"):
        leads(encrypted, plain)
    for start, to in ((plain, plain), (plain, encrypted), (encrypted, encrypted)):
        followed = leads(start, to)
        assert followed is not None
        assert followed.full_url == to


def test_permissions_in_addresses_are_not_written_down(hub: Hub, tmp_path: Path) -> None:
    hub.cut, hub.stated = 3_000_000, None
    secret = f"{url()}?token=s3cret"
    with pytest.raises(ModelError, match="the same command goes on"):
        download.fetch(secret, tmp_path)
    assert provenance.source_of(tmp_path / "model-q8_0.gguf.part") == (url(), False)
    hub.cut = None
    with pytest.raises(KeyboardInterrupt):
        download.fetch(f"{url()}?token=another", tmp_path, on_progress=interrupt)
    assert hub.ranges == [None, None], "another address may be of another file"
    assert download.fetch(f"{url()}?token=another", tmp_path).path.read_bytes() == CONTENT
    written = b"".join(file.read_bytes() for file in tmp_path.glob("*.json"))
    assert b"model-q8_0.gguf" in written
    assert b"token" not in written
    assert (
        provenance.public_url("https://user:pass@host:8/a/m.gguf?x=1#y")
        == "https://host:8/a/m.gguf"
    )
    assert provenance.public_url("http://[::1/m.gguf") == ""


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/model.gguf",
        "ftp://host/model.gguf",
        "http:///model.gguf",
        "http://host/model.bin",
        "http://host/..%2f..%2f.gguf",
        "http://host/.gguf",
        "http://host/a%00b.gguf",
        "http://[::1/model.gguf",
    ],
)
def test_addresses_that_are_not_followed(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the address of"):
        download.fetch(address, tmp_path)


def test_a_name_never_leaves_the_folder() -> None:
    assert download.file_name("http://host/..%2f..%2fmodel.gguf") == "model.gguf"


def test_a_full_disk_is_noticed_first(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1_000

    monkeypatch.setattr(download.shutil, "disk_usage", lambda _path: Usage)
    with pytest.raises(InputError, match="Make room"):
        download.fetch(url(), tmp_path)


def test_a_disk_that_becomes_full_on_the_way(hub: Hub, tmp_path: Path) -> None:
    def write(_done: int, _total: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    hub.length = None
    with pytest.raises(InputError, match="is full") as error:
        download.fetch(url(), tmp_path, on_progress=write)
    assert error.value.hint.startswith("Make room")
    assert "goes on" in error.value.hint


def test_a_file_that_cannot_be_written_is_no_fault_of_the_network(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "model-q8_0.gguf.part").mkdir()
    with pytest.raises(OSError, match=r"\.part"):
        download.fetch(url(), tmp_path)


def test_a_checksum_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="64 digits"):
        download.fetch("http://127.0.0.1/m.gguf", tmp_path, "abc")
