"""Corpora of the index benchmarks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from codespec_bench.corpus import read_corpus, source_files


def test_links_that_lead_nowhere_are_no_sources(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("a = 1\n")
    (tmp_path / ".#a.py").symlink_to("user@host.1:2")
    (tmp_path / "folder.py").mkdir()
    assert [path.name for path in source_files(tmp_path)] == ["a.py", "b.py"]


def test_names_need_not_be_text(tmp_path: Path) -> None:
    class Bytes:
        def encode(self, text: bytes) -> np.ndarray:
            return np.frombuffer(text, np.uint8).astype(np.int32)

    for i, name in enumerate((b"a.py", b"b.py", b"caf\xe9.py")):
        (tmp_path / os.fsdecode(name)).write_text(f"a = {i}\nb = 2\n")
    corpus = read_corpus(source_files(tmp_path), Bytes(), 1, 100)  # pyright: ignore[reportArgumentType]
    assert len(corpus.starts) + len(corpus.held_out) == 3
