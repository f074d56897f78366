"""The life of an index: first build, every kind of change, damage, interruption."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from codespec.config import IndexSettings
from codespec.errors import IndexBusyError, InputError
from codespec.index import build as build_module
from codespec.index import compact, indexed_file
from codespec.index.build import BuildCancelledError, BuildProgress
from codespec.index.parsers import Parsers
from codespec.index.selection import LeftOut
from codespec.index.store import Manifest
from tests.index_support import Workspace

# Names that occur once: what is drafted after one tells whose text it was.
ALPHA = "def alpha_one(value):\n    return value + alpha_constant\n"
BETA = "def beta_two(value):\n    return value * beta_constant\n"
GAMMA = "class GammaThree:\n    gamma_field = 3\n"


def manifest(workspace: Workspace) -> Manifest:
    found = workspace.store.read_manifest()
    assert found is not None
    return found


def test_first_build(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA)
    workspace.write("b/b.py", "\ufeff" + BETA.replace("\n", "\r\n"))
    workspace.write("notes.zzz", "Some words.\n")
    workspace.write("bin", b"\0\1")
    workspace.write("key.txt", "-----BEGIN " + "PRIVATE KEY-----\n")
    workspace.write("go.sum", "x v1 h1:abc\n")
    workspace.write("empty.py", "")
    report = workspace.build()
    assert report.changed
    assert (report.n_files, report.n_tokenised, report.n_segments) == (3, 3, 1)
    assert report.n_tokens == len(ALPHA) + len(BETA) + len("Some words.\n")
    assert report.why_not == {
        LeftOut.BINARY: 1,
        LeftOut.ONLY_SECRETS: 1,
        LeftOut.LOCK_FILE: 1,
        LeftOut.EMPTY: 1,
    }
    assert workspace.index().paths == ("a.py", "b/b.py", "notes.zzz")
    assert workspace.draft("def alpha_one(") == ALPHA.partition("(")[2][:40]
    assert workspace.draft("def beta_two(") == BETA.partition("(")[2][:40]


def test_nothing_changed_writes_nothing(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA)
    workspace.build()
    before = workspace.store.manifest_path.stat().st_mtime_ns
    report = workspace.build()
    assert not report.changed
    assert report.n_tokenised == 0
    assert workspace.store.manifest_path.stat().st_mtime_ns == before


def test_edit_delete_rename_copy_and_ignore(workspace: Workspace) -> None:
    for name, text in (("a.py", ALPHA), ("b.py", BETA), ("c.py", GAMMA)):
        workspace.write(name, text)
    workspace.build()
    workspace.write("a.py", ALPHA.replace("alpha_constant", "delta_constant"))
    (workspace.root / "b.py").unlink()
    (workspace.root / "c.py").rename(workspace.root / "d.py")
    report = workspace.build()
    assert report.n_tokenised == 1
    assert workspace.index().paths == ("a.py", "d.py")
    assert "delta_constant" in workspace.draft("    return value + ")
    assert workspace.draft("beta_two(value):\n    return value *")[:6] != " beta_"
    assert workspace.draft("class Gamma").startswith("Three")
    workspace.write("copy.py", GAMMA)
    (workspace.root / "d.py").unlink()
    assert workspace.build().n_tokenised == 0
    assert workspace.index().paths == ("a.py", "copy.py")
    workspace.write(".gitignore", "copy.py\n")
    workspace.build()
    assert workspace.index().paths == (".gitignore", "a.py")
    assert "Three" not in workspace.draft("class Gamma")


def test_a_change_back_costs_no_tokenizer(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA)
    workspace.write("b.py", BETA * 20)
    workspace.build()
    workspace.write("a.py", GAMMA)
    assert workspace.build().n_tokenised == 1
    workspace.write("a.py", ALPHA)
    assert workspace.build().n_tokenised == 0
    assert workspace.draft("def alpha_").startswith("one")
    assert "Three" not in workspace.draft("class Gamma")


def test_the_language_is_part_of_the_content(workspace: Workspace) -> None:
    text = "# Copyright 2020 A\n\n" + ALPHA
    workspace.write("a.py", text)
    workspace.build()
    (workspace.root / "a.py").rename(workspace.root / "a.txt")
    assert workspace.build().n_tokens == len(text)


def test_segments_of_equal_tokens_and_other_contents(workspace: Workspace) -> None:
    """Two languages, one text: two contents in two segments whose files are one and the same."""
    workspace.write("a.py", ALPHA)
    workspace.build()
    workspace.write("b.zzz", ALPHA)
    workspace.build()
    assert len({s.name for s in manifest(workspace).segments}) == 1
    (workspace.root / "b.zzz").unlink()
    workspace.build()
    assert workspace.index().n_tokens == len(ALPHA)
    assert workspace.draft("def alpha_").startswith("one")


def test_files_that_cannot_be_read_are_told_of(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_file = indexed_file.read_file

    def forbidding(path: str, limit: int):
        return None if path.endswith("b.py") else read_file(path, limit)

    monkeypatch.setattr(indexed_file, "read_file", forbidding)
    for name in ("a.py", "b.py"):
        workspace.write(name, ALPHA)
    for _ in range(2):
        report = workspace.build()
        assert (report.n_files, report.why_not) == (1, {LeftOut.UNREADABLE: 1})


def test_unchanged_files_are_not_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read_file = indexed_file.read_file

    def counting(path: str, limit: int):
        reads.append(Path(path).name)
        return read_file(path, limit)

    monkeypatch.setattr(indexed_file, "read_file", counting)
    for name in ("a.py", "b.py", "bin"):
        workspace.write(name, b"\0" if name == "bin" else name * 10)
    workspace.build()
    reads.clear()
    workspace.build()  # so soon after that the times prove nothing
    assert sorted(reads) == ["a.py", "b.py", "bin"]
    reads.clear()
    monkeypatch.setattr(build_module, "_RACY_NS", -(10**18))
    workspace.write("b.py", "changed" * 3)
    workspace.build()
    assert reads == ["b.py"]
    reads.clear()
    file = workspace.root / "a.py"
    before = file.stat()
    workspace.write("a.py", "A.py" * 10)  # neither size nor modification time tells
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    workspace.build()
    assert reads == ["a.py"]
    assert workspace.draft("A.p").startswith("yA.py")


def test_many_small_segments_are_merged(workspace: Workspace) -> None:
    for i in range(compact.MAX_SEGMENTS + 3):
        workspace.write(f"f{i}.py", f"name_{i} = unique_{i}({i})\n")
        workspace.build()
        assert len(manifest(workspace).segments) <= compact.MAX_SEGMENTS
    assert {f"{s.name}.seg" for s in manifest(workspace).segments} == {
        p.name for p in workspace.store.folder.glob("*.seg")
    }
    for i in range(compact.MAX_SEGMENTS + 3):
        assert workspace.draft(f"name_{i} =").startswith(f" unique_{i}(")


def test_in_a_large_workspace_a_save_rewrites_no_segment(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "SEGMENT_TOKENS", 500)
    for i in range(10 * compact.MAX_SEGMENTS):
        workspace.write(f"f{i:02}.py", f"name_{i} = unique_{i}({i})\n" * 5)
    workspace.build()
    workspace.write("more.py", "more = 1\n" * 20)
    workspace.build()
    before = {s.name for s in manifest(workspace).segments}
    assert len(before) > 2 * compact.MAX_SEGMENTS
    for i in range(compact.MAX_SEGMENTS - 1):
        workspace.write("note.py", f"note_{i} = {i}\n")
        workspace.build()
        assert before < {s.name for s in manifest(workspace).segments}


def test_dead_text_leaves_the_disk(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA * 10)
    workspace.write("b.py", BETA)
    workspace.build()
    (workspace.root / "a.py").unlink()
    workspace.build()
    entries = manifest(workspace).segments
    assert sum(c.n_tokens for s in entries for c in s.contents) == len(BETA)


def test_large_workspaces_are_committed_in_parts(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "SEGMENT_TOKENS", 1000)
    for i in range(40):
        workspace.write(f"f{i:02}.py", f"name_{i} = unique_{i}({i})\n" * 5)
    seen: list[int] = []

    def stop_late(event: BuildProgress) -> None:
        index = workspace.open()
        seen.append(index.n_files if index else 0)

    report = workspace.build(progress=stop_late)
    assert report.n_files == 40
    assert report.n_segments > 2
    assert seen == sorted(seen)
    assert 0 < seen[len(seen) // 2] < 40
    assert workspace.index().n_tokens == report.n_tokens


def test_cancelled_in_the_middle(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "SEGMENT_TOKENS", 1000)
    workspace.write("f00.py", ALPHA)
    workspace.write("gone.py", GAMMA)
    workspace.build()
    (workspace.root / "gone.py").unlink()
    for i in range(40):
        workspace.write(f"f{i:02}.py", f"name_{i} = unique_{i}({i})\n" * 5)
    n_asked = 0

    def cancelled() -> bool:
        nonlocal n_asked
        n_asked += 1
        return n_asked > 20

    with pytest.raises(BuildCancelledError):
        workspace.build(cancelled=cancelled)
    paths = workspace.index().paths
    assert paths
    assert "gone.py" not in paths
    assert workspace.build().n_tokenised == 40 - len([p for p in paths if p != "gone.py"])
    assert workspace.index().n_files == 40


def test_progress(workspace: Workspace) -> None:
    for i in range(3):
        workspace.write(f"f{i}.py", "x" * (i + 1))
    events: list[BuildProgress] = []
    workspace.build(progress=events.append)
    assert [e.phase for e in events] == ["scan", "index", "index", "index", "merge", "done"]
    assert [e.n_bytes_done for e in events[1:4]] == [1, 3, 6]
    assert events[-1].n_files_done == 3
    assert {e.n_bytes for e in events[1:]} == {6}


def test_a_second_writer_is_refused(workspace: Workspace) -> None:
    with workspace.store.writing(), pytest.raises(IndexBusyError):
        workspace.build()


def test_other_settings_build_again(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA)
    workspace.write("b.py", BETA * 10)
    workspace.build()
    small = IndexSettings(max_file_bytes=100)
    report = workspace.build(small)
    assert (report.n_files, report.why_not[LeftOut.TOO_LARGE]) == (1, 1)
    assert workspace.index().paths == ("a.py",)


@pytest.mark.parametrize("damage", ["manifest", "segment header", "segment gone", "all gone"])
def test_damage_is_mended(workspace: Workspace, damage: str) -> None:
    workspace.write("a.py", ALPHA)
    workspace.build()
    workspace.write("b.py", BETA)
    workspace.build()
    first = workspace.store.segment_path(manifest(workspace).segments[0].name)
    if damage == "manifest":
        workspace.store.manifest_path.write_bytes(b"{")
    elif damage == "segment header":
        first.write_bytes(b"\xff" * 64 + first.read_bytes()[64:])
    elif damage == "segment gone":
        first.unlink()
    else:
        shutil.rmtree(workspace.store.folder)
    assert workspace.open() is None
    report = workspace.build()
    assert report.changed
    assert report.n_files == 2
    assert workspace.draft("def alpha_one(") == ALPHA.partition("(")[2][:40]
    assert workspace.draft("def beta_two(") == BETA.partition("(")[2][:40]
    assert not workspace.build().changed


def test_any_number_of_parsers_gives_the_same_index(workspace: Workspace) -> None:
    """To the byte, symbols included: files are named by their content."""
    header = "# Copyright (c) 2020 Somebody. All rights reserved.\n\n"
    for i in range(20):
        workspace.write(f"f{i:02}.py", f"{header}def name_{i}(x):\n    return x + {i}\n" * (i + 1))
        workspace.write(f"f{i:02}.ts", f"export function name{i}(x: number) {{ return x }}\n")
        workspace.write(f"f{i:02}.zzz", f"text {i}\n")
    workspace.write("é.go", "func Ü() string { return `日本` }\n")
    found: list[object] = []
    for n in (0, 1, 2):
        shutil.rmtree(workspace.store.folder, ignore_errors=True)
        with Parsers(n) as parsers:
            report = workspace.build(parsers=parsers if n else None)
        assert report.n_files == 61
        assert not report.crashed
        found.append(manifest(workspace).segments)
    assert found[0] == found[1] == found[2]
    assert {s.kind for s in workspace.index().definitions(["name_7"])} == {"function"}


def test_a_root_that_is_not_there_has_an_empty_index(workspace: Workspace) -> None:
    workspace.root.rmdir()
    assert workspace.build().n_files == 0
    assert workspace.index().n_tokens == 0
    assert workspace.draft("x") == ""


def test_switching_between_two_branches_reads_no_text_twice(workspace: Workspace) -> None:
    """All of a segment dies with each switch; the text of the other branch is still there."""
    branches = [
        {f"f{i}.py": f"name_{i} = {branch}_{i}({i})\n" * 5 for i in range(9)}
        for branch in ("main", "other")
    ]

    def switch(n: int) -> int:
        for path, text in branches[n].items():
            workspace.write(path, text)
        return workspace.build().n_tokenised

    workspace.write("kept.py", ALPHA * 50)
    workspace.build()
    assert [switch(n) for n in (0, 1, 0, 1, 0)] == [9, 9, 0, 0, 0]
    assert workspace.draft("name_3 =").startswith(" main_3(")
    assert "other" not in workspace.draft("name_3 = ot")
    assert workspace.index().n_tokens == len(ALPHA) * 50 + sum(map(len, branches[0].values()))


def test_dead_segments_are_few(workspace: Workspace) -> None:
    workspace.write("kept.py", ALPHA * 50)
    for i in range(6):
        workspace.write("a.py", f"name = unique_{i}\n" * 3)
        workspace.build()
        live = {f.key for f in manifest(workspace).files}
        dead = [s for s in manifest(workspace).segments if not {c.key for c in s.contents} & live]
        assert len(dead) <= compact.MAX_DEAD_SEGMENTS
        assert len(list(workspace.store.folder.glob("*.seg"))) == len(
            {s.name for s in manifest(workspace).segments}
        )


def test_what_was_read_too_soon_is_settled_by_a_later_scan(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a fresh clone is read anew at each scan for as long as nothing in it changes."""
    workspace.write("a.py", ALPHA)
    workspace.build()
    reads: list[str] = []
    read_file = indexed_file.read_file

    def counting(path: str, limit: int):
        reads.append(path)
        return read_file(path, limit)

    later_ns = time.time_ns() + 10**10
    monkeypatch.setattr(build_module.time, "time_ns", lambda: later_ns)
    monkeypatch.setattr(indexed_file, "read_file", counting)
    assert not workspace.build().changed
    assert len(reads) == 1
    before = manifest(workspace)
    assert not workspace.build().changed
    assert len(reads) == 1
    assert manifest(workspace) == before
    assert workspace.draft("def alpha_one(") == ALPHA.partition("(")[2][:40]


