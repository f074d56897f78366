"""The files that `make dist` made, installed from nothing: by pip and by uv, into empty
environments, with llama.cpp built anew once. It takes many minutes; `make test-dist` runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "dist").glob("codespec-*.*"))
PACKAGES = [file for file in FILES if file.suffix in (".gz", ".whl")]
SCRIPTS = "Scripts" if os.name == "nt" else "bin"

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a user who has nothing yet. What is built is there for the next test."""
    folder = tmp_path_factory.mktemp("home")
    kept = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_"))}
    return {
        **kept,
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "CODESPEC_CACHE_DIR": str(folder / "cache"),
        "CODESPEC_RUNTIME_DIR": str(folder / "run"),
        "CODESPEC_BACKEND": "cpu",
    }


def run(env: dict[str, str], *command: str | Path) -> str:
    done = subprocess.run(
        command, env=env, cwd=env["HOME"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def by_pip(package: Path, into: Path, env: dict[str, str]) -> Path:
    venv.create(into, with_pip=True, symlinks=os.name != "nt")
    run(env, into / SCRIPTS / "python", "-m", "pip", "install", "--quiet", package)
    return into / SCRIPTS / "codespec"


def by_uv(package: Path, into: Path, env: dict[str, str]) -> Path:
    env = {**env, "UV_TOOL_DIR": str(into / "tools"), "UV_TOOL_BIN_DIR": str(into / "bin")}
    uv = Path(sys.executable).parent / "uv"
    run(env, uv, "tool", "install", "--python", sys.executable, package)
    return into / "bin" / "codespec"


def test_there_is_an_archive_and_a_wheel() -> None:
    assert [file.suffix for file in PACKAGES] == [".whl", ".gz"]


@pytest.mark.parametrize("install", [by_pip, by_uv])
@pytest.mark.parametrize("package", PACKAGES, ids=lambda file: file.suffix[1:])
def test_a_line_is_completed(
    home: dict[str, str], tmp_path: Path, package: Path, install: object
) -> None:
    assert callable(install)
    program = install(package, tmp_path / "environment", home)
    assert isinstance(program, Path)
    said = run(home, program, "setup")
    assert "llama.cpp (cpu) is ready" in said
    assert "100 %" in said or "using the wheel built before" in said
    file = tmp_path / "total.py"
    file.write_text("def total(values):\n    result = 0\n    for value in values:\n        ")
    assert "value" in run(home, program, "complete", f"{file}:4:9")
    shutil.rmtree(tmp_path / "environment")
