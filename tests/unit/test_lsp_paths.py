"""Which documents are files of this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codespec_lsp.uris import path_of


@pytest.mark.skipif(sys.platform == "win32", reason="other paths, and hosts that mean something")
@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file://{}/a%20b.py", "{}/a b.py"),
        ("file://localhost{}/a.py", "{}/a.py"),
        ("file://LocalHost{}/a.py", "{}/a.py"),
        ("file:{}/a.py", "{}/a.py"),
        ("file://server{}/a.py", ""),
        ("file://localhost.example{}/a.py", ""),
        # Named before it is saved, as by `code new.py`.
        ("untitled:{}/a.py", "{}/a.py"),
        ("untitled:Untitled-1", ""),
        ("scp://server{}/a.py", ""),
        ("file://", ""),
        # Of Windows, and of no folder.
        ("file:///C:/Users/x/a.py", ""),
        ("file:///c%3A/Users/x/a.py", ""),
        ("file:///d:\\x\\a.py", ""),
        ("file:C:/x/a.py", ""),
        ("file:a.py", ""),
        ("untitled:/C:/x/a.py", ""),
    ],
)
def test_files_are_those_of_this_host(tmp_path: Path, uri: str, path: str) -> None:
    folder = tmp_path.resolve().as_posix()
    assert path_of(uri.format(folder)) == path.format(folder)
