"""Damage is found wherever it is; what nobody needs goes, and what is in use stays."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from codespec.cli import main
from codespec.cli.doctor import checks
from codespec.config import IndexSettings, Settings
from codespec.errors import ConfigError
from codespec.index import check, compact, upkeep
from codespec.index.store import Store
from tests.index_support import Workspace

ALPHA = "def alpha_one(value):\n    return value + alpha_constant\n"


def files(store: Store) -> list[Path]:
    return [store.manifest_path, *sorted(store.folder.glob("*.s*"))]


def index_command(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["index", *arguments])


def test_every_corrupted_byte_of_a_small_index_is_found(workspace: Workspace) -> None:
    workspace.write("a.py", "def f(x): return x\n")
    workspace.build()
    store = workspace.store
    assert check.find_damage(store) == []
    rng = np.random.default_rng(5)
    for file in files(store):
        data = file.read_bytes()
        assert len(data) < 20_000
        for at in range(len(data)):
            broken = bytearray(data)
            broken[at] ^= int(rng.integers(1, 256))
            file.write_bytes(broken)
            assert check.find_damage(store), (file.name, at)
        file.write_bytes(data)
    assert check.find_damage(store) == []


def test_corrupted_bytes_anywhere_in_a_larger_index_are_found(workspace: Workspace) -> None:
    rng = np.random.default_rng(6)
    for i in range(30):
        text = "".join(f"def name_{j}(x):\n    return {j}\n" for j in rng.integers(0, 999, 150))
        workspace.write(f"f{i}.py", text)
    workspace.build()
    for file in files(workspace.store):
        data = file.read_bytes()
        for at in rng.integers(0, len(data), 60):
            broken = bytearray(data)
            broken[at] ^= 1 << int(rng.integers(0, 8))
            file.write_bytes(broken)
            assert check.find_damage(workspace.store), (file.name, at)
        for shorter in (0, 1, len(data) // 2, len(data) - 1):
            file.write_bytes(data[:shorter])
            assert check.find_damage(workspace.store), (file.name, shorter)
        file.write_bytes(data)
    assert check.find_damage(workspace.store) == []


def test_what_is_damaged_is_taken_out_and_built_again(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA * 20)
    workspace.build()
    workspace.write("b.py", "x = 1\n" * 20)
    workspace.build()
    for kind in ("*.seg", "*.sym", "manifest.json"):
        file = next(workspace.store.folder.glob(kind))
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        damages = check.find_damage(workspace.store)
        assert len(damages) == 1
        check.discard(workspace.store, damages)
        assert workspace.build().changed
        assert check.find_damage(workspace.store) == []
        assert workspace.index().paths == ("a.py", "b.py")
        assert workspace.draft("def alpha_").startswith("one")


def damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_what_a_reader_finds_damaged_is_built_again(workspace: Workspace) -> None:
    """By drafting, by checking in quiet moments, by asking for symbols."""
    workspace.write("a.py", ALPHA * 2000)
    workspace.build()
    context = workspace.tokenizer.encode("def alpha_")
    for kind, use in (
        ("*.seg", lambda index: index.find(context, 8).proposal),
        ("*.seg", lambda index: [None for _ in iter(index.check_some, False)]),
        ("*.sym", lambda index: index.definitions(["alpha_one"])),
    ):
        damage(next(workspace.store.folder.glob(kind)))
        index = workspace.index()
        assert not use(index) or kind == "*.seg"
        while index.check_some():
            pass
        assert len(workspace.store.marked_damaged()) == 1
        if kind == "*.seg":
            assert len(index.find(context, 8).proposal) == 0
        assert workspace.build().n_tokenised == 1
        assert check.find_damage(workspace.store) == []
        assert not workspace.store.marked_damaged()
        assert index.refresh()
        assert len(index.find(context, 8).proposal) == 8
        assert len(index.definitions(["alpha_one"])) == 2000
        while index.check_some():
            pass
        assert not workspace.build().changed


@pytest.mark.parametrize("kind", ["*.seg", "*.sym"])
def test_damage_is_not_merged_into_new_segments(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(compact, "MAX_SEGMENTS", 2)
    for name in "abc":
        if name == "c":
            damage(next(workspace.store.folder.glob(kind)))
        workspace.write(f"{name}.py", f"def func_{name}(x):\n    return {name}_value\n" * 9)
        workspace.build()
    assert check.find_damage(workspace.store) == []
    manifest = workspace.store.read_manifest()
    assert manifest is not None
    assert len(manifest.segments) <= 2
    for name in "abc":
        assert workspace.draft(f"def func_{name}(x):\n    return ").startswith(f"{name}_value")
        assert len(workspace.index().definitions([f"func_{name}"])) == 9


def test_generations_keep_what_was_checked(workspace: Workspace) -> None:
    """A save must not make every lookup compare checksums again."""
    workspace.write("a.py", ALPHA * 50)
    workspace.build()
    index = workspace.index()
    while index.check_some():
        pass
    file = next(workspace.store.folder.glob("*.seg"))
    workspace.write("b.py", "x = 1\n")
    workspace.build()
    damage(file)  # would be found by who checks it again
    index.refresh()
    assert len(index.find(workspace.tokenizer.encode("def alpha_"), 1).proposal) == 1


def test_verify_on_the_command_line(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA * 20)
    workspace.build()
    root = str(workspace.root)
    sound = index_command(root, "--verify", "--json")
    assert sound.exit_code == 0
    assert json.loads(sound.stdout)["damaged"] == []
    segment = next(workspace.store.folder.glob("*.seg"))
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    found = index_command(root, "--verify", "--no-repair", "--json")
    assert found.exit_code == 1
    report = json.loads(found.stdout)
    assert [d["file"] for d in report["damaged"]] == [str(segment)]
    assert not report["repaired"]
    assert segment.name in index_command(root, "--verify", "--no-repair").stdout


def test_status(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA)
    workspace.write("b.bin", b"\0")
    workspace.build()
    (status,) = upkeep.all_status()
    assert status.is_sound
    assert (status.root, status.tokenizer) == (workspace.store.root, workspace.tokenizer.hash)
    assert (status.n_files, status.n_tokens, status.n_segments) == (1, len(ALPHA), 1)
    assert status.n_bytes > len(ALPHA)
    assert 0 <= status.unused_s < 600
    (listed,) = json.loads(index_command("--status", "--json").stdout)
    assert listed["sound"]
    assert listed["n_files"] == 1
    assert workspace.store.root in index_command("--status").stdout
    assert index_command(str(workspace.root.parent), "--status", "--json").stdout == "[]\n"
    workspace.store.manifest_path.write_bytes(b"{")
    (status,) = upkeep.all_status()
    assert not status.is_sound


def test_an_index_that_was_never_built_has_no_age(workspace: Workspace) -> None:
    workspace.store.make_folder()
    status = index_command("--status").stdout
    assert "it is not built yet" in status
    assert " ago" not in status
    workspace.write("a.py", ALPHA)
    workspace.build()
    assert "changed just now, used just now" in index_command("--status").stdout


def test_where_nothing_is_indexed_the_next_step_is_named(workspace: Workspace) -> None:
    root = str(workspace.root)
    says = f"{root}: no index yet: codespec index {root}\n"
    for arguments, code in ((["--status"], 0), (["--verify"], 0), (["--symbols", "alpha"], 1)):
        found = index_command(root, *arguments)
        assert (found.exit_code, found.output) == (code, says)
        missing = index_command(root + "-missing", *arguments)
        assert (missing.exit_code, "no such folder" in missing.output) == (1, True)
    workspace.write("a.py", ALPHA)
    workspace.build()
    shutil.rmtree(root)
    left = index_command(root, "--status")
    assert (left.exit_code, "the workspace is gone" in left.output) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--watch", "--verify"], "one at a time: --watch or --verify"),
        (["--symbols", "f", "--status"], "one at a time: --status or --symbols"),
        ([".", "--prune"], "--prune takes no PATH"),
        (["--no-repair"], "--no-repair goes with --verify"),
    ],
)
def test_of_several_jobs_none_is_chosen(arguments: list[str], why: str) -> None:
    result = index_command(*arguments)
    assert result.exit_code == 2
    assert why in result.output


def test_an_index_that_was_never_built_is_none_to_verify(workspace: Workspace) -> None:
    workspace.store.make_folder()
    root = str(workspace.root)
    found = index_command(root, "--verify")
    assert (found.exit_code, found.output) == (
        0,
        f"{root}: no index yet: codespec index {root}\n",
    )
    assert json.loads(index_command(root, "--verify", "--json").stdout)["n_indexes"] == 0


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_indexes_of_another_user_are_said_to_be(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users may share a cache folder, and a call as root leaves such an index."""
    index = workspace.store.make_folder().parents[1]
    mkdir, access = Path.mkdir, os.access

    def refusing(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False):
        if index in path.parents:
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, mode, parents, exist_ok)

    monkeypatch.setattr(Path, "mkdir", refusing)
    monkeypatch.setattr(os, "geteuid", lambda: index.stat().st_uid + 1)
    whose = rf"folder {index} is not writable: it belongs to {index.owner()}\n.*CODESPEC_CACHE_DIR"
    with pytest.raises(ConfigError, match=whose), workspace.store.writing():
        pass
    monkeypatch.setattr(os, "access", lambda path, mode: path != index and access(path, mode))
    root = str(workspace.root)
    for arguments in (
        ["--status", root],
        ["--verify", root],
        ["--symbols=alpha", root],
        ["--prune"],
    ):
        assert re.search(whose, index_command(*arguments).output), arguments
    finding = next(checks.index(Settings(), workspace.root, workspace.tokenizer.hash))
    assert (finding.level, index.owner() in finding.message) == ("error", True)


