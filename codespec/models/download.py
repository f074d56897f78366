"""Fetching a model file: resumed where it stopped, checked before it counts.

Only ever called because somebody named the file. The standard library's client is enough: one
request, one stream.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from codespec import __version__
from codespec.errors import InputError, ModelError

HUB = "https://huggingface.co"
_CHUNK = 1 << 20
_TIMEOUT_S = 30.0
_SHA256 = re.compile(r"[0-9a-f]{64}")

OnProgress = Callable[[int, int], None]
"""(bytes so far, bytes in all or 0 where the server does not say)."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """sha256 of the file; is_verified: somebody had named it before the download."""

    path: Path
    n_bytes: int
    sha256: str
    is_verified: bool


class _Part(msgspec.Struct, frozen=True):
    """What the bytes of an unfinished download belong to."""

    url: str
    etag: str


def hub_url(repo: str, file: str) -> str:
    """Where a model hub serves a file. HF_ENDPOINT names another hub than the usual one."""
    hub = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    return f"{hub}/{quote(repo)}/resolve/main/{quote(file)}"


def file_name(url: str) -> str:
    """The name a URL's file gets here.

    Raises: InputError unless it is the http(s) address of a .gguf file.
    """
    parts = urlsplit(url)
    name = unquote(parts.path).rsplit("/", 1)[-1]
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"{url}: not the address of a file", "Give an http or https address.")
    if not re.fullmatch(r"[\w.+-]{1,120}\.gguf", name) or name.startswith("."):
        raise InputError(f"{url}: not the address of a .gguf file", "codespec runs GGUF models.")
    return name


def fetch(
    url: str,
    folder: Path,
    sha256: str | None = None,
    on_progress: OnProgress = lambda _done, _total: None,
) -> Fetched:
    """Downloads into folder under the URL's own name. Interrupted, the next call goes on.

    sha256: what the file must have; None: what the server says of it, where it does.

    Raises: InputError for a bad address or a full disk; ModelError when the download fails or is
    not what it should be.
    """
    path = folder / file_name(url)
    stated = None if sha256 is None else _stated(sha256)
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    about = path.with_name(path.name + ".part.json")
    try:
        expected = stated or _announced(url)
        total = _stream(url, part, about, on_progress)
    except (urllib.error.URLError, HTTPException, OSError) as e:
        raise ModelError(
            f"{url}: the download failed ({getattr(e, 'reason', None) or e})",
            "See to the address and the network. What arrived is kept: the same command goes on.",
        ) from None
    n_bytes = part.stat().st_size
    if total and n_bytes < total:
        raise ModelError(
            f"{url}: the connection ended after {n_bytes:,} of {total:,} bytes",
            "What arrived is kept: the same command goes on.",
        )
    digest = _digest(part)
    with part.open("rb") as f:
        is_gguf = f.read(4) == b"GGUF"
    problem = ""
    if expected and digest != expected:
        problem = f"its SHA-256 is {digest}, not {expected}"
    elif not is_gguf:
        problem = "it is no GGUF file"
    about.unlink(missing_ok=True)
    if problem:
        part.unlink()
        raise ModelError(f"{url}: {problem}", "It was deleted. Check the address, or try again.")
    os.replace(part, path)
    return Fetched(path, n_bytes, digest, expected is not None)


def check_file(path: Path, sha256: str) -> str:
    """The SHA-256 of a file that is here already, which must be the one given.

    Raises: InputError for what is none; ModelError where the file has another one.
    """
    expected, digest = _stated(sha256), _digest(path)
    if digest != expected:
        raise ModelError(
            f"{path}: its SHA-256 is {digest}, not {expected}",
            "It was not added. Get the file again, or the right sum.",
        )
    return digest


def _stated(sha256: str) -> str:
    if not _SHA256.fullmatch(sha256.lower()):
        raise InputError(f"{sha256}: not a SHA-256 in hexadecimal", "It has 64 digits.")
    return sha256.lower()


def _stream(url: str, part: Path, about: Path, on_progress: OnProgress) -> int:
    """Appends to part what is missing; the whole size, 0 where the server does not say."""
    have = _resumable(part, about, url)
    request = _request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", msgspec.json.decode(about.read_bytes(), type=_Part).etag)
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as e:
        if e.code == 416:  # nothing is missing
            return have
        raise
    with response:
        if response.status != 206:
            have = 0  # the whole file, from a server that does not resume or has another file now
        n_more = int(response.headers.get("Content-Length") or 0)
        total = have + n_more if n_more else 0
        free = shutil.disk_usage(part.parent).free
        if n_more > free:
            raise InputError(
                f"{url}: {n_more / 1e9:.1f} GB are missing, {free / 1e9:.1f} GB of disk are free",
                "Make room, or choose a smaller model.",
            )
        etag = response.headers.get("ETag") or ""
        about.write_bytes(msgspec.json.encode(_Part(url, etag)))
        with part.open("ab" if have else "wb") as f:
            while chunk := response.read(_CHUNK):
                f.write(chunk)
                have += len(chunk)
                on_progress(have, total)
    return total


def _resumable(part: Path, about: Path, url: str) -> int:
    """How many bytes of this very content there are; 0 without a tag to prove it by."""
    try:
        known = msgspec.json.decode(about.read_bytes(), type=_Part)
        size = part.stat().st_size
    except (OSError, msgspec.DecodeError):
        return 0
    is_same = known.url == url and known.etag and not known.etag.startswith("W/")
    return size if is_same else 0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _announced(url: str) -> str | None:
    """The SHA-256 that a model hub states in the headers of its answer, before it redirects to
    where the bytes lie.
    """
    opener = urllib.request.build_opener(_NoRedirect())
    headers: Message
    try:
        with opener.open(_request(url, "HEAD"), timeout=_TIMEOUT_S) as response:
            headers = response.headers
    except urllib.error.HTTPError as e:
        if e.code not in (301, 302, 303, 307, 308):
            return None  # a server without HEAD; the download itself will tell
        headers = e.headers
    tag = (headers.get("X-Linked-Etag") or "").strip('"').lower()
    return tag if _SHA256.fullmatch(tag) else None


def _request(url: str, method: str = "GET") -> urllib.request.Request:
    agent = {"User-Agent": f"codespec/{__version__}", "Accept-Encoding": "identity"}
    return urllib.request.Request(url, headers=agent, method=method)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as f:
        while chunk := f.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
