"""Children run our code, wherever they are started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codespec.processes import module_command


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
