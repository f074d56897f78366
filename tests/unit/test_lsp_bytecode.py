"""Bytecode that attrs makes: kept, used again, and made anew where the file is of no use."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path

import attrs
import pytest

from codespec_lsp import bytecode


def make() -> type:
    return attrs.define(type("Point", (), {"__annotations__": {"x": int, "y": int}}))


@pytest.fixture(autouse=True)
def writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were compiled: what is kept is not."""
    seen: list[str] = []
    real = builtins.compile

    def spy(source, filename, *rest, **more):
        if "attrs generated" in str(filename):
            seen.append(filename)
        return real(source, filename, *rest, **more)

    monkeypatch.setattr(builtins, "compile", spy)
    return seen


def test_what_was_compiled_once_is_not_compiled_again(tmp_path: Path, compiled: list[str]) -> None:
    path = tmp_path / "__pycache__" / "attrs.pyc"
    with bytecode.kept(path):
        make()
    assert compiled
    assert path.is_file()
    compiled.clear()
    with bytecode.kept(path):
        point = make()
    assert not compiled
    assert point(1, y=2) == point(1, 2) != point(1, 3)
    assert repr(point(1, 2)).endswith("Point(x=1, y=2)")
    make()
    assert compiled  # as ever, afterwards


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 100, "cut", "other"])
def test_a_file_of_no_use_is_replaced(tmp_path: Path, damage: bytes | str, compiled) -> None:
    path = tmp_path / "attrs.pyc"
    with bytecode.kept(path):
        make()
    sound = path.read_bytes()
    bad = {"cut": sound[:-1], "other": b"\0\0" + sound[2:]}
    path.write_bytes(damage if isinstance(damage, bytes) else bad[damage])
    compiled.clear()
    with bytecode.kept(path):
        assert make()(1, 2) != make()(2, 1)
    assert compiled
    assert path.read_bytes() == sound


def test_where_nothing_can_be_written_everything_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with bytecode.kept(tmp_path / "file" / "attrs.pyc"):
        make()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with bytecode.kept(tmp_path / "attrs.pyc"):
        make()
    assert not (tmp_path / "attrs.pyc").exists()
