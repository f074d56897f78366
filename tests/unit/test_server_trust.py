"""Trust in a server: keys, authorities, and plain http."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from codespec.backends.remote.trust import Trust, trust_in
from codespec.config import ServerSettings
from codespec.errors import ConfigError

KEY = "sk-0123456789abcdef"


def in_file(path: Path, data: bytes) -> ServerSettings:
    (path / "key").write_bytes(data)
    return ServerSettings(key_file=str(path / "key"))


def trusted(settings: ServerSettings) -> Trust:
    return trust_in("models.example", settings, encrypted=True, loopback=False)


def test_a_key_is_shown_to_the_server_and_to_nobody_else(tmp_path: Path) -> None:
    trust = trusted(in_file(tmp_path, f"{KEY}\n".encode()))
    assert trust.headers == {"Authorization": f"Bearer {KEY}"}
    assert KEY not in f"{trust!r} {trust}"
    assert trusted(ServerSettings()).headers == {}


@pytest.mark.parametrize(
    "data",
    [b"", b" \n", b"key\nX-Other: 1", b"two words", b"key\x00", "schlüssel".encode(), b"k" * 5000],
)
def test_what_is_no_key_is_not_sent(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"server\.key_file: .*this is no key") as error:
        trusted(in_file(tmp_path, data))
    said = data.decode("latin-1").strip()
    assert not said or said not in str(error.value)


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "gone", tmp_path):
        with pytest.raises(ConfigError, match="key_file") as error:
            trusted(ServerSettings(key_file=str(path)))
        assert str(path) in error.value.message
        assert "Errno" not in error.value.message


def test_certificates_and_names_are_verified() -> None:
    tls = trusted(ServerSettings()).tls
    assert tls is not None
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.check_hostname


def test_an_authority_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    for path in (file, tmp_path / "gone.pem"):
        with pytest.raises(ConfigError, match=r"server\.ca_file") as error:
            trusted(ServerSettings(ca_file=str(path)))
        assert str(path) in error.value.message


def test_plain_http_stays_on_this_machine_unless_allowed() -> None:
    near = trust_in("127.0.0.1", ServerSettings(), encrypted=False, loopback=True)
    assert near.tls is None
    with pytest.raises(ConfigError, match="unencrypted") as error:
        trust_in("10.0.0.7", ServerSettings(), encrypted=False, loopback=False)
    assert "server.allow_unencrypted" in error.value.hint
    allowed = ServerSettings(allow_unencrypted=True)
    assert trust_in("10.0.0.7", allowed, encrypted=False, loopback=False).tls is None
