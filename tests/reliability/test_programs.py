"""A program that lies in a workspace is not run, wherever the PATH leads."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codespec.system import programs
from codespec.system.processes import module_command

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = [path for name in ("codespec", "lsp", "bench") for path in (ROOT / name).rglob("*.py")]


def executable(path: Path, says: str = "") -> Path:
    """A program that leaves a file behind, beside it, when it is run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {path.parent}/pwned\necho {says}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone that this process works in, with programs in it."""
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    for name in ("tool", "bin/tool", "sub/tool"):
        executable(folder / name)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(programs, "_named", set())
    return folder


def linked(to: Path, at: Path) -> Path:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(to)
    return at


POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links and names of POSIX")


@POSIX
@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        ":/nowhere",
        "/nowhere:",
        "/nowhere::/elsewhere",
        "bin",
        "./bin:../repository/bin",
        "{repository}",
        "{repository}/",
        "{repository}/bin",
        "{repository}/sub/../bin",
        "{repository}/../repository/bin",
        "{outside}/link",  # the folder is a link
        "{outside}/above/bin",  # a folder above it is
        "{outside}/programs",  # the program is
        "{outside}/far",  # it is a link to a link
        "{outside}/through",  # and its way leads through the clone
        "{repository}/out",  # that leads out
    ],
)
def test_nothing_of_a_workspace_is_found(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    outside = tmp_path / "outside"
    program = executable(tmp_path / "good" / "tool")
    linked(repository / "bin", outside / "link")
    linked(repository, outside / "above")
    linked(repository / "bin" / "tool", outside / "programs" / "tool")
    linked(outside / "programs" / "tool", outside / "far" / "tool")
    linked(program, repository / "hop")
    linked(repository / "hop", outside / "through" / "tool")
    linked(program.parent, repository / "out")
    found = path.format(repository=repository, outside=outside)
    monkeypatch.setenv("PATH", found)
    assert programs.find("tool") is None
    with pytest.raises(FileNotFoundError):
        programs.command("tool", "--version")
    # What comes later is found, and what libraries look for by themselves comes from there.
    monkeypatch.setenv("PATH", f"{found}:{program.parent}")
    assert programs.find("tool") == str(program)
    for part in programs.path().split(":"):
        assert part not in ("", ".", "bin")
        assert not Path(part).resolve().is_relative_to(repository)


@POSIX
@pytest.mark.parametrize("at", ["sub", "sub/deeper"])
def test_nor_of_one_that_the_working_folder_lies_in(
    repository: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    (repository / at).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(repository / at)
    monkeypatch.setenv("PATH", str(repository / "bin"))
    assert programs.find("tool") is None


@POSIX
def test_nor_of_one_that_a_command_is_about(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (repository / ".git").rmdir()
    monkeypatch.setenv("PATH", str(repository / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert programs.find("tool") == str(repository / "bin" / "tool")
    programs.never_below(repository)
    assert programs.find("tool") is None


@POSIX
def test_the_users_own_programs_are_found_from_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = executable(tmp_path / ".local" / "bin" / "tool")
    (tmp_path / ".git").mkdir()  # who keeps settings so
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(own.parent))
    monkeypatch.chdir(tmp_path)
    assert programs.find("tool") == str(own)


def test_a_path_is_no_name() -> None:
    with pytest.raises(ValueError, match="not a name"):
        programs.find(os.path.join(".", "tool"))


@POSIX
@pytest.mark.parametrize("arguments", [("models", "recommend"), ("doctor", "--quick")])
def test_commands_run_nothing_of_the_workspace(
    repository: Path, arguments: tuple[str, ...]
) -> None:
    for name in ("nvidia-smi", "nvim", "code", "git", "gcc", "cc", "ldconfig"):
        executable(repository / name)
        executable(repository / "bin" / name)
    path = f":bin:{repository / 'bin'}:."
    done = subprocess.run(
        module_command("codespec", *arguments),
        cwd=repository, env={**os.environ, "PATH": path}, capture_output=True, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert not list(repository.rglob("pwned")), done.stdout


# --- the product looks programs up in one place -------------------------------------------------

RUNNERS = {
    "asyncio": {"create_subprocess_exec"},
    "subprocess": {"run", "Popen", "call", "check_call", "check_output"},
}
NEVER = {
    "asyncio": ("create_subprocess_shell",),
    "ctypes.util": ("find_library",),
    "os": ("exec", "spawn", "posix_spawn", "system", "popen", "startfile"),
    "platform": ("processor", "uname"),
    "shutil": ("which",),
    "subprocess": ("getoutput", "getstatusoutput"),
}
"""Beginnings of the names of functions that look a program up on the PATH, or run a shell."""
WHOLE = {"command", "find", "module_command", "bound_command", "git_command", "sys.executable"}
"""Expressions for the first word of a command that give a program's whole path."""
GIVEN = {
    ("daemon/process.py", "command"),  # that of the keeper
    ("gpu/build.py", "load"),  # what it has built
    ("doctor/checks.py", "path"),  # what was found
    ("system/llama_build.py", "command"),  # that of a pip by its whole path
    ("maintainers/finishing.py", "python"),  # its own argument
    ("peers/server.py", "self._binary"),
}


def calls(tree: ast.AST) -> Iterator[tuple[str, str, ast.Call]]:
    """(what it is a function of, its name, the call)"""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            at = node.func
            if isinstance(at, ast.Attribute):
                yield ast.unparse(at.value), at.attr, node
            elif isinstance(at, ast.Name):
                yield "", at.id, node


def is_whole(value: ast.expr, known: Callable[[str], list[ast.expr]], depth: int = 0) -> bool:
    """True if the first word of a command is no name that is looked up on the PATH."""
    if depth > 5:
        return False
    if isinstance(value, ast.Starred):
        value = value.value
    if isinstance(value, ast.List | ast.Tuple):
        return bool(value.elts) and is_whole(value.elts[0], known, depth + 1)
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2].strip("_") in WHOLE
    if isinstance(value, ast.BinOp):
        return is_whole(value.left, known, depth + 1)
    word = ast.unparse(value)
    given = known(word)
    return word in WHOLE or (bool(given) and all(is_whole(e, known, depth + 1) for e in given))


def values_in(tree: ast.AST, given: set[str]) -> Callable[[str], list[ast.expr]]:
    """Returns a function from a name to the values assigned to it anywhere in a file. given: names
    that need no look-up."""
    whole = ast.parse("sys.executable", mode="eval").body
    found: dict[str, list[ast.expr]] = {word: [whole] for word in given}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id not in given:
                    found.setdefault(target.id, []).append(node.value)
    return lambda name: found.get(name, [])


@pytest.mark.parametrize("path", PRODUCT, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_are_looked_up_in_one_place(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    given = {word for file, word in GIVEN if path.as_posix().endswith(file)}
    known = values_in(tree, given)
    for of, name, call in calls(tree):
        where = f"{path}:{call.lineno}"
        assert not name.startswith(NEVER.get(of, ("\0",))), f"{where}: {of}.{name}"
        if name in RUNNERS.get(of, ()):
            assert not any(keyword.arg in ("shell", "executable") for keyword in call.keywords)
            assert call.args, where
            first = call.args[0]
            assert is_whole(first, known), f"{where}: {ast.unparse(first)}"
