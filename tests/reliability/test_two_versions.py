"""Two versions of codespec on one machine, each in an environment of its own, for one user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import codespec as package
import codespec_lsp
from codespec.daemon import control
from codespec.native import _core
from tests.e2e.command_line import codespec
from tests.e2e.conftest import CODE, CURSOR, Home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="environments lie elsewhere there")

OTHER = "0.0.1"


@pytest.fixture
def other(tmp_path: Path) -> list[str]:
    """The command of the other version, in an environment that has our other packages."""
    folder = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    (site,) = folder.glob("lib/python*/site-packages")
    shared = [path for path in sys.path if path.endswith("site-packages")]
    # Paths alone: what installs codespec in place is a line of another such file.
    (site / "shared.pth").write_text("".join(f"{path}\n" for path in shared))
    for name, module in (("codespec", package), ("codespec_lsp", codespec_lsp)):
        assert module.__file__ is not None
        shutil.copytree(
            Path(module.__file__).parent, site / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    native = Path(_core.__file__)
    for path in (native, *native.parent.glob("libcodespec_kernels*")):
        shutil.copy(path, site / "codespec" / "native")
    init = site / "codespec" / "__init__.py"
    init.write_text(init.read_text().replace(package.__version__, OTHER))
    return [str(folder / "bin" / "python"), "-m", "codespec"]


def run(command: list[str], *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ,
        cwd=os.environ["HOME"],
    )


def test_each_has_its_own_daemon_and_both_one_index(home: Home, other: list[str]) -> None:
    file = home.workspace / "a.py"
    file.write_text(CODE)
    place = f"{file}:{CURSOR[0] + 1}:{CURSOR[1] + 1}"
    asked = ("complete", "--daemon", "--json", place)
    ours = json.loads(codespec(*asked)[0])
    done = run(other, *asked)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"] == ours["text"]
    report = run(other, "daemon", "status", "--json")
    assert report.returncode == 0, report.stderr
    theirs = json.loads(report.stdout)
    assert theirs["version"] == OTHER
    mine = control.status(home.settings)
    assert mine is not None
    assert mine.pid != theirs["pid"]
    assert len(home.daemon_pids()) == 2
    for command in (["index", home.workspace], ["index", "--verify", home.workspace]):
        codespec(*command)
        assert run(other, *command).returncode == 0
    assert json.loads(codespec("index", "--json", home.workspace)[0])["n_files"] == 1
    assert run(other, "daemon", "stop").returncode == 0
    assert json.loads(codespec(*asked)[0])["text"] == ours["text"]
