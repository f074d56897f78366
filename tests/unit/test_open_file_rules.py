"""Which open files lend to others, by the rules of folders and of where links lead."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codespec.rules import open_files
from codespec.rules.open_files import FolderSnapshot, OpenFileRules
from tests.index_support import git, isolate


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    isolate(monkeypatch, tmp_path)
    root = tmp_path / "w"
    root.mkdir()
    return root


def test_rules_for_open_files(home: Path) -> None:
    rules = OpenFileRules()
    workspace = str(home)

    def why(path: str) -> str:
        return rules.why_excluded(path, workspace)

    assert why("") == ""
    assert why(str(home / "new.py")) == ""
    assert "secrets" in why(str(home / ".env"))
    assert "secrets" in why(str(home / ".ssh" / "config"))
    assert "secrets" in why("/elsewhere/.aws/config")
    assert "never indexed" in why(str(home / "node_modules" / "a.js"))
    assert why("/elsewhere/a.py") == ""
    (home / "d").mkdir()
    for _ in range(2):
        (home / "d" / ".codespecignore").write_text("*.py\n")
        assert "ignored" in why(str(home / "d" / "a.py"))
        (home / "d" / ".codespecignore").unlink()
        assert why(str(home / "d" / "a.py")) == ""
    outside = home.parent / "repository"
    (outside / ".git").mkdir(parents=True)
    (outside / ".gitignore").write_text("out/\n")
    assert "ignored" in why(str(outside / "out" / "a.py"))
    assert why(str(outside / "a.py")) == ""


def test_rules_are_those_of_where_a_link_leads_at_the_time(home: Path) -> None:
    rules = OpenFileRules()
    (home / "sub").mkdir()
    (home / "sub" / "real.py").write_text("x = 1\n")
    (home / ".env").write_text("KEY=1\n")
    link = home / "link.py"
    link.symlink_to("sub/real.py")
    assert rules.why_excluded(str(link), str(home)) == ""
    (home / "sub" / ".codespecignore").write_text("real.py\n")
    assert "ignored" in rules.why_excluded(str(link), str(home))
    (home / "sub" / ".codespecignore").unlink()
    assert rules.why_excluded(str(link), str(home)) == ""
    link.unlink()
    link.symlink_to(".env")
    assert "secrets" in rules.why_excluded(str(link), str(home))


def test_questions_of_one_moment_have_the_rules_of_their_folders(home: Path) -> None:
    rules = OpenFileRules(["left/"])
    for name in ("one", "two", "left"):
        (home / name).mkdir()
    other = home.parent / "other"
    (other / ".git").mkdir(parents=True)
    (other / ".gitignore").write_text("a.py\n")

    def used() -> set[str]:
        snapshot = FolderSnapshot()
        folders = (home / "one", home / "two", home / "left", other)
        paths = [folder / name for folder in folders for name in ("a.py", "b.py")]
        return {
            f"{path.parent.name}/{path.name}"
            for path in paths
            if not rules.why_excluded(str(path), str(home), snapshot=snapshot)
        }

    all_used = {"one/a.py", "one/b.py", "two/a.py", "two/b.py", "other/b.py"}
    assert used() == all_used
    (home / "one" / ".ignore").write_text("a.py\n")
    (home / "two" / ".ignore").write_text("b.py\n")
    assert used() == all_used - {"one/a.py", "two/b.py"}
    (home / "one" / ".ignore").unlink()
    assert used() == all_used - {"two/b.py"}


def test_what_git_ignores_by_files_elsewhere_is_heeded_from_then_on(home: Path) -> None:
    git(home, "init", "-q")
    git(home, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-mx")
    git(home, "worktree", "add", "-q", str(home.parent / "other"))
    rules = OpenFileRules()
    paths = {str(folder / name) for folder in (home, home.parent / "other") for name in "abc"}

    def ignored() -> set[str]:
        return {p for p in paths if rules.why_excluded(p, os.path.dirname(p))}

    expected: set[str] = set()
    assert ignored() == expected
    mine = Path(os.environ["HOME"])
    (mine / "mine").write_text("b\n")
    for file, text, name in (
        (home / ".git/info/exclude", "a\n", "a"),
        (mine / ".gitconfig", "[core]\nexcludesFile = ~/mine\n", "b"),
        (mine / "mine", "b\nc\n", "c"),
    ):
        file.write_text(text)
        expected |= {p for p in paths if p.endswith(f"/{name}")}
        assert ignored() == expected


def test_what_a_link_leads_to_is_heeded_from_then_on(home: Path) -> None:
    rules = OpenFileRules()
    for name in ("sub/real.py", "sub/other.py", ".env"):
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("x = 1\n")
    link = home / "link.py"
    link.symlink_to("sub/real.py")
    (home / "folder").symlink_to("sub")

    def why(path: Path) -> str:
        return rules.why_excluded(str(path), str(home))

    places = [link, home / "folder" / "real.py"]
    assert [why(path) for path in places] == ["", ""]
    (home / "sub" / ".gitignore").write_text("real.py\n")
    assert all("ignored" in why(path) for path in places)
    (home / "sub" / ".gitignore").unlink()
    assert [why(path) for path in places] == ["", ""]
    for target, excluded in ((".env", True), ("sub/other.py", False)):
        link.unlink()
        link.symlink_to(target)
        assert bool(why(link)) is excluded


def test_rules_above_a_linked_folder_count_though_its_file_leads_elsewhere(home: Path) -> None:
    rules = OpenFileRules()
    for folder in ("sub/inner", "other"):
        (home / folder).mkdir(parents=True)
    (home / "other" / "b.py").write_text("x = 1\n")
    (home / "sub" / "inner" / "a.py").symlink_to(home / "other" / "b.py")
    (home / "link").symlink_to("sub/inner")
    path = str(home / "link" / "a.py")
    assert rules.why_excluded(path, str(home)) == ""
    (home / "sub" / ".gitignore").write_text("inner/\n")
    assert "ignored" in rules.why_excluded(path, str(home))


def test_rules_above_a_workspace_opened_through_a_link_are_heeded(home: Path) -> None:
    rules = OpenFileRules()
    (home / "repository" / ".git").mkdir(parents=True)
    (home / "repository" / "part").mkdir()
    (home / "link").symlink_to(home / "repository" / "part")
    path, workspace = str(home / "link" / "a.py"), str(home / "link")
    assert rules.why_excluded(path, workspace) == ""
    (home / "repository" / ".gitignore").write_text("a.py\n")
    assert "ignored" in rules.why_excluded(path, workspace)
    (home / "other").mkdir()
    (home / "link").unlink()
    (home / "link").symlink_to(home / "other")
    assert rules.why_excluded(path, workspace) == ""


def test_a_folder_is_looked_through_again_when_something_came_or_went(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = OpenFileRules()
    folder = home / "d"
    folder.mkdir()

    def why() -> str:
        time.sleep(0.02)  # times of files are no finer than that everywhere
        return rules.why_excluded(str(folder / "a.py"), str(home))

    assert why() == ""
    monkeypatch.setattr(open_files, "_FRESH_NS", 0)
    for _ in range(2):
        assert why() == why() == ""
        (folder / ".codespecignore").write_text("*.py\n")
        assert "ignored" in why()
        (folder / ".codespecignore").write_text("*.pyc\n")
        assert why() == ""
        (folder / ".codespecignore").write_text("*.p?\n")
        assert "ignored" in why()
        (folder / ".codespecignore").unlink()


def test_what_is_in_a_folder_that_changed_just_now_is_not_remembered(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two changes may come so close that the folder's time is the same."""
    rules = OpenFileRules()
    path, before = home / "a.py", os.stat(home)
    assert rules.why_excluded(str(path), str(home)) == ""
    (home / ".codespecignore").write_text("*.py\n")
    true_stat = os.stat

    def same_time(name: str) -> os.stat_result:
        return before if name == str(home) else true_stat(name)

    monkeypatch.setattr(os, "stat", same_time)
    assert "ignored" in rules.why_excluded(str(path), str(home))
