"""Events, whatever they are, bring the index to what the files say; old text goes first."""

from __future__ import annotations

import errno
import io
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from codespec.errors import IndexBusyError
from codespec.index import check, update
from codespec.index.build import BuildReport
from codespec.index.store import Store
from codespec.index.update import apply_changes, withdraw
from codespec.index.watch import MAX_EVENTS, Hints, IndexKeeper, elected, relevant
from tests.index_support import SETTINGS, Workspace

ALPHA = "def alpha_one(value):\n    return value + alpha_constant\n"
BETA = "def beta_two(value):\n    return value * beta_constant\n"
SECRET = "token = ghp_" + "x" * 36 + "\n"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keeper(workspace: Workspace, clock: Clock) -> IndexKeeper:
    store = workspace.store
    return IndexKeeper(store.root, workspace.encoder, SETTINGS, threading.Event(), clock=clock)


@pytest.mark.parametrize(
    ("path", "meaning"),
    [
        ("", ""),
        ("/a.py", "a.py"),
        ("/d/e", "d/e"),
        ("/.gitignore", ".gitignore"),
        ("/.git/HEAD", ""),
        ("/.git/ORIG_HEAD", ""),
        ("/.git/info/exclude", ""),
        ("/sub/.git/HEAD", "sub"),
        ("/.git/index", None),
        ("/.git/refs/heads/HEAD", None),
        ("/node_modules/x/index.js", None),
        ("/d/__pycache__/a.pyc", None),
        ("2/a.py", None),
        ("/../a.py", None),
        ("/d/../../w/a.py", None),
        ("/d//./e/", "d/e"),
        ("/a\0.py", None),
    ],
)
def test_what_an_event_means(tmp_path: Path, path: str, meaning: str | None) -> None:
    assert relevant(str(tmp_path), f"{tmp_path}{path}") == meaning
    assert relevant(str(tmp_path), "/elsewhere/a.py") is None


@pytest.mark.parametrize("event", ["delete", "ignore", "secret", "secret name", "change", "folder"])
def test_old_text_goes_before_anything_is_read(workspace: Workspace, event: str) -> None:
    workspace.write("d/a.py", ALPHA)
    workspace.write("b.py", BETA)
    workspace.build()
    file = workspace.root / "d" / "a.py"
    paths = {"d/a.py"}
    if event == "delete":
        file.unlink()
    elif event == "ignore":
        workspace.write(".codespecignore", "a.py\n")
        paths = update.with_ruled({".codespecignore"})
    elif event == "secret":
        file.write_text(SECRET + ALPHA)
    elif event == "secret name":
        file.rename(file.with_name(".env"))
        paths = {"d/a.py", "d/.env"}
    elif event == "folder":
        file.parent.rename(workspace.root / "node_modules")
        paths = {"d"}
    else:
        file.write_text(BETA)
    assert withdraw(workspace.store, paths, SETTINGS) == 1
    assert workspace.index().paths == ("b.py",)
    assert not workspace.draft("alpha_one(value):\n    return value + al").startswith("pha")
    assert withdraw(workspace.store, paths, SETTINGS) == 0


def test_what_an_event_does_not_name_stays(workspace: Workspace) -> None:
    for name in ("a.py", "ab.py", "a/b.py", "c/a.py"):
        workspace.write(name, ALPHA + name)
    workspace.build()
    for name in ("a.py", "ab.py", "a/b.py", "c/a.py"):
        workspace.write(name, BETA + name)
    assert withdraw(workspace.store, {"a"}, SETTINGS) == 1
    assert workspace.index().paths == ("a.py", "ab.py", "c/a.py")
    report = apply_changes(workspace.root, workspace.encoder, SETTINGS, {"c"})
    assert report.n_tokenised == 1
    assert workspace.index().paths == ("a.py", "ab.py", "c/a.py")


def test_an_event_in_a_linked_or_excluded_folder_is_nothing(workspace: Workspace) -> None:
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_text(ALPHA)
    workspace.write("b.py", BETA)
    workspace.write(".gitignore", "out/\n")
    workspace.write("out/a.py", ALPHA)
    (workspace.root / "link").symlink_to(outside)
    (workspace.root / "a.py").symlink_to(outside / "a.py")
    workspace.build()
    paths = {"link/a.py", "out/a.py", "a.py", "out", "link", "b.py/c.py", "none"}
    report = apply_changes(workspace.root, workspace.encoder, SETTINGS, paths)
    assert not report.changed
    assert workspace.index().paths == (".gitignore", "b.py")


