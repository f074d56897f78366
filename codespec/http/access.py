"""Access to the HTTP front: keys, hosts, and the workspaces that a request may name."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import os
import re
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codespec.errors import ConfigError
from codespec.http.body_document import BodyDocument
from codespec.limits import PATH_CHARS

_MIN_KEY_CHARS = 16
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,32}")


class Refused(Exception):
    """A request that is answered with an error. status: HTTP status. field: the body's field that
    is the reason, "" for none. headers: further headers of the answer."""

    def __init__(self, status: int, message: str, field: str = "", **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.headers = status, message, field, headers


class KeyRefused(Refused):
    """A request without a key that fits. was_shown: one was shown, which is for the log alone."""

    def __init__(self, was_shown: bool) -> None:
        why = "a key is needed: Authorization: Bearer KEY"
        super().__init__(401, why, WWW_Authenticate="Bearer")
        self.was_shown = was_shown


@dataclass(frozen=True, slots=True)
class Access:
    """Rules of access of one HTTP front.

    keys: a request must show one of them. Without keys, programs of this machine are let in, but no
        web page, whose scripts run on this machine, too.
    workspaces: the folders, links resolved, that requests may name; the first one is the default.
        Workspaces lend text to prompts, so a client that may name one may read it. The sender's
        address would not tell: other users of the machine and tunnels come from loopback, too.
    names: of the keys, for metrics and the access log; by default their numbers.

    Raises: ConfigError for a workspace that no request could name.
    """

    keys: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for workspace in self.workspaces:
            try:
                workspace.encode()
            except UnicodeEncodeError:
                why = f"the workspace's name is not UTF-8: {workspace!r}"
                raise ConfigError(why, "Rename the folder.") from None

    def check(self, headers: dict[bytes, bytes], *, is_public: bool) -> str | None:
        """The key of a client that may ask for anything, "" without keys. None for a client that
        may ask for public paths only. Raises: Refused for all else."""
        if self.keys:
            shown = _shown(headers)
            # All are compared, each in constant time: how long it takes tells nothing of a key.
            fitting = [
                key for key in self.keys for one in shown if hmac.compare_digest(one, key.encode())
            ]
            if fitting:
                return fitting[0]
            if not is_public:
                raise KeyRefused(was_shown=bool(shown))
            return None
        # HTTP/1.0 knows no Host, and no browser sends that.
        said = headers.get(b"host", b"localhost").decode("latin-1")
        host = re.fullmatch(r"\[?([^\]]*?)\]?(?::\d*)?", said)
        # A name that leads here but is not ours: DNS rebinding.
        if host is None or not is_loopback(host[1]):
            raise Refused(403, "the host must be localhost; others need a server with --key-file")
        # An origin: a page's script. What a page shows (an image, a script of another place, a
        # frame) comes without one, and browsers say so: "none" is who typed the address.
        # https://www.w3.org/TR/fetch-metadata/
        if b"origin" in headers or headers.get(b"sec-fetch-site", b"none") != b"none":
            raise Refused(403, "web pages are not answered")
        return ""

    def name_of(self, key: str) -> str:
        """The name of a key that was checked, "" for that of a server without keys."""
        if key not in self.keys:
            return ""
        n = self.keys.index(key)
        return self.names[n] if self.names else f"key-{n + 1}"

    def number_of(self, workspace: str) -> str:
        """Number of a workspace in the order of the options, from 1 on, which tells nothing of it;
        "" for none."""
        return str(self.workspaces.index(workspace) + 1) if workspace in self.workspaces else ""

    @property
    def by_name(self) -> dict[str, str]:
        """The workspaces by the names of their folders, for clients on machines where they are
        elsewhere; those of one name are left out."""
        names = Counter(map(os.path.basename, self.workspaces))
        found = {os.path.basename(workspace): workspace for workspace in self.workspaces}
        return {name: folder for name, folder in found.items() if name and names[name] == 1}

    def place(self, document: BodyDocument) -> tuple[str, str]:
        """(workspace, path) of a request's document. No folder outside the workspaces is looked at
        on the way. Raises: Refused."""
        if document.workspace is None:
            workspace = self.workspaces[0] if self.workspaces else ""
        else:
            named = self.by_name.get(document.workspace, document.workspace)
            workspace = named and os.path.normpath(named)
            if workspace and workspace not in self.workspaces:
                raise Refused(403, "the server was not started with this --workspace", "workspace")
        if not document.path:
            return workspace, ""
        if not workspace:
            raise Refused(403, "a path needs a workspace (--workspace)", "path")
        path = os.path.normpath(os.path.join(workspace, document.path))
        if len(path) > PATH_CHARS:
            why = f"the path has more than {PATH_CHARS} characters with its workspace: shorten it"
            raise Refused(400, why, "path")
        inside = os.path.join(workspace, "")
        if "\0" in path or not (
            path.startswith(inside) and os.path.realpath(path).startswith(inside)
        ):
            raise Refused(403, "the path leads out of the workspace", "path")
        return workspace, path

    def hinted(self, document: BodyDocument) -> tuple[str, str]:
        """`place`, without a path that is none of a file there. Raises: Refused."""
        with suppress(Refused):
            workspace, path = self.place(document)
            if os.path.isfile(path):
                return workspace, path
        return self.place(BodyDocument(workspace=document.workspace))


def _shown(headers: dict[bytes, bytes]) -> list[bytes]:
    """The keys that a client shows, in either of the usual ways."""
    scheme, _, bearer = headers.get(b"authorization", b"").strip().partition(b" ")
    shown = [bearer] if scheme.lower() == b"bearer" else []
    shown.append(headers.get(b"x-api-key", b""))
    return [key.strip() for key in shown if key.strip()]


def is_loopback(host: str) -> bool:
    """True for a literal loopback address or "localhost"."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def read_named_keys(file: Path) -> dict[str, str]:
    """Keys from a file, one a line, and their names; # begins a comment, in a line of its own or
    after a key and a space. A key's comment is its name where it is one word of letters, digits and
    "._@-", 32 at most; else its number in the file is, from key-1 on. Raises: ConfigError."""
    hint = "Make one: openssl rand -hex 32"
    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "no text in UTF-8"
        raise ConfigError(f"cannot read the keys in {file}: {why}", hint) from None
    said = [re.split(r"(?:^|\s)#", line, maxsplit=1) for line in lines]
    rows = [(n, key.strip(), *comment) for n, (key, *comment) in enumerate(said, 1) if key.strip()]
    for n, key, *_ in rows:
        if not key.isascii() or len(key.split()) > 1:
            why = "a key has ASCII characters only, and no spaces"
            raise ConfigError(f"{file}, line {n}: {why}", hint)
    keys = dict[str, str]()
    for _, key, *comment in rows:
        name = "".join(comment).strip()
        keys.setdefault(key, name if _NAME.fullmatch(name) else f"key-{len(keys) + 1}")
    if not keys or min(map(len, keys)) < _MIN_KEY_CHARS:
        raise ConfigError(f"{file} needs keys of {_MIN_KEY_CHARS} characters or more", hint)
    return keys


def listen(host: str, port: int, access: Access) -> socket.socket:
    """A listening socket. port: 0 chooses a free one.

    Raises: ConfigError for an address that is not there, or that needs a key.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not access.keys and not is_loopback(str(address[0])):
            raise ConfigError(
                f"{host} can be reached from other machines, so a key is needed",
                "Make one: openssl rand -hex 32 > codespec.key; then: --key-file codespec.key",
            )
        listener = socket.create_server(address[:2], family=family)
        # asyncio sends at once (TCP_NODELAY) only where a socket says that it is TCP; otherwise an
        # answer's body waits for the acknowledgement of its head, 40 ms.
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, listener.detach())
    except UnicodeError:  # parts that are empty or too long
        raise ConfigError(
            f"{host}: no host has such a name", "Choose another: --host HOST"
        ) from None
    except OSError as e:
        # asyncio and socket add the address to the message, which is named below already.
        why = os.strerror(e.errno) if e.errno and e.errno > 0 else e.strerror
        is_host = isinstance(e, socket.gaierror) or e.errno == errno.EADDRNOTAVAIL
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {why}",
            f"Choose another: --{'host HOST' if is_host else 'port N'}",
        ) from None
