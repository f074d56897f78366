"""Addresses of servers, as `model.target` gives them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from codespec.errors import ModelError

OLLAMA_PORT = 11434
CODESPEC_PORT = 8012

_FORMS = (
    "It is http://host:port, https://host/path#model, ollama:model or codespec://host, without a "
    "user, password, query, or letters beyond ASCII in host and path."
)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Address of a server.

    kind:  kind of the server where the scheme tells, "ollama" or "codespec"; "": to be asked.
    host:  name or IP address, without brackets. path: before the routes' /v1, "" or "/...".
    model: name of the model there; "": the server's first.
    """

    kind: str
    host: str
    port: int
    path: str = ""
    model: str = ""
    is_encrypted: bool = False

    @property
    def is_loopback(self) -> bool:
        """True if the server is on this machine, so that no text leaves it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def authority(self) -> str:
        """Host and port, as in a URL and in the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.is_encrypted else 80
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """URL before the routes."""
        return f"http{'s' if self.is_encrypted else ''}://{self.authority}{self.path}"


def parse(where: str) -> ServerAddress:
    """The address in a `model.target` with a scheme. Raises: ModelError."""
    scheme, _, rest = where.partition(":")
    if scheme == "ollama" and rest and not rest.startswith("/"):
        return ServerAddress("ollama", "127.0.0.1", OLLAMA_PORT, model=rest)
    # A password would be shown with the address, so nothing of it is quoted.
    refused = ModelError(f"model.target: {scheme}: this is no address of a server", _FORMS)
    try:
        parts = urlsplit(where)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")  # UnicodeError, a ValueError, for a name that no server can have
    except ValueError:
        raise refused from None
    odd = parts.username is not None or parts.password is not None or parts.query
    is_ascii = host.isascii() and parts.path.isascii()
    if not host or port == 0 or odd or not is_ascii or not where.isprintable() or " " in where:
        raise refused
    path, model = parts.path.rstrip("/").removesuffix("/v1"), unquote(parts.fragment)
    if scheme == "ollama":
        named = model or unquote(path.strip("/"))
        return ServerAddress("ollama", host, port or OLLAMA_PORT, model=named)
    if scheme == "codespec":
        return ServerAddress("codespec", host, port or CODESPEC_PORT, path, model)
    is_encrypted = scheme == "https"
    return ServerAddress("", host, port or (443 if is_encrypted else 80), path, model, is_encrypted)