def test_events_where_nothing_is_indexed_cost_no_update(
    workspace: Workspace, keeper: IndexKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write(".gitignore", "out/\n*.o\n")
    workspace.write("a.py", ALPHA)
    keeper.run([set()])
    updates: list[set[str]] = []

    def recorded(*arguments: object, **options: object) -> BuildReport:
        updates.append(arguments[3])  # type: ignore[arg-type]
        return apply_changes(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("codespec.index.watch.apply_changes", recorded)
    for name in ("out/x.o", "out/deep/y.py", "out/.gitignore", "d/z.o"):
        workspace.write(name, BETA)
    (workspace.root / "link").symlink_to(workspace.root)
    keeper.handle({"out", "out/x.o", "out/deep/y.py", "out/.gitignore", "d/z.o", "link", "gone"})
    assert updates == []
    keeper.handle({"out/x.o", "a.py"})
    assert updates == [{"a.py"}]
    workspace.write(".gitignore", "*.o\n")
    keeper.handle({".gitignore"})
    assert set(workspace.index().paths) == {".gitignore", "a.py", "out/.gitignore", "out/deep/y.py"}
    updates.clear()
    workspace.store.manifest_path.write_bytes(b"{")
    keeper.handle({"out/x.o"})
    assert len(updates) == 1
    assert "a.py" in workspace.index().paths


def test_events_of_what_is_indexed_and_excluded_by_now_count(
    workspace: Workspace, keeper: IndexKeeper
) -> None:
    for name in ("a.py", "d/a.py", "d-e.py", "e/a.py", "f/.ignore"):
        workspace.write(name, ALPHA + name)
    keeper.run([set()])
    workspace.write(".gitignore", "a.py\n")
    keeper.handle({"d"})
    assert "d/a.py" not in workspace.index().paths
    keeper.handle({"a.py"})
    assert workspace.index().paths == ("d-e.py", "e/a.py", "f/.ignore")
    (workspace.root / "e" / "a.py").unlink()
    (workspace.root / "e").rmdir()
    keeper.handle({"e"})
    assert workspace.index().paths == ("d-e.py", "f/.ignore")


def test_without_an_index_events_build_all_of_it(workspace: Workspace) -> None:
    workspace.write("a.py", ALPHA)
    workspace.write("b.py", BETA)
    apply_changes(workspace.root, workspace.encoder, SETTINGS, {"a.py"})
    assert workspace.index().paths == ("a.py", "b.py")
    workspace.store.manifest_path.write_bytes(b"{")
    apply_changes(workspace.root, workspace.encoder, SETTINGS, {"a.py"})
    assert workspace.index().paths == ("a.py", "b.py")


def test_a_look_at_everything_when_events_are_too_many_or_time_passes(
    workspace: Workspace, keeper: IndexKeeper, clock: Clock
) -> None:
    keeper.run([set()])
    workspace.write("a.py", ALPHA)
    keeper.handle(set())  # nobody said a word
    assert workspace.index().paths == ()
    keeper.handle({f"none{i}" for i in range(MAX_EVENTS + 1)})
    assert workspace.index().paths == ("a.py",)
    workspace.write("b.py", BETA)
    clock.now += 3600
    keeper.handle(set())
    assert workspace.index().paths == ("a.py", "b.py")


def test_events_wait_while_another_process_writes(
    workspace: Workspace, keeper: IndexKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codespec.index.watch._BUSY_S", 0.0)
    keeper.run([set()])
    workspace.write("a.py", ALPHA)
    with workspace.store.writing():
        keeper.handle({"a.py"})
        with pytest.raises(IndexBusyError):
            workspace.build()
    assert workspace.index().paths == ()
    keeper.handle(set())
    assert workspace.index().paths == ("a.py",)


def test_the_watcher_ends_with_its_workspace(workspace: Workspace, keeper: IndexKeeper) -> None:
    file = workspace.write("a.py", ALPHA)
    keeper.run([set()])
    file.unlink()
    workspace.root.rmdir()

    def notices():
        yield {""}
        raise AssertionError("went on")

    keeper.run(notices())
    assert workspace.index().paths == ()


def test_quiet_moments_find_and_mend_damage(workspace: Workspace, keeper: IndexKeeper) -> None:
    workspace.write("a.py", ALPHA * 50)
    keeper.run([set()])
    manifest = workspace.store.read_manifest()
    assert manifest is not None
    path = workspace.store.segment_path(manifest.segments[0].name)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    assert check.find_damage(workspace.store)
    keeper.handle(set())  # finds it
    assert workspace.index().paths == ()
    keeper.handle(set())  # mends it
    assert check.find_damage(workspace.store) == []
    assert workspace.draft("def alpha_").startswith("one")
    keeper.handle(set())
    assert workspace.index().paths == ("a.py",)


def test_a_full_disk_does_not_end_the_watcher(
    workspace: Workspace, keeper: IndexKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither with a change, nor with damage that a quiet moment finds."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("codespec.index.watch._TROUBLE_S", 0.0)
    workspace.write("a.py", ALPHA * 50)
    keeper.run([set()])
    segment = next(keeper.store.folder.glob("*.seg"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"!")
    for paths in (set[str](), {"a.py"}):
        with monkeypatch.context() as patch:
            patch.setattr(Store, "write_manifest", full)
            keeper.handle(paths)
    keeper.handle(set())
    keeper.handle(set())
    assert check.find_damage(workspace.store) == []
    assert workspace.draft("def alpha_").startswith("one")


def test_a_reader_that_finds_damage_has_it_mended(
    workspace: Workspace, keeper: IndexKeeper
) -> None:
    """Also where the watcher found the segment sound before."""
    workspace.write("a.py", ALPHA * 50)
    keeper.run([set()])
    keeper.handle(set())
    manifest = workspace.store.read_manifest()
    assert manifest is not None
    path = workspace.store.segment_path(manifest.segments[0].name)
    data = bytearray(path.read_bytes())
    data[200] ^= 4
    path.write_bytes(data)
    reader = workspace.index()
    context = workspace.tokenizer.encode("def alpha_")
    assert len(reader.find(context, 8).proposal) == 0
    keeper.handle(set())  # takes it out
    assert not workspace.store.marked_damaged()
    assert workspace.index().paths == ()
    keeper.handle(set())  # builds it again
    assert check.find_damage(workspace.store) == []
    assert reader.refresh()
    assert len(reader.find(context, 8).proposal) == 8
    # A mark without damage is taken away.
    workspace.store.mark_damaged(manifest.segments[0].name)
    keeper.handle(set())
    assert not workspace.store.marked_damaged()
    assert workspace.index().paths == ("a.py",)


def test_hints_come_from_a_pipe_whose_end_stops_the_watcher(tmp_path: Path) -> None:
    root, stop = str(tmp_path), threading.Event()
    hints = Hints(root, stop)
    hints.listen(io.StringIO(f"{root}/a.py\n/elsewhere\n{root}/d/é.py\n{root}/.git/index\n"))
    assert stop.wait(30)
    assert hints.take() == {"a.py", "d/é.py"}
    assert hints.take() == set()


def test_one_of_many_watchers_is_elected_and_followed(workspace: Workspace) -> None:
    store, stop = workspace.store, threading.Event()
    waiting, took_over = threading.Event(), threading.Event()

    def second() -> None:
        waiting.set()
        with elected(Store(store.root, store.tokenizer_hash), stop) as is_ours:
            assert is_ours
            took_over.set()

    with elected(store, stop) as is_ours:
        assert is_ours
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(30)
        assert not took_over.is_set()
    assert took_over.wait(30)
    thread.join()
    with elected(store, stop):
        stop.set()
        with elected(Store(store.root, store.tokenizer_hash), stop) as is_ours:
            assert not is_ours
    assert os.path.exists(store.folder / "watch.lock")


def test_who_waits_to_watch_does_without_the_folder(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the index may be deleted at any moment."""
    store, sleep = workspace.store, time.sleep

    def meanwhile(seconds: float) -> None:
        shutil.rmtree(store.folder.parent, ignore_errors=True)
        sleep(seconds)

    with elected(store, threading.Event()):
        monkeypatch.setattr(time, "sleep", meanwhile)
        with elected(Store(store.root, store.tokenizer_hash), threading.Event()) as is_ours:
            assert is_ours
    workspace.write("a.py", ALPHA)
    workspace.build()
    assert workspace.index().paths == ("a.py",)
