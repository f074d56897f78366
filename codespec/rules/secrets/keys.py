"""Private keys: from their first line to their last, or as far as lines look like a key's."""

from __future__ import annotations

import re
from collections.abc import Iterator

WORDS = ("private key", "putty-user-key", "ls0tls1crudjt")
MAX_CHARS = 1 << 15
"""Most characters of a key; no key is longer."""

_NAMED = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4}"
_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_NAMED}-?", re.IGNORECASE)
_END = re.compile(rf"-{{4,5}} ?END {_NAMED}-?", re.IGNORECASE)
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d:[^\n]{0,80}", re.IGNORECASE)
# Between the lines of a key there may be what joins texts, of a language or in JSON. One that is
# drafted, or made up, has short lines.
_JOINT = r"(?:\\[nrt]|[\s'\"`+,.;#*/|>\\()-])"
_BODY = re.compile(rf"(?:{_JOINT}{{0,40}}(?:[\w-]+: [^\n]{{0,80}}|[A-Za-z0-9+/]{{16,}}={{0,2}}))*")
_IN_BASE64 = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/\s]{20,}={0,2}")
# -----BEGIN, then the first letters of a public thing: CERTIFICATE, PUBLIC KEY.
_PUBLIC_IN_BASE64 = re.compile(r"LS0tLS1CRUdJTi(?:BDRV|BQVUJ)")


def matches(text: str, at: int) -> Iterator[tuple[int, int]]:
    """(start, end) of the keys at a word that stands at `at`."""
    near = max(0, at - 60)
    begin = _BEGIN.search(text, near, at + 60) or _PUTTY.search(text, near, at + 60)
    if begin is not None:
        limit = begin.end() + MAX_CHARS
        end = _END.search(text, begin.end(), limit)
        other = _BEGIN.search(text, begin.end(), limit)
        if end is not None and (other is None or end.start() < other.start()):
            yield begin.start(), end.end()
            return
        body = _BODY.match(text, begin.end(), limit)
        yield begin.start(), body.end() if body is not None else begin.end()
        return
    in_base64 = _IN_BASE64.search(text, near, at + MAX_CHARS)
    if in_base64 is not None and not _PUBLIC_IN_BASE64.match(in_base64[0]):
        yield in_base64.span()
