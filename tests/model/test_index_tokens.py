"""Real source files, tokenised in pieces with the bundled model's tokenizer."""

from __future__ import annotations

import argparse
import difflib
import inspect
import json.decoder
import logging.config
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.config import IndexSettings, Settings
from codespec.documents.live import LiveDocument
from codespec.index.build import build_index
from codespec.index.parsers import Parsers
from codespec.index.store import Store
from codespec.index.word_encoder import WordEncoder
from codespec.models.resolve import target_path
from codespec.syntax.text import encode, safe_cuts, split

MODULES = [argparse, difflib, inspect, json.decoder, logging.config]


@pytest.fixture(scope="module")
def tokenizer(model_options: Settings) -> LlamaTokenizer:
    return LlamaTokenizer(load_model(target_path(model_options.model), vocab_only=True))


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_pieces_tokenise_as_the_whole(tokenizer: LlamaTokenizer, module) -> None:
    source = inspect.getsource(module)
    cuts = safe_cuts(tokenizer)
    whole = tokenizer.encode(source)
    assert np.array_equal(encode(source, tokenizer, cuts), whole)
    by_word = WordEncoder(tokenizer)
    assert by_word._table is not None
    assert np.array_equal(by_word.encode(source.encode()), whole)
    pieces = list(split(source, cuts, 1))
    assert len(pieces) > source.count("\n") // 2
    assert np.array_equal(np.concatenate([tokenizer.encode(p) for p in pieces]), whole)


def test_a_live_document_has_the_tokens_of_its_text(tokenizer: LlamaTokenizer) -> None:
    source = inspect.getsource(argparse)
    document = LiveDocument(tokenizer)
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(source), 30):
        start, end = sorted(rng.integers(0, len(source), 2))
        prefix, suffix = source[:at], source[at:]
        if end - start < 2000:
            prefix = prefix[:start] + prefix[end:]
        document.update(prefix + "x", suffix)
        assert np.array_equal(document.left, tokenizer.encode(prefix + "x"))
        assert np.array_equal(document.right, tokenizer.encode(suffix))


def test_threads_that_share_a_tokenizer_get_their_own_tokens(tokenizer: LlamaTokenizer) -> None:
    """The library is called without the interpreter's lock; the indexer calls it from as many
    threads as it has parsers."""
    lines = [line for module in MODULES for line in inspect.getsource(module).splitlines()]
    alone = [tokenizer.encode(line).tolist() for line in lines]

    def encoded(_: int) -> list[list[int]]:
        return [tokenizer.encode(line).tolist() for line in lines]

    with ThreadPoolExecutor(8) as pool:
        assert all(found == alone for found in pool.map(encoded, range(16)))


def test_many_parsers_store_the_tokens_that_one_does(
    tokenizer: LlamaTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "w"
    root.mkdir()
    for file in sorted(Path(argparse.__file__).parent.glob("[a-d]*.py")):
        shutil.copy(file, root / file.name)

    def stored(n_parsers: int) -> dict[str, list[list[int]]]:
        monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / f"cache{n_parsers}"))
        (tmp_path / f"cache{n_parsers}").mkdir()
        with Parsers(n_parsers) as parsers:
            build_index(root, WordEncoder(tokenizer), IndexSettings(), parsers=parsers)
        store = Store(str(root.resolve()), tokenizer.hash)
        manifest = store.read_manifest()
        assert manifest is not None
        found: dict[str, list[list[int]]] = {}
        for entry in manifest.segments:
            segment, at = store.open_segment(entry.name), 0
            for content in entry.contents:
                docs = range(at, at + content.n_docs)
                found[content.key] = [segment.doc_tokens(d).tolist() for d in docs]
                at = docs.stop
        return found

    assert stored(8) == stored(1)
