"""Origin of downloaded bytes. Beside a file, whole or in part, stands a record of where it came
from and the server's tag (ETag) for it: while the tag still holds, the bytes need not be fetched
again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from codespec.system.folders import private_opener

_CHUNK = 1 << 20


class _Known(msgspec.Struct, frozen=True):
    """Record of a file. url: without secret parts; address: a digest of the whole url. sha256: of a
    whole file, "" of a part."""

    url: str
    etag: str
    sha256: str = ""
    address: str = ""


def public_url(url: str) -> str:
    """An address without parts that may be a permission or a password, so that it may be written
    down. "" for a text that is no address."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets of an address that is none
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def record(file: Path, url: str, etag: str, sha256: str = "") -> None:
    """Write the record of a file. Raises: OSError."""
    known = _Known(public_url(url), etag, sha256, _address(url))
    with open(_about(file), "wb", opener=private_opener) as about:
        about.write(msgspec.json.encode(known))


def forget(file: Path) -> None:
    _about(file).unlink(missing_ok=True)


def delete(file: Path) -> None:
    """Delete a file and its record."""
    file.unlink(missing_ok=True)
    forget(file)


def source_of(part: Path) -> tuple[str, bool]:
    """(address that a `.part` is downloaded from, as `public` has it; True if that is the whole
    address). The address is "" if it is unknown."""
    known = _proven(part)
    return (known.url, known.address == _address(known.url)) if known else ("", False)


def etag_of(part: Path) -> str:
    """The tag that proves which content a part belongs to; "" without one."""
    known = _proven(part)
    return known.etag if known else ""


def n_resumable(part: Path, url: str) -> int:
    """Number of bytes here of this very content; 0 without a tag to prove it by."""
    known = _proven(part)
    is_it = part.is_file() and known is not None and known.address == _address(url)
    return part.stat().st_size if is_it else 0


def unchanged(file: Path, url: str) -> tuple[str, str]:
    """(tag, SHA-256) of a whole file that is still as it came from this address; "" for another
    one."""
    known = _known(file)
    if known is None or known.address != _address(url) or not (known.etag and known.sha256):
        return "", ""
    is_it = file.is_file() and digest(file) == known.sha256
    return (known.etag, known.sha256) if is_it else ("", "")


def digest(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    found = hashlib.sha256()
    with file.open("rb") as f:
        while chunk := f.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _address(url: str) -> str:
    return hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()


def _known(file: Path) -> _Known | None:
    try:
        return msgspec.json.decode(_about(file).read_bytes(), type=_Known)
    except (OSError, msgspec.DecodeError):
        return None


def _proven(part: Path) -> _Known | None:
    """The record of a part; None without a tag, or with a weak one: that says that two contents
    mean the same, not that their bytes are the same."""
    known = _known(part)
    return known if known and known.etag and not known.etag.startswith("W/") else None


def _about(file: Path) -> Path:
    return file.with_name(f"{file.name}.json")
