"""A workspace on disk for tests of the index, with a cache folder and a home of its own."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.config import IndexSettings
from codespec.index.build import BuildReport, build_index
from codespec.index.reader import WorkspaceIndex
from codespec.index.store import Store
from codespec.index.word_encoder import WordEncoder
from codespec.types import Tokens

SETTINGS = IndexSettings()
KEY_HEAD = "-----BEGIN RSA PRIVATE KEY-----"
KEY_LINES = [f"MIIEpAIBAAKCAQEA{i}{i}Xc9v" for i in range(5)]
KEY = "\n".join([KEY_HEAD, *KEY_LINES, "-----END RSA PRIVATE KEY-----", ""])


def isolate(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Cache, home and git configuration inside `folder`."""
    for name in ("home", "cache"):
        (folder / name).mkdir(exist_ok=True)
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "home" / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


class Workspace:
    """Files below `root`, and the index of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tokenizer = ByteTokenizer()
        self.encoder = WordEncoder(self.tokenizer)
        root.mkdir(parents=True, exist_ok=True)

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def build(self, settings: IndexSettings = SETTINGS, **options: Any) -> BuildReport:
        return build_index(self.root, self.encoder, settings, **options)

    def open(self) -> WorkspaceIndex | None:
        return WorkspaceIndex.open(self.root, self.tokenizer.hash)

    def index(self) -> WorkspaceIndex:
        index = self.open()
        assert index is not None
        return index

    @property
    def store(self) -> Store:
        return Store(os.path.realpath(self.root), self.tokenizer.hash)

    def draft(self, context: str, n_max: int = 40, skip: Collection[str] = ()) -> str:
        proposal = self.index().find(self.tokenizer.encode(context), n_max, skip).proposal
        return self.tokenizer.decode(proposal.tokens).decode("utf-8", "replace")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty one, with a cache folder and a home of its own."""
    isolate(monkeypatch, tmp_path)
    return Workspace(tmp_path / "w")


class SplitTokenizer:
    """Every match of an expression is one token: a BPE model with a full vocabulary, the hardest
    case for cutting a text. Ids are hashes; pieces are remembered."""

    n_vocab = 1 << 30

    def __init__(self, expression: str) -> None:
        self.hash = hashlib.blake2b(expression.encode(), digest_size=8).hexdigest()
        self.n_calls = 0
        self._split = re.compile(expression)
        self._pieces: dict[int, bytes] = {}

    def encode(self, text: str | bytes) -> Tokens:
        self.n_calls += 1
        ids: list[int] = []
        for match in self._split.finditer(text if isinstance(text, str) else text.decode()):
            raw = match.group().encode()
            token = int.from_bytes(hashlib.blake2b(raw, digest_size=4).digest(), "little") >> 2
            self._pieces[token] = raw
            ids.append(token)
        return np.array(ids, np.int32)

    def piece(self, token: int) -> bytes:
        return self._pieces.get(token, b"")

    def decode(self, tokens: Tokens | Sequence[int]) -> bytes:
        return b"".join(self.piece(int(t)) for t in tokens)


# The models' published expressions, in the standard library's dialect.
_L, _N = r"[^\W\d_]", r"\d"
_OTHER = r"(?:[^\s\w]|_)"
GPT2 = rf"'(?:[sdmt]|ll|ve|re)| ?{_L}+| ?{_N}+| ?{_OTHER}+|\s+(?!\S)|\s+"
QWEN2 = (
    rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?{_L}+|{_N}| ?{_OTHER}+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], input=stdin, capture_output=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def windows(tokens: Tokens, n: int) -> Iterator[tuple[int, ...]]:
    listed = tokens.tolist()
    return (tuple(listed[i : i + n]) for i in range(len(listed) - n + 1))
