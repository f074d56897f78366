"""The llama-server that is kept in the cache folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from .llama_server import kept_in


def test_a_program_that_is_not_as_it_was_built_is_built_again(tmp_path: Path) -> None:
    program, digest = tmp_path / "llama-server", tmp_path / "sha256"
    assert kept_in(tmp_path) is None
    program.write_bytes(b"program")
    assert kept_in(tmp_path) is None, "it was not finished"
    digest.write_text(hashlib.sha256(b"program").hexdigest())
    assert kept_in(tmp_path) == program
    program.write_bytes(b"progra")
    assert kept_in(tmp_path) is None
