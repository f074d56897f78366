"""Download of a model file: resumed where it stopped, checked before it counts.

Only ever called because somebody named the file. The standard library's client is enough: one
request, one stream.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import filelock

from codespec import __version__
from codespec.errors import InputError, ModelError, without_controls
from codespec.models.provenance import (
    delete,
    digest,
    etag_of,
    forget,
    n_resumable,
    record,
    unchanged,
)
from codespec.models.split import parts
from codespec.system.folders import private_folder, private_opener, runtime_dir

HUB = "https://huggingface.co"
_CHUNK = 1 << 20
_TIMEOUT_S = 30.0
_MAKE_ROOM = "Make room, or choose a smaller model."
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")

OnProgress = Callable[[int, int], None]
"""Called with (bytes so far, bytes in all or 0 if the server does not say)."""
Check = Callable[[Path], None]
"""Raises ModelError for a file that is not to be kept."""


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """A downloaded file. sha256: of its content. is_verified: True if the sum was known before the
    download."""

    path: Path
    n_bytes: int
    sha256: str
    is_verified: bool


class _UnchangedError(Exception):
    """The server still has the content that is here."""


def hub_url(repo: str, file: str) -> str:
    """Address of a file on a model hub. HF_ENDPOINT names another hub than the usual one."""
    hub = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    return f"{hub}/{quote(repo)}/resolve/main/{quote(file)}"


def file_name(url: str) -> str:
    """Name that the file at an address gets here.

    Raises: InputError unless it is the http(s) address of a .gguf file.
    """
    try:
        address = urlsplit(url)
    except ValueError:  # brackets of an address that is none
        address = urlsplit("")
    name = unquote(address.path).rsplit("/", 1)[-1]
    if address.scheme not in ("http", "https") or not address.netloc:
        raise InputError(f"{url}: not the address of a file", "Give an http or https address.")
    if not re.fullmatch(r"[\w.+-]{1,120}\.gguf", name) or name.startswith("."):
        raise InputError(f"{url}: not the address of a .gguf file", "codespec runs GGUF models.")
    return name


def urls_of_parts(url: str) -> list[str]:
    """Addresses of all files of the model that the file at `url` belongs to, first the one to load.

    Raises: InputError as `file_name`.
    """
    file_name(url)
    address = urlsplit(url)
    paths = parts(address.path)
    return [url] if len(paths) == 1 else [urlunsplit(address._replace(path=p)) for p in paths]


def fetch(
    url: str,
    folder: Path,
    sha256: str | None = None,
    on_progress: OnProgress = lambda _done, _total: None,
    check: Check = lambda _: None,
) -> DownloadedFile:
    """Download into a folder. A file gets its name when it is whole and passes `check`; until then
    an older file of that name stays. The next call resumes an interrupted one.

    sha256: the file's required sum; None: the one that the server states, if it does. A file that
        is here with that sum is not fetched again, nor, without any sum, one whose tag (ETag) the
        server still has.

    Raises: InputError for a bad address, a full disk, or if another process downloads it;
    ModelError if the download fails or has another content than it should.
    """
    path = folder / file_name(url)
    stated = None if sha256 is None else _stated(sha256)
    private_folder(folder)
    try:
        with _lock(path), _unfinished(path) as part:
            return _fetch(url, path, part, stated, on_progress, check)
    except filelock.Timeout:
        raise InputError(
            f"{path.name} is being downloaded by another process", "Wait for it, or end it."
        ) from None


def _lock(path: Path) -> filelock.FileLock:
    """Lock of a download to this path: two processes that append to one part would mix their
    bytes."""
    name = hashlib.blake2b(os.fsencode(path.absolute()), digest_size=8).hexdigest()
    return filelock.FileLock(runtime_dir() / f"download-{name}.lock", timeout=0, mode=0o600)


@contextmanager
def _unfinished(path: Path) -> Generator[Path]:
    """Path of the partial file. At the end it stays only if the next call can resume it."""
    part = path.with_name(path.name + ".part")
    try:
        yield part
    finally:
        if not etag_of(part):
            delete(part)


def _fetch(
    url: str,
    path: Path,
    part: Path,
    stated: str | None,
    on_progress: OnProgress,
    check: Check,
) -> DownloadedFile:
    try:
        expected = stated or _announced(url)
        if expected and path.is_file() and digest(path) == expected:
            return DownloadedFile(path, path.stat().st_size, expected, is_verified=True)
        etag, digest_here = ("", "") if expected else unchanged(path, url)
        try:
            total = _stream(url, part, on_progress, etag)
        except _UnchangedError:
            return DownloadedFile(path, path.stat().st_size, digest_here, is_verified=False)
    # ValueError: of addresses that a server redirects to.
    except (HTTPException, OSError, ValueError) as e:
        if isinstance(e, OSError) and e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"{url}: the disk with {path.parent} is full",
                f"{_MAKE_ROOM} {_what_is_kept(part, url)}".rstrip(),
            ) from None
        if isinstance(e, OSError) and e.filename and not isinstance(e, urllib.error.URLError):
            raise  # not the network: a file or folder here
        why, next_step = _explained(e, url)
        raise ModelError(
            f"{url}: the download failed ({why})",
            f"{next_step} {_what_is_kept(part, url)}".rstrip(),
        ) from None
    n_bytes = part.stat().st_size
    if total and n_bytes < total:
        raise ModelError(
            f"{url}: the connection ended after {n_bytes:,} of {total:,} bytes",
            _what_is_kept(part, url) or "The server cannot resume it: try again.",
        )
    arrived = digest(part)
    with part.open("rb") as f:
        is_gguf = f.read(4) == b"GGUF"
    problem = ""
    if total and n_bytes != total:
        problem = f"it has {n_bytes:,} bytes, not {total:,}"
    elif expected and arrived != expected:
        problem = f"its SHA-256 is {arrived}, not {expected}"
    elif not is_gguf:
        problem = "it is no GGUF file"
    else:
        try:
            check(part)
        except ModelError as e:
            problem = e.message
    if problem:
        forget(part)
        raise ModelError(f"{url}: {problem}", "It was deleted. Check the address, or try again.")
    etag = etag_of(part)
    os.replace(part, path)
    forget(part)
    forget(path)
    if etag and not expected:
        with suppress(OSError):  # then it is fetched anew
            record(path, url, etag, arrived)
    return DownloadedFile(path, n_bytes, arrived, expected is not None)


def _explained(e: Exception, url: str) -> tuple[str, str]:
    """(reason of the failure, next step), for people."""
    why = without_controls(str(getattr(e, "reason", None) or e))
    scheme = urlsplit(url).scheme
    if isinstance(e, urllib.error.HTTPError):
        e.close()
        why = f"{e.code} {why}"
        if e.code in (401, 403):
            by_hand = "download the file yourself, and then: codespec models add FILE"
            return why, f"Not everybody is let in there: {by_hand}"
        if e.code == 429 or e.code >= 500:
            return why, "Try again later."
        return why, "Check the address."
    if isinstance(getattr(e, "reason", None), ssl.SSLCertVerificationError):
        own = "SSL_CERT_FILE names a file of certificates to trust, your company's own, for example"
        return why, f"Check the address; {own}."
    if scheme in urllib.request.getproxies():
        return why, f"Check the address, the network, and the proxy that {scheme}_proxy names."
    return why, "Check the address and the network."


def _what_is_kept(part: Path, url: str) -> str:
    if not n_resumable(part, url):
        return ""
    return "What arrived is kept: the same command goes on."


def check_file(path: Path, sha256: str) -> str:
    """The SHA-256 of a file, which must be the one given.

    Raises: InputError for a sum that is none; ModelError if the file has another one.
    """
    expected, found = _stated(sha256), digest(path)
    if found != expected:
        raise ModelError(
            f"{path}: its SHA-256 is {found}, not {expected}",
            "It was not added. Get the file again, or the right sum.",
        )
    return found


def _stated(sha256: str) -> str:
    if not _SHA256.fullmatch(sha256.lower()):
        raise InputError(f"{sha256}: not a SHA-256 in hexadecimal", "It has 64 digits.")
    return sha256.lower()


def _stream(url: str, part: Path, on_progress: OnProgress, etag_here: str = "") -> int:
    """Append the missing bytes to `part`. Returns: the whole size, 0 if the server does not say.

    Raises: _UnchangedError if the server has the content that this tag, if any, stands for.
    """
    have = n_resumable(part, url)
    request = _request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", etag_of(part))
    elif etag_here:
        request.add_header("If-None-Match", etag_here)
    try:
        response = urllib.request.build_opener(_Redirects()).open(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as e:
        if e.code == 304 and etag_here:
            e.close()
            raise _UnchangedError from None
        if e.code != 416 or not have:
            raise
        e.close()
        if _content_range(e.headers)[1] in (0, have):
            return have  # nothing is missing
        part.unlink()  # the server has another file now, or sends no parts of it
        return _stream(url, part, on_progress)
    with response:
        start, whole = _content_range(response.headers)
        if response.status != 206:
            # The whole file, from a server that does not resume or has another file now. The old
            # part goes first: the new tag must never stand for its bytes.
            have = 0
            part.unlink(missing_ok=True)
        elif start != have:  # other bytes than those that are missing, or nobody says which
            if not have:
                where = "without saying of what" if start is None else f"from byte {start} on"
                raise HTTPException(f"the server sends a part {where}")
            part.unlink()
            return _stream(url, part, on_progress)
        n_more = _number(response.headers.get("Content-Length"))
        total = whole or (have + n_more if n_more else 0)
        free = shutil.disk_usage(part.parent).free
        if n_more > free:
            raise InputError(
                f"{url}: {n_more / 1e9:.1f} GB are missing, {free / 1e9:.1f} GB of disk are free",
                _MAKE_ROOM,
            )
        record(part, url, response.headers.get("ETag") or "")
        with open(part, "ab" if have else "wb", opener=private_opener) as f:
            while chunk := response.read1(_CHUNK):  # what comes, so that a stall loses nothing
                f.write(chunk)
                have += len(chunk)
                on_progress(have, total)
    return total


def _content_range(headers: Message) -> tuple[int | None, int]:
    """(first byte that is sent, size of the whole file), None and 0 if the server does not say."""
    found = _CONTENT_RANGE.fullmatch((headers.get("Content-Range") or "").strip())
    if found is None:
        return None, 0
    return (int(found[1]) if found[1] else None), _number(found[2])


def _number(text: str | None) -> int:
    """The number in a header; 0 for none: servers send anything."""
    return int(text) if text and text.isascii() and text.isdigit() else 0


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https alone, and from https to https alone: on a plain
    connection anybody may read the request and change the answer."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme != "https" and (scheme != "http" or req.type == "https"):
            raise ValueError(f"the server leads from {req.type} to {scheme}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _announced(url: str) -> str | None:
    """The SHA-256 that a model hub states in the headers of its answer, before it redirects to the
    file's server; None without one."""
    opener = urllib.request.build_opener(_NoRedirect())
    headers: Message
    try:
        with opener.open(_request(url, "HEAD"), timeout=_TIMEOUT_S) as response:
            headers = response.headers
    except urllib.error.HTTPError as e:
        e.close()
        if e.code not in (301, 302, 303, 307, 308):
            return None  # a server without HEAD; the download itself will tell
        headers = e.headers
    tag = (headers.get("X-Linked-Etag") or "").strip('"').lower()
    return tag if _SHA256.fullmatch(tag) else None


def _request(url: str, method: str = "GET") -> urllib.request.Request:
    agent = {"User-Agent": f"codespec/{__version__}", "Accept-Encoding": "identity"}
    given = urlsplit(url)
    # Letters beyond ASCII are pasted from browsers, which show them so; "%" is quoted already.
    path, query = (quote(part, safe="/%:@!$&'()*+,;=~?") for part in (given.path, given.query))
    address = urlunsplit((given.scheme, given.netloc, path, query, ""))
    return urllib.request.Request(address, headers=agent, method=method)
