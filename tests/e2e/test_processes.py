"""Children run our code, wherever they are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.system.processes import bound_command, module_command


@pytest.mark.parametrize("name", ["msgspec", "codespec", "click", "sitecustomize"])
def test_a_repository_is_no_place_to_import_from(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("open('pwned', 'w')\n")
    command = module_command("codespec", "index", "--status", "--json")
    env = {**os.environ, "CODESPEC_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == b"[]"
    assert not (tmp_path / "pwned").exists()


def test_building_in_a_hostile_folder_runs_nothing_of_it(tmp_path: Path) -> None:
    """The whole command, which starts itself and its parsers."""
    workspace = tmp_path / "w"
    workspace.mkdir()
    for name in ("msgspec", "tree_sitter", "runpy", "codespec"):
        (workspace / f"{name}.py").write_text("open('pwned', 'w')\n")
    env = {**os.environ, "CODESPEC_CACHE_DIR": str(tmp_path / "cache")}
    command = module_command("codespec", "index", ".", "--json")
    done = subprocess.run(command, cwd=workspace, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b'"n_files":4' in done.stdout.replace(b" ", b"")
    assert not (workspace / "pwned").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_bound_child_may_clean_up_when_its_parent_is_gone(tmp_path: Path) -> None:
    """Also one that waits for a child of its own, which has no input and not the pipe."""
    (tmp_path / "bound.py").write_text(
        """if True:
        import subprocess, sys
        from codespec.system.processes import ending_in_order
        child = "import sys, time; print(repr(sys.stdin.read()), flush=True); time.sleep(600)"
        with ending_in_order():
            try:
                with subprocess.Popen([sys.executable, "-c", child]) as process:
                    try:
                        process.wait()
                    finally:
                        process.kill()
            finally:
                print("cleaned up")
        """
    )
    command = bound_command("bound")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "''\n", "it runs, and input is at its end"
        child.stdin.close()
        assert child.stdout.read() == "cleaned up\n"
    assert child.returncode == 128 + signal.SIGTERM
