"""Histories as they are: parts of a repository, odd names and line ends, what git cannot read."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.errors import InputError
from codespec_bench import history as module
from codespec_bench.history import History
from codespec_bench.places import CutPlace, places_in
from codespec_bench.replay_trees import CommitTrees
from codespec_bench.surroundings import before

FIRST = "one = 1\n"
MORE = "two = 2\nthree = 3\n"


def git(root: Path, *args: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *identity, *args], check=True, capture_output=True)


def repository(root: Path, names: tuple[str, ...], first: str = FIRST) -> Path:
    """Two commits: each file begins with `first`, and MORE comes behind it."""
    root.mkdir()
    git(root, "init", "-q")
    for text in (first, first + MORE):
        for name in names:
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(text.encode())
        git(root, "add", "-A")
        git(root, "commit", "-qm", "x")
    return root


def test_a_folder_inside_of_a_repository_has_its_own_history(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", ("inside/a.py", "top.py"))
    (commit,) = History(root / "inside").commits(9)
    assert [(h.path, h.prefix, h.text) for h in commit.hunks] == [("a.py", FIRST, MORE)]
    assert set(commit.tree) == {"a.py"}


@pytest.mark.parametrize("end", ["\f", "\v", "\x1c", "\u2028", "\x85", "\r"])
def test_lines_end_where_git_says(tmp_path: Path, end: str) -> None:
    first = f"a = 1\n{end}\nb = 2 {end}c\nd = 4\n"
    root = repository(tmp_path / "repo", ("a.py",), first)
    ((hunk,),) = (commit.hunks for commit in History(root).commits(9))
    assert (hunk.prefix, hunk.text, hunk.suffix) == (first, MORE, "")


def test_names_of_files_are_no_patterns(tmp_path: Path) -> None:
    names = ("[id]/i.py", "i/i.py", ":x.py", "a b.py", "-y.py", "ü.py", "n\nl.py", "*.py")
    (commit,) = History(repository(tmp_path / "repo", names)).commits(9)
    assert sorted(hunk.path for hunk in commit.hunks) == sorted(names)
    assert {(hunk.prefix, hunk.text) for hunk in commit.hunks} == {(FIRST, MORE)}


def test_renames_binary_files_merges_and_submodules(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", ("a.py",))
    other = repository(tmp_path / "other", ("b.py",))
    git(root, "mv", "a.py", "c.py")
    (root / "binary.py").write_bytes(b"\0\1\n\2\n")
    git(
        root,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(other),
        "sub.py",
    )
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    git(root, "checkout", "-qb", "side", "HEAD^")
    (root / "d.py").write_text(MORE)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    git(root, "merge", "-q", "--no-edit", "-")
    commits = History(root).commits(9)
    assert sorted(h.path for c in commits for h in c.hunks) == ["a.py", "d.py"]
    assert all(set(c.tree) == {"a.py"} for c in commits)


def test_a_renamed_file_is_no_new_text_and_its_old_version_is_that_of_the_new_name(
    tmp_path: Path,
) -> None:
    first = "".join(f"line_{i} = {i}\n" for i in range(20))
    root = repository(tmp_path / "repo", ("old/a.py", "old/moved.py"), first)
    (root / "other.py").write_text(FIRST)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    git(root, "mv", "old", "new")
    (root / "new" / "a.py").write_text(first + MORE + MORE)
    git(root, "commit", "-qam", "x")
    # What the user's settings say of it does not count.
    git(root, "config", "diff.renames", "false")
    git(root, "config", "diff.renameLimit", "1")
    commit = History(root).commits(1)[0]
    assert [(h.path, h.prefix, h.text) for h in commit.hunks] == [("new/a.py", first + MORE, MORE)]
    assert set(commit.tree) == {"new/a.py", "new/moved.py", "other.py"}
    tree = CommitTrees(History(root), ByteTokenizer()).of(commit, "new/a.py")
    assert sorted(map(len, tree.living)) == [len(FIRST), len(first + MORE)]


def test_a_file_that_comes_from_outside_of_the_folder_or_the_paths_is_a_new_one(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "repo", ("a.py", "b.txt", "inside/c.py"))
    git(root, "mv", "a.py", "inside/a.py")
    git(root, "mv", "b.txt", "inside/b.py")
    git(root, "commit", "-qm", "x")
    commit = History(root / "inside").commits(1)[0]
    assert [(h.path, h.text) for h in commit.hunks] == [
        ("a.py", FIRST + MORE),
        ("b.py", FIRST + MORE),
    ]
    assert set(commit.tree) == {"c.py"}
    (whole,) = History(root).commits(1)  # there, both are only renamed
    assert [h.path for h in whole.hunks] == ["a.py", "inside/c.py"]


def test_attributes_hide_no_text_and_what_holds_nul_is_none(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", ("a.py",))
    (root / ".git" / "info" / "attributes").write_text("*.py -diff\n")
    (commit,) = History(root).commits(9)
    assert [h.text for h in commit.hunks] == [MORE]
    for text in (FIRST + MORE + "\0", FIRST + MORE + "\0" + MORE):
        (root / "a.py").write_text(text)
        git(root, "commit", "-qam", "x")
    assert History(root).commits(9) == [commit]
    (root / "b.py").write_text(MORE)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    (last,) = History(root).commits(1)
    tree = CommitTrees(History(root), ByteTokenizer()).of(last, "b.py")
    assert [len(tokens) for tokens in tree.living] == [0]


def test_files_of_no_commit_are_looked_for_by_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(repository(tmp_path / "repo", ("a.py", "b.py")), "*.go")
    started: list[Any] = []
    popen = subprocess.Popen

    def counted(command: Any, **more: Any) -> Any:
        started.append(command)
        return popen(command, **more)

    monkeypatch.setattr(module.subprocess, "Popen", counted)
    assert history.commits(9) == []
    assert len(started) <= 2, "a process for each commit"
    assert "say which with --paths" in str(history.nothing())


def test_what_git_cannot_read_is_said_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    subprocess.run(["git", "init", "-q", str(empty)], check=True)
    with pytest.raises(InputError, match="no commit in it yet"):
        History(empty).commits(1)
    (empty / "a.py").write_text(FIRST + MORE)
    git(empty, "add", "-A")
    git(empty, "commit", "-qm", "x")
    assert History(empty).commits(1) == []
    assert "It has one commit, and edits begin with the second" in str(History(empty).nothing())
    root = repository(tmp_path / "repo", ("a.py",))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", root.as_uri(), str(clone))
    shallow = History(clone)
    assert shallow.commits(9) == []
    assert "fetch --unshallow" in str(shallow.nothing())
    damaged = History(root)
    for file in (root / ".git" / "objects").glob("??/*"):
        if file.stat().st_size < 60:  # texts, not commits
            file.unlink()
    with pytest.raises(InputError, match="repo: "):
        damaged.commits(9)
    with pytest.raises(InputError, match="repo: "):  # of a file that no commit changes
        damaged.blob("0" * 39 + "1")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    with pytest.raises(InputError, match="dubious ownership"):
        History(root)


def test_what_git_tells_its_hooks_names_no_other_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other", ("other.py",))
    root = repository(tmp_path / "repo", ("a.py",))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    monkeypatch.setenv("GIT_DIFF_OPTS", "-u9")
    (commit,) = History(root).commits(9)
    assert [(hunk.path, hunk.text) for hunk in commit.hunks] == [("a.py", MORE)]


def test_no_program_runs_that_a_repository_names(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", ("a.py", "b.py"))
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/pwned'\n")
    program.chmod(0o755)
    named = ("core.fsmonitor", "core.sshCommand", "diff.external", "diff.x.command")
    named += ("diff.x.textconv", "filter.x.clean", "filter.x.process", "remote.o.uploadpack")
    others = {"extensions.partialClone": "o", "remote.o.promisor": "true", "remote.o.url": "/"}
    for key, value in ({key: str(program) for key in named} | others).items():
        git(root, "config", key, value)
    (root / ".git" / "info" / "attributes").write_text("*.py diff=x filter=x\n")
    (root / "b.py").write_text(FIRST)
    (commit,) = History(root).commits(9)
    assert len(commit.hunks) == 2
    text = FIRST + MORE
    place = CutPlace(root / "a.py", root, "python", "line", text[:-2], text[-2:-1], "\n")
    assert [step.prefix for step in before(place)]
    with pytest.raises(InputError, match="no places"):  # in so little
        places_in(root, 1)
    with pytest.raises(InputError, match="repo: "):  # and none to fetch what is not here
        History(root).blob("0" * 39 + "1")
    assert not (tmp_path / "pwned").exists()


def test_who_stops_listening_does_not_wait_for_git(tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\necho one\nexec sleep 20\n")
    program.chmod(0o755)
    history = History(repository(tmp_path / "repo", ("a.py",)))
    started = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path), prepend=":")
        assert next(history._lines("rev-list")) == "one\n"
    assert time.monotonic() - started < 10


def test_other_files_of_a_change_are_found_from_a_folder_inside(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", ("inside/a.py", "inside/ü [b].py", "top.py")) / "inside"
    text = FIRST + MORE
    place = CutPlace(root / "a.py", root, "python", "line", text[:-2], text[-2:-1], "\n")
    steps = [(request.path, request.prefix, request.suffix) for request in before(place)]
    other = str(root / "ü [b].py")
    assert steps == [(other, FIRST, ""), (other, FIRST + MORE, "")]
