"""Texts of a workspace on their way to a server that drafts from them: token ids, by the key of
their content, compressed.

Client and server use these functions alike. A batch is bounded on both sides: by its bytes as sent,
and by its bytes once unpacked, at which unpacking stops.
"""

from __future__ import annotations

import hashlib
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec
import numpy as np

from codespec.errors import CodespecError
from codespec.types import Tokens

PROTOCOL = 1
"""Version of the routes and of the form of batches."""
KEY_PATTERN = r"\A[0-9a-f]{32}\Z"
MOST_PARTS = 10_000
"""Most parts of a content, which are the selected spans of a file."""
BATCH_BYTES = 2 << 20
"""Bytes of token ids, unpacked, at which a client closes a batch."""
MOST_BATCH_BYTES = 16 << 20
"""Most bytes of a batch, unpacked: a larger file is left out."""
MOST_SENT_BYTES = 8 << 20
"""Most bytes of a batch as it is sent."""
_MOST_PARTS_IN_ALL = 1 << 18
_LEVEL = 6
_ID_BYTES = 4

ContentKey = Annotated[str, msgspec.Meta(pattern=KEY_PATTERN)]
"""Name of a content: the hash of its tokens, see `key_of`. Opaque ids have the same form."""


class BatchError(CodespecError):
    """A batch that cannot be read, or does not hold what it says."""


class _Content(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    key: ContentKey
    parts: Annotated[list[bytes], msgspec.Meta(max_length=MOST_PARTS)]


_decoder = msgspec.msgpack.Decoder(list[_Content])


def key_of(parts: Sequence[Tokens]) -> str:
    """Hash that names a content: of the ids of its parts, and of where each ends."""
    digest = hashlib.blake2b(digest_size=16, person=b"codespec-content")
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(_bytes_of(part))
    return digest.hexdigest()


def packed(contents: Mapping[str, Sequence[Tokens]]) -> bytes:
    """A batch of these contents, by their keys."""
    rows = [_Content(key, [_bytes_of(part) for part in parts]) for key, parts in contents.items()]
    return zlib.compress(msgspec.msgpack.encode(rows), _LEVEL)


def unpacked(body: bytes) -> dict[str, list[Tokens]]:
    """The contents of a batch, each compared with its key; their ids are not looked at.

    Raises: BatchError.
    """
    if len(body) > MOST_SENT_BYTES:
        raise _refused(f"it has more than {MOST_SENT_BYTES:,} bytes", "Send smaller batches.")
    inflating = zlib.decompressobj()
    try:
        raw = inflating.decompress(body, MOST_BATCH_BYTES + 1)
    except zlib.error:
        raise _refused("it is not compressed by zlib") from None
    if len(raw) > MOST_BATCH_BYTES:
        raise _refused(
            f"it has more than {MOST_BATCH_BYTES:,} bytes unpacked", "Send smaller batches."
        )
    if not inflating.eof or inflating.unused_data:
        raise _refused("it is cut off, or something follows it")
    try:
        rows = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise _refused(f"it is not of the form of batches: {type(e).__name__}") from None
    if sum(len(row.parts) for row in rows) > _MOST_PARTS_IN_ALL:
        raise _refused(f"it has more than {_MOST_PARTS_IN_ALL:,} parts", "Send smaller batches.")
    found: dict[str, list[Tokens]] = {}
    for row in rows:
        if any(len(part) % _ID_BYTES for part in row.parts):
            raise _refused("its ids are not of four bytes each")
        if not any(row.parts):
            raise _refused("a content has no tokens")
        parts = [_tokens_of(part) for part in row.parts]
        if key_of(parts) != row.key:
            raise _refused("the hash of a content is not its key")
        found[row.key] = parts
    return found


def batches(contents: Iterable[tuple[str, Sequence[Tokens]]]) -> Iterable[dict[str, list[Tokens]]]:
    """These contents in batches of about `BATCH_BYTES`, each content whole; those that no server
    takes are left out."""
    batch: dict[str, list[Tokens]] = {}
    n_bytes = 0
    for key, parts in contents:
        if not is_sendable(parts):
            continue
        size = _ID_BYTES * sum(map(len, parts))
        if batch and n_bytes + size > BATCH_BYTES:
            yield batch
            batch, n_bytes = {}, 0
        batch[key] = list(parts)
        n_bytes += size
    if batch:
        yield batch


def is_sendable(parts: Sequence[Tokens]) -> bool:
    """True for a content that servers take: it has tokens, and fits into a batch."""
    n_bytes = _ID_BYTES * sum(map(len, parts))
    return 0 < 2 * n_bytes <= MOST_BATCH_BYTES and len(parts) <= MOST_PARTS


def state_of(files: Mapping[str, str]) -> str:
    """Hash of a workspace's list, id of a file -> key of its content; "" for an empty one. Client
    and server tell by it whether they mean the same state."""
    if not files:
        return ""
    digest = hashlib.blake2b(digest_size=16, person=b"codespec-files")
    for file in sorted(files):
        digest.update(f"{file} {files[file]}\n".encode())
    return digest.hexdigest()


def _bytes_of(part: Tokens) -> bytes:
    return np.ascontiguousarray(part, "<i4").tobytes()


def _tokens_of(part: bytes) -> Tokens:
    found = np.frombuffer(part, "<i4")
    return found if sys.byteorder == "little" else found.astype(np.int32)


def _refused(why: str, next_step: str = "Send it again, made by codespec itself.") -> BatchError:
    return BatchError(f"the batch is refused: {why}", next_step)
