"""Definitions: kept with their content, listed by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.errors import IndexCorruptError
from codespec.index import compact
from codespec.index.reader import Definition
from codespec.index.symbol_file import SymbolFile, pack_symbols
from codespec.syntax.symbols import Symbol
from tests.index_support import Workspace


def test_definitions_follow_the_files(workspace: Workspace) -> None:
    workspace.write("a.py", "def alpha(x):\n    return x\n")
    workspace.write("b.py", "class alpha:\n    pass\n\n\ndef beta(): ...\n")
    workspace.build()
    index = workspace.index()
    assert index.definitions(["beta", "none", "alpha"]) == [
        Definition("beta", "function", "def beta()", "b.py", 5, 5),
        Definition("alpha", "function", "def alpha(x)", "a.py", 1, 2),
        Definition("alpha", "class", "class alpha", "b.py", 1, 2),
    ]
    (workspace.root / "a.py").rename(workspace.root / "c.py")
    workspace.write("b.py", "def beta(changed): ...\n")
    workspace.build()
    index.refresh()
    assert [d.path for d in index.definitions(["alpha"])] == ["c.py"]
    assert [d.signature for d in index.definitions(["beta"])] == ["def beta(changed)"]


def test_definitions_in_copies_of_a_file(workspace: Workspace) -> None:
    for path in ("b/x.py", "a/x.py"):
        workspace.write(path, "def alpha(x):\n    return x\n\n\ndef beta(): ...\n")
    workspace.write("c.py", "def beta(): ...\n")
    workspace.build()
    index = workspace.index()
    one = index.definitions(["beta"])
    assert [d.path for d in one] == ["a/x.py", "c.py"]
    found = index.with_copies(one)
    assert [(d.path, d.first_line) for d in found] == [("a/x.py", 5), ("b/x.py", 5), ("c.py", 1)]


def test_merged_segments_keep_their_symbols(workspace: Workspace) -> None:
    n = 2 * compact.MAX_SEGMENTS + 3
    for i in range(n):
        workspace.write(f"f{i}.py", f"def name_{i}(): ...\n")
        workspace.write("same.py", f"def same(v{i}): ...\n")
        workspace.build()
    index = workspace.index()
    assert [d.path for d in index.definitions(f"name_{i}" for i in range(n))] == [
        f"f{i}.py" for i in range(n)
    ]
    assert [d.signature for d in index.definitions(["same"])] == [f"def same(v{n - 1})"]
    manifest = workspace.store.read_manifest()
    assert manifest is not None
    named = {f"{s.symbols}.sym" for s in manifest.segments if s.symbols}
    assert {p.name for p in workspace.store.folder.glob("*.sym")} == named


@pytest.mark.parametrize("damage", ["gone", "short", "blob"])
def test_damaged_symbols_do_no_harm_and_are_built_again(workspace: Workspace, damage: str) -> None:
    workspace.write("a.py", "def alpha(x):\n    return x\n" * 30)
    workspace.build()
    file = next(workspace.store.folder.glob("*.sym"))
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data[:-3] if damage == "short" else data[:-40] + b"\xc1" * 40)
    index = workspace.index()
    assert len(index.definitions(["alpha"])) < 30
    assert workspace.draft("def al").startswith("pha")
    workspace.build()
    if damage != "blob":  # which only a look at every byte tells
        assert len(workspace.index().definitions(["alpha"])) == 30


def test_the_file_returns_what_was_put_in(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    contents = [
        [
            Symbol(f"n{rng.integers(0, 50)}", "type", f"s é {i} {j}", j, j + 1)
            for j in range(int(rng.integers(0, 9)))
        ]
        for i in range(60)
    ]
    path = tmp_path / "symbols"
    path.write_bytes(pack_symbols(contents))
    file = SymbolFile(path)
    assert file.is_sound()
    everything = [(i, s) for i, content in enumerate(contents) for s in content]
    assert sorted(file, key=repr) == sorted(everything, key=repr)
    for n in range(55):
        assert list(file.find(f"n{n}")) == [(i, s) for i, s in everything if s.name == f"n{n}"]
    data = path.read_bytes()
    for _ in range(300):  # no damage may raise anything but the one error
        broken = bytearray(data)
        broken[int(rng.integers(0, len(data)))] ^= int(rng.integers(1, 256))
        path.write_bytes(broken)
        try:
            file = SymbolFile(path)
        except IndexCorruptError:
            continue
        assert not file.is_sound() or broken == data
        list(file)
        for n in range(55):
            list(file.find(f"n{n}"))


def test_the_listing(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.write("a.py", "def alpha(x):\n    return x\n")
    workspace.build()

    def run(*arguments: str):
        return CliRunner().invoke(main, ["index", str(workspace.root), *arguments])

    assert run("--symbols", "alpha").stdout == "a.py:1-2: def alpha(x) (function)\n"
    (found,) = json.loads(run("--symbols", "alpha", "--json").stdout)
    assert (found["path"], found["kind"]) == ("a.py", "function")
    assert run("--symbols", "beta").exit_code == 1
    workspace.write("copy.py", "def alpha(x):\n    return x\n")
    workspace.build()
    assert [line.partition(":")[0] for line in run("--symbols", "alpha").stdout.splitlines()] == [
        "a.py",
        "copy.py",
    ]