def test_a_full_disk_is_left_as_it_was(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write("a.py", ALPHA)
    workspace.build()
    folder = workspace.store.folder
    before = {p.name for p in folder.iterdir()}

    def full(path: Path, *_: object) -> None:
        path.write_bytes(b"x" * 1000)
        raise OSError(errno.ENOSPC, "no space left")

    workspace.write("b.py", BETA)
    with monkeypatch.context() as patch:
        patch.setattr("codespec.index.store.build_segment", full)
        with pytest.raises(OSError, match="no space"):
            workspace.build()
        assert {p.name for p in folder.iterdir()} == before
    with monkeypatch.context() as patch:
        patch.setattr("codespec.index.store._replace", full)
        with pytest.raises(OSError, match="no space"):
            workspace.store.write_manifest(manifest(workspace))
        assert {p.name for p in folder.iterdir()} == before
    assert workspace.index().paths == ("a.py",)
    assert workspace.build().n_tokenised == 1


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_workspace_whose_path_is_not_unicode_is_refused(tmp_path: Path, workspace: Workspace):
    other = Workspace(tmp_path / os.fsdecode(b"bad\xff"))
    other.write("a.py", ALPHA)
    with pytest.raises(InputError, match="not UTF-8"):
        other.build()
    assert other.open() is None
