"""Exact and near-duplicate detection over a stream of files.

Source: Broder 1997 (resemblance of documents by min-wise hashing); Li, Owen & Zhang 2012 (one
permutation hashing: one hash per shingle, its low bits choose the bin whose minimum it may become).
"""

from __future__ import annotations

import hashlib
import re
import zlib

import numpy as np
import numpy.typing as npt

N_BINS = 64  # the standard error of the estimated resemblance is at most 1 / (2 * sqrt(64)) = 0.06
BAND = 4  # bins per key; 16 keys find a pair of resemblance 0.8 with probability 0.9998
SHINGLE = 5  # tokens
THRESHOLD = 0.75
EMPTY = np.iinfo(np.uint64).max

_TOKEN = re.compile(r"\w+|[^\w\s]")
Signature = npt.NDArray[np.uint64]


class _TokenHashes(dict[str, int]):
    """Memory of token hashes: code repeats its tokens, and crc32 does not depend on the process as
    hash() does.
    """

    def __missing__(self, token: str) -> int:
        value = zlib.crc32(token.encode("utf-8", "surrogatepass"))
        self[token] = value
        return value


def signature(text: str, hashes: dict[str, int] | None = None) -> Signature:
    """Minimum shingle hash per bin, (N_BINS,); an empty bin holds the largest value. Cost: about 10
    MB/s.
    """
    table = _TokenHashes() if hashes is None else hashes
    tokens = np.array([table[t] for t in _TOKEN.findall(text)], np.uint64)
    result = np.full(N_BINS, EMPTY, np.uint64)
    n_shingles = len(tokens) - SHINGLE + 1
    if n_shingles < 1:
        return result
    mixed = np.zeros(n_shingles, np.uint64)
    for offset in range(SHINGLE):
        mixed = (mixed * np.uint64(0x9E3779B97F4A7C15)) ^ tokens[offset : offset + n_shingles]
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    bins = mixed % np.uint64(N_BINS)
    order = np.lexsort((mixed, bins))
    first, index = np.unique(bins[order], return_index=True)
    result[first.astype(np.intp)] = mixed[order[index]]
    return result


def resemblance(a: Signature, b: Signature) -> float:
    """Estimated share of common shingles, 0 to 1; bins that are empty in both say nothing."""
    used = (a != EMPTY) | (b != EMPTY)
    return float((a == b)[used].mean()) if used.any() else 0.0


class DuplicateFilter:
    """Says of each file whether it, or something near it, came before. Memory: 2 kB a file."""

    def __init__(self) -> None:
        self._exact: set[bytes] = set()
        self._buckets: dict[bytes, list[int]] = {}
        self._signatures: list[Signature] = []
        self._hashes = _TokenHashes()

    def add(self, text: str) -> bool:
        """True if the text is new; it is then remembered. False if it is a duplicate or a
        near-duplicate.
        """
        digest = _digest(text)
        if digest in self._exact:
            return False
        self._exact.add(digest)
        sig = signature(text, self._hashes)
        if self._is_near(sig):
            return False
        for key in _keys(sig):
            self._buckets.setdefault(key, []).append(len(self._signatures))
        self._signatures.append(sig)
        return True

    def holds(self, text: str) -> bool:
        """True if `add` would find the text a duplicate; it is not remembered."""
        return _digest(text) in self._exact or self._is_near(signature(text, self._hashes))

    def _is_near(self, sig: Signature) -> bool:
        candidates = {index for key in _keys(sig) for index in self._buckets.get(key, ())}
        return any(resemblance(self._signatures[c], sig) >= THRESHOLD for c in candidates)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _keys(sig: Signature) -> list[bytes]:
    return [bytes([band]) + sig[band : band + BAND].tobytes() for band in range(0, N_BINS, BAND)]