def test_names_of_files_do_not_command_the_terminal(workspace: Workspace) -> None:
    name = "\x1b]0;a\x07.py"  # sets a title
    workspace.write(name, ALPHA)
    workspace.build()
    found = index_command(str(workspace.root), "--symbols", "alpha_one")
    assert found.output == "\\x1b]0;a\\x07.py:1-2: def alpha_one(value) (function)\n"
    as_json = index_command(str(workspace.root), "--symbols", "alpha_one", "--json").stdout
    assert json.loads(as_json)[0]["path"] == name


def use(workspace: Workspace, when: float) -> None:
    os.utime(workspace.store.folder / "used", (when, when))


@pytest.fixture
def three(workspace: Workspace) -> list[Workspace]:
    """The one used longest ago first."""
    found = [Workspace(workspace.root.parent / name) for name in ("one", "two", "three")]
    for i, each in enumerate(found):
        each.write("a.py", ALPHA * 50)
        each.build()
        use(each, 1e9 + i)
    return found


def test_pruning_takes_what_is_gone_or_broken(three: list[Workspace]) -> None:
    shutil.rmtree(three[0].root)
    three[1].store.manifest_path.write_bytes(b"{")
    removed = upkeep.prune(1 << 40)
    assert {Path(s.folder) for s in removed} == {three[0].store.folder, three[1].store.folder}
    assert [s.root for s in upkeep.all_status()] == [three[2].store.root]
    assert json.loads(index_command("--prune", "--json").stdout) == []


def test_the_least_recently_used_go_first(three: list[Workspace]) -> None:
    size = upkeep.n_bytes(three[0].store.folder)
    assert upkeep.prune(3 * size + 999) == []
    assert [s.root for s in upkeep.prune(2 * size + 999)] == [three[0].store.root]
    three[1].index()  # using it counts
    use(three[2], 1e9)
    assert [s.root for s in upkeep.prune(size + 999)] == [three[2].store.root]
    assert three[1].draft("def alpha_").startswith("one")
    assert three[0].open() is None


def test_a_build_makes_room_but_never_for_nothing(three: list[Workspace]) -> None:
    three[2].write("b.py", ALPHA)
    three[2].build(IndexSettings(max_cache_bytes=1))
    assert [s.root for s in upkeep.all_status()] == [three[2].store.root]


def test_what_a_process_writes_or_watches_stays(three: list[Workspace]) -> None:
    with three[0].store.writing():
        assert not upkeep.remove(three[0].store.folder)
        upkeep.evict(0)
        assert [s.root for s in upkeep.all_status()] == [three[0].store.root]
    assert upkeep.remove(three[0].store.folder)
    assert upkeep.all_status() == []
    three[0].build()
    assert three[0].draft("def alpha_").startswith("one")
