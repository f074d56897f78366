"""Trust in a server: the key it is shown, the authorities that vouch for it, and whether text may
go to it unencrypted."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from codespec.config import ServerSettings
from codespec.errors import ConfigError

KEY_BYTES = 4096
"""Most bytes of a key's file: another file was named by mistake."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Means to talk to a server. tls: None for one that is asked by plain http. A representation
    of it tells no key."""

    key: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The header with the key; none without one."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


def trust_in(host: str, settings: ServerSettings, *, encrypted: bool, loopback: bool) -> Trust:
    """Trust as the settings have it. encrypted: asked by https. loopback: on this machine.

    Raises: ConfigError for a server beyond this machine by plain http that the settings do not
        allow, and for files that cannot be used; the error never quotes a key.
    """
    if not (encrypted or loopback or settings.allow_unencrypted):
        raise ConfigError(
            f"model.target: http://{host}: your text would go through the network unencrypted",
            "Name it by https://; or, in a network where nobody else may listen, set "
            "server.allow_unencrypted = true.",
        )
    key = _key(settings.key_file) if settings.key_file else ""
    return Trust(key, _verifying(settings.ca_file) if encrypted else None)


def _key(path: str) -> str:
    try:
        with Path(path).expanduser().open("rb") as file:
            said = file.read(KEY_BYTES + 1)
    except (OSError, RuntimeError) as e:
        why = e.strerror if isinstance(e, OSError) else "there is no such user"
        raise ConfigError(
            f"server.key_file: {path}: {why}", "Name the file that holds the server's key."
        ) from None
    key = said.decode("latin-1").strip()
    # A line end or a blank would begin another header.
    if not key or len(said) > KEY_BYTES or not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            f"server.key_file: {path}: this is no key",
            "The file holds the key alone, in one line.",
        )
    return key


def _verifying(ca_file: str) -> ssl.SSLContext:
    """A context that verifies certificates and names of hosts. ca_file: see `ServerSettings`."""
    try:
        path = Path(ca_file).expanduser() if ca_file else None
        return ssl.create_default_context(cafile=path)
    except (OSError, RuntimeError) as e:  # ssl.SSLError is an OSError
        why = "these are no certificates" if isinstance(e, ssl.SSLError) else "it cannot be read"
        raise ConfigError(
            f"server.ca_file: {ca_file}: {why}",
            "Name a file of certificates in PEM, which begin with -----BEGIN CERTIFICATE-----.",
        ) from None
