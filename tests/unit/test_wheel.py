"""The wheel holds what users run, and that is complete without what only maintainers run."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path, PurePosixPath

import pytest

from codespec.native import _core

ROOT = Path(__file__).parents[2]
PACKAGES = {"codespec": "codespec", "codespec_lsp": "lsp", "codespec_bench": "bench"}
MAINTAINERS = (
    "codespec/train/",
    "codespec_bench/maintainers/",
    "codespec_bench/gpu/",
    "codespec_bench/capacity/",
)
BUILD = """
import sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], {"wheel.cmake": "false", "wheel.py-api": "py3"})
"""
# The command says where it can be run.
TRIED_FIRST = {("codespec.cli.bench.ablation", "codespec_bench.maintainers")}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files, which the build backend chose; native code is that of the
    environment.
    """
    built, site = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-c", BUILD, built], cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    for library in Path(_core.__file__).parent.glob("*.so"):
        shutil.copy(library, site / "codespec" / "native")
    return site


def run(site: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """The command line of that folder, away from the checkout."""
    packages = [folder for folder in sys.path if Path(folder).name == "site-packages"]
    return subprocess.run(
        [sys.executable, "-S", "-m", "codespec", *args],
        cwd=site,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *packages])},
        capture_output=True,
        text=True,
    )


def modules(root: Path) -> dict[str, Path]:
    """The modules below a folder, by name."""
    found: dict[str, Path] = {}
    for path in [*root.rglob("*.py"), *root.rglob("*.pyi")]:
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: set[str]) -> Iterator[str]:
    """The modules of ours that a module imports. known: all there are in a checkout."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            members = {f"{source}.{alias.name}" for alias in node.names} & known
            yield from members or ({source} & known)


def test_what_only_maintainers_run_is_left_out(installed: Path) -> None:
    names = {p.relative_to(installed).as_posix() for p in installed.rglob("*") if p.is_file()}
    assert not [name for name in names if name.startswith(MAINTAINERS)]
    assert not [name for name in names if name.endswith((".jsonl", ".cpp", ".h"))]
    assert not [name for name in names if PurePosixPath(name).match("codespec_bench/log/*")]
    assert all((ROOT / name.replace("codespec_bench", "bench")).is_dir() for name in MAINTAINERS)
    assert {
        "codespec/distill/job.py",
        "codespec/training/network.py",
        "codespec/drafters/prior.bin",
        "codespec_lsp/__main__.py",
        "codespec_bench/curves.json",
        "codespec_bench/gate.py",
    } <= names


def test_nothing_in_it_imports_what_is_left_out(installed: Path) -> None:
    checkout = {
        package + name.removeprefix(folder)
        for package, folder in PACKAGES.items()
        for name in modules(ROOT)
        if name.partition(".")[0] == folder
    }
    there = modules(installed)
    missing = {
        (name, wanted)
        for name, path in there.items()
        for wanted in imports(name, path, checkout)
        if wanted not in there
    }
    assert {
        (name, wanted) for name, wanted in missing
        if not any(name == by and wanted.startswith(part) for by, part in TRIED_FIRST)
    } == set()  # fmt: skip
    assert {name for name, _ in missing} == {name for name, _ in TRIED_FIRST}


@pytest.mark.parametrize(
    "args", [["bench"], ["distill"], ["bench", "gate"], ["bench", "ablation"]], ids=" ".join
)
def test_its_commands_say_what_they_do(installed: Path, args: list[str]) -> None:
    done = run(installed, *args, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: ")


def test_a_benchmark_that_is_not_in_it_names_the_checkout(installed: Path) -> None:
    done = run(installed, "bench", "ablation", ".")
    assert done.returncode == 1
    assert "`codespec bench ablation` is for maintainers" in done.stderr
    assert "checkout" in done.stderr
    assert "Traceback" not in done.stderr
