"""Names, folders and keys of a daemon."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest

from codespec.config import Settings, load_settings
from codespec.daemon import address as address_module
from codespec.daemon.address import (
    PortFile,
    address_of,
    check_private,
    new_key,
    read_port_file,
    resolved,
    same_key,
    write_port_file,
)
from codespec.daemon.lock import FileLock, holder, is_free
from codespec.errors import ConfigError, DaemonError


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With room for a socket's name below it, which pytest's own folders need not have."""
    with tempfile.TemporaryDirectory(prefix="codespec-") as name:
        folder = Path(name)
        monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(folder / "run"))
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield folder


def with_options(**sections: dict[str, object]) -> Settings:
    return load_settings(sections, env={}, config_file=Path("/nonexistent/config.toml"))


def test_equal_settings_share_a_daemon() -> None:
    assert address_of(Settings()) == address_of(with_options(model={"n_ctx": 0}))


@pytest.mark.parametrize(
    "sections",
    [
        {"model": {"target": "/models/a.gguf"}},
        {"model": {"n_ctx": 512}},
        {"drafting": {"drafters": ["lookup"]}},
        {"completion": {"n_prefix_tokens": 100}},
        {"context": {"buffers": "on"}},
        {"index": {"exclude": ["gen/"]}},
    ],
)
def test_another_engine_is_another_daemon(sections: dict[str, dict[str, object]]) -> None:
    assert address_of(Settings()).socket != address_of(with_options(**sections)).socket


@pytest.mark.parametrize(
    "sections",
    [
        {"daemon": {"idle_minutes": 5, "log_level": "debug"}, "index": {"enabled": False}},
        {"completion": {"max_tokens": 8, "temperature": 0.5, "deadline_auto_ms": 100}},
    ],
)
def test_what_each_request_brings_along_shares_a_daemon(
    sections: dict[str, dict[str, object]],
) -> None:
    assert address_of(Settings()) == address_of(with_options(**sections))


def test_another_version_is_another_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    here = address_of(Settings())
    monkeypatch.setattr(address_module, "__version__", "9.9.9")
    there = address_of(Settings())
    assert here.socket != there.socket
    assert here.lock != there.lock
    assert "9.9.9" in there.socket.name


def test_relative_model_files_mean_the_same_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    relative = with_options(model={"target": "a.gguf"})
    absolute = with_options(model={"target": str(tmp_path / "a.gguf")})
    assert resolved(relative) == absolute
    assert address_of(relative) == address_of(absolute)
    assert resolved(Settings()) == Settings()


def test_the_folder_is_private() -> None:
    folder = address_of(Settings()).socket.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_logs_lie_beside_the_socket_where_the_home_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = address_of(with_options()).log.parent
    monkeypatch.setattr(platformdirs, "user_log_path", lambda _: Path(os.devnull) / "log")
    address = address_of(with_options())
    assert usual != address.log.parent == address.lock.parent


def test_long_paths_fall_back_to_a_short_private_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(address_module.tempfile, "tempdir", None)
    sockets: set[Path] = set()
    for name in ("a" * 120, "b" * 120):
        monkeypatch.setenv("CODESPEC_RUNTIME_DIR", str(folder / name))
        socket = address_of(Settings()).socket
        assert len(os.fsencode(socket)) < 104
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        sockets.add(socket)
    assert len(sockets) == 2


def test_folders_that_others_can_touch_are_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    check_private(shared)
    shared.chmod(0o750)
    with pytest.raises(DaemonError, match="open to other users"):
        check_private(shared)

    inside = tmp_path / "anyone" / "mine"
    inside.mkdir(parents=True, mode=0o700)
    inside.parent.chmod(0o777)
    with pytest.raises(DaemonError, match="anyone can rename"):
        check_private(inside)
    inside.parent.chmod(0o1777)
    check_private(inside)

    link = tmp_path / "link"
    link.symlink_to(inside)
    with pytest.raises(DaemonError, match="link"):
        check_private(link)


def test_folders_of_another_user_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(DaemonError, match="belongs to another user") as caught:
        check_private(folder)
    assert "CODESPEC_RUNTIME_DIR" in caught.value.hint


def test_port_files_are_for_the_user_alone() -> None:
    address = address_of(Settings(), "tcp")
    assert read_port_file(address) is None
    write_port_file(address, PortFile(4711, "key"))
    write_port_file(address, PortFile(4712, "other key"))
    assert stat.S_IMODE(address.port_file.stat().st_mode) == 0o600
    assert read_port_file(address) == PortFile(4712, "other key")
    address.port_file.write_text('{"port": "x"')
    assert read_port_file(address) is None


def test_keys() -> None:
    key = new_key()
    assert len(key) == 64
    assert key != new_key()
    assert same_key(key, key)
    assert not same_key("", key)
    assert not same_key(key[:-1] + "é", key)


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = FileLock(path), FileLock(path)
    assert holder(path) is None
    assert first.acquire()
    first.sign()
    assert not second.acquire()
    assert holder(path) == os.getpid()
    first.release()
    assert second.acquire()
    second.release()


def test_a_full_disk_keeps_no_daemon_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "lock"
    lock = FileLock(path)
    assert lock.acquire()
    monkeypatch.setattr(os, "write", full)
    lock.sign()
    assert not is_free(path)
    assert holder(path) is None
    lock.release()


def test_two_who_look_at_a_lock_do_not_take_each_other_for_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    release = FileLock.release
    seen: list[bool] = []

    def look_before(lock: FileLock) -> None:
        monkeypatch.setattr(FileLock, "release", release)
        seen.append(is_free(path))
        lock.release()

    monkeypatch.setattr(FileLock, "release", look_before)
    seen.append(is_free(path))
    assert seen == [True, True]


@pytest.mark.parametrize(
    "section", [{"model": {"target": "/m\udcff.gguf"}}, {"index": {"exclude": ["\udcff"]}}]
)
def test_names_that_are_not_utf_8_are_refused_in_words(
    section: dict[str, dict[str, object]],
) -> None:
    with pytest.raises(ConfigError, match=r"udcff.*not UTF-8"):
        address_of(with_options(**section))


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode there")
def test_a_model_in_a_folder_that_is_not_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "\udcff"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigError, match="not UTF-8"):
        address_of(with_options(model={"target": "a.gguf"}))
