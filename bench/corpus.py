"""Source files as token arrays: what the index benchmarks measure on."""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.errors import InputError
from codespec.index.word_encoder import WordEncoder
from codespec.syntax.text import normalise
from codespec.types import Tokens

MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class IndexedCorpus:
    """tokens: (n,) all documents, one after the other. starts: (n_docs,) where each begins.
    held_out: documents that are not among them. longest: the text with the most lines."""

    tokens: Tokens
    starts: npt.NDArray[np.int64]
    held_out: tuple[Tokens, ...]
    longest: str

    def head(self, n_tokens: int) -> tuple[Tokens, npt.NDArray[np.int64]]:
        """(tokens, starts) of the first documents, the last one cut."""
        n_docs = int(np.searchsorted(self.starts, n_tokens))
        return self.tokens[:n_tokens], self.starts[:n_docs]


def source_files(folder: Path | None) -> list[Path]:
    """Python files below `folder`; None: the running interpreter's library and packages.

    Raises: InputError when there are fewer than two.
    """
    paths = sysconfig.get_paths()
    roots = [folder] if folder else [Path(paths[k]) for k in ("stdlib", "purelib", "platlib")]
    found = {p.resolve(): p for root in roots for p in _walk(root)}
    if len(found) < 2:
        raise InputError(f"{folder}: fewer than two Python files", "Give a larger folder.")
    return sorted(found)


def _walk(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            # Links may lead nowhere: editors make some like that beside files that they change.
            is_source = name.endswith(".py") and path.is_file() and os.access(path, os.R_OK)
            if is_source and 0 < path.stat().st_size <= MAX_FILE_BYTES:
                yield path


def read_corpus(
    files: Sequence[Path],
    encoder: WordEncoder,
    n_threads: int,
    max_tokens: int,
    progress: Callable[[int], None] = lambda _: None,
) -> IndexedCorpus:
    """Tokenise files, each content once; every 20th is held out.

    progress: called with the number of tokens so far.
    """
    seen: set[bytes] = set()
    docs: list[Tokens] = []
    held_out: list[Tokens] = []
    longest = ""
    n_tokens = 0
    # The order of names puts a package's files together; a cut there would leave most out.
    order = sorted(files, key=lambda p: hashlib.blake2b(os.fsencode(p)).digest())

    def read(path: Path) -> tuple[str, Tokens]:
        text = normalise(path.read_bytes().decode("utf-8", "replace"))
        return text, encoder.encode(text.encode()).copy()  # the peer asks for writable ones

    with ThreadPoolExecutor(n_threads) as pool:
        for begin in range(0, len(order), 64):
            if n_tokens >= max_tokens:
                break
            for text, tokens in pool.map(read, order[begin : begin + 64]):
                key = hashlib.blake2b(text.encode(), digest_size=16).digest()
                if key in seen or len(tokens) == 0:
                    continue
                seen.add(key)
                if len(seen) % 20 == 2:
                    held_out.append(tokens)
                    continue
                docs.append(tokens)
                n_tokens += len(tokens)
                longest = max(longest, text, key=lambda s: s.count("\n"))
            progress(min(n_tokens, max_tokens))
    if not held_out or not longest.strip():
        raise InputError(
            "the files hold fewer than two different texts of some lines", "Give a larger folder."
        )
    lengths = np.cumsum([0, *map(len, docs)], dtype=np.int64)
    tokens = np.concatenate(docs)[:max_tokens]
    starts = lengths[:-1]
    return IndexedCorpus(tokens, starts[starts < len(tokens)], tuple(held_out), longest)


def renamed(corpus: IndexedCorpus, n_tokens: int) -> tuple[Tokens, npt.NDArray[np.int64]]:
    """(tokens, starts) of `n_tokens` in all: the corpus, then copies in which a tenth of the ids
    is permuted, as if identifiers had been renamed."""
    rng = np.random.default_rng(1)
    n_vocab = int(corpus.tokens.max()) + 1
    out = np.empty(n_tokens, np.int32)
    starts: list[npt.NDArray[np.int64]] = []
    for at in range(0, n_tokens, len(corpus.tokens)):
        ids = np.arange(n_vocab, dtype=np.int32)
        if at:
            chosen = rng.choice(n_vocab, max(2, n_vocab // 10), replace=False)
            ids[chosen] = rng.permutation(chosen)
        n = min(len(corpus.tokens), n_tokens - at)
        np.take(ids, corpus.tokens[:n], out=out[at : at + n])
        starts.append(corpus.starts[corpus.starts < n] + at)
    return out, np.concatenate(starts)
