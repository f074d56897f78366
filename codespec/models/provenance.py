"""What downloaded bytes are. Beside a file, whole or in part, stands where it came from and the tag
(ETag) that the server has for it: who has a tag that still holds need not fetch the bytes again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from codespec.folders import private_opener

_CHUNK = 1 << 20


class _Known(msgspec.Struct, frozen=True):
    """url: as others may see it; address: a digest of the whole one. sha256: of a whole file, "" of
    a part."""

    url: str
    etag: str
    sha256: str = ""
    address: str = ""


def public(url: str) -> str:
    """An address without what may be a permission, or a password: what is written down. "" for what
    is none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets of an address that is none
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def note(file: Path, url: str, etag: str, sha256: str = "") -> None:
    """Raises: OSError."""
    known = _Known(public(url), etag, sha256, _address(url))
    with open(_about(file), "wb", opener=private_opener) as about:
        about.write(msgspec.json.encode(known))


def forget(file: Path) -> None:
    _about(file).unlink(missing_ok=True)


def delete(file: Path) -> None:
    """The file, and what is known of it."""
    file.unlink(missing_ok=True)
    forget(file)


def source_of(part: Path) -> tuple[str, bool]:
    """(where a `.part` was, or is being, downloaded from, as `public` has it, whether that is the
    whole address); "" where nobody knows."""
    known = _proven(part)
    return (known.url, known.address == _address(known.url)) if known else ("", False)


def etag_of(part: Path) -> str:
    """The tag that proves which bytes a part is of; "" without one."""
    known = _proven(part)
    return known.etag if known else ""


def n_resumable(part: Path, url: str) -> int:
    """How many bytes of this very content there are; 0 without a tag to prove it by."""
    known = _proven(part)
    is_it = part.is_file() and known is not None and known.address == _address(url)
    return part.stat().st_size if is_it else 0


def unchanged(file: Path, url: str) -> tuple[str, str]:
    """(tag, SHA-256) of a whole file that is as it came from this address; "" for another one."""
    known = _known(file)
    if known is None or known.address != _address(url) or not (known.etag and known.sha256):
        return "", ""
    is_it = file.is_file() and digest(file) == known.sha256
    return (known.etag, known.sha256) if is_it else ("", "")


def digest(file: Path) -> str:
    """SHA-256 in hexadecimal."""
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
    """None without a tag, or with a weak one: that says that two contents mean the same, not that
    their bytes are the same."""
    known = _known(part)
    return known if known and known.etag and not known.etag.startswith("W/") else None


def _about(file: Path) -> Path:
    return file.with_name(f"{file.name}.json")
