"""The wheel holds what users run, and that is complete without what only maintainers run."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path, PurePosixPath

import click
import pytest

from codespec import __version__
from codespec.native import _core
from codespec.system import accelerators, llama_build
from codespec.system.folders import cache_dir

ROOT = Path(__file__).parents[2]
PACKAGES = {"codespec": "codespec", "codespec_lsp": "lsp", "codespec_bench": "bench"}
MAINTAINERS = (
    "codespec/train/",
    "codespec_bench/maintainers/",
    "codespec_bench/gpu/",
    "codespec_bench/capacity/",
)
PACK = """
import sys
from scikit_build_core.build import build_sdist
build_sdist(sys.argv[1])
"""
BUILD = """
import sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], {"wheel.cmake": "false", "wheel.py-api": "py3"})
"""
# The command says where it can be run.
TRIED_FIRST = {("codespec.cli.bench.ablation", "codespec_bench.maintainers")}

# Named at import: tests get cache folders of their own.
BUILT = cache_dir() / "wheels"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the source archive, without native code."""
    built, source = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("source")
    for code, folder in ((PACK, ROOT), (BUILD, source / f"codespec-{__version__}")):
        command = [sys.executable, "-c", code, built]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        if folder == ROOT:
            with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
                archive.extractall(source, filter="data")
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files, which the build backend chose; native code is that of the
    environment.
    """
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
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
    assert {name.partition("/")[0] for name in names} == {
        *PACKAGES,
        f"codespec-{__version__}.dist-info",
    }
    assert all((ROOT / name.replace("codespec_bench", "bench")).is_dir() for name in MAINTAINERS)
    assert {
        "codespec/distill/job.py",
        "codespec/training/network.py",
        "codespec/drafters/prior.bin",
        "codespec/models/bundled/codespec-base.gguf",
        "codespec/system/build-tools.txt",
        "codespec_lsp/__main__.py",
        "codespec_bench/curves.json",
        "codespec_bench/gate.py",
    } <= names


def test_nothing_in_it_imports_what_is_left_out(installed: Path) -> None:
    checkout = {
        f"{package}.{name}".rstrip(".")
        for package, folder in PACKAGES.items()
        for name in modules(ROOT / folder)
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


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which pip has installed the wheel, and which sees the packages that it
    needs, but no llama.cpp."""
    folder, others = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("others")
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    site = next(folder.rglob("site-packages"))
    pip = [sys.executable, "-m", "pip", "--python", program(folder, "python"), "install"]
    subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", wheel], check=True)
    native = Path(_core.__file__).parent
    for library in [*native.glob("*.so"), *native.glob("*.pyd")]:
        shutil.copy(library, site / "codespec" / "native")
    for entry in Path(click.__file__).parents[1].iterdir():
        if not entry.name.startswith(("llama_cpp", "codespec", "_editable")):
            (others / entry.name).symlink_to(entry)
    (site / "others.pth").write_text(f"{others}\n")
    return folder


def program(environment: Path, name: str) -> Path:
    return environment / ("Scripts" if os.name == "nt" else "bin") / name


@pytest.mark.skipif(os.name == "nt", reason="links are not for everybody on Windows")
def test_it_completes_a_line_without_a_checkout(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before llama.cpp is built it says how; afterwards it writes what the checkout writes."""
    backend = accelerators.chosen()
    built = llama_build.cached(backend, BUILT.parent, print)
    if built is None:
        pytest.skip("llama.cpp of this environment was not built by make")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "wheels").symlink_to(BUILT)
    file = tmp_path / "total.py"
    file.write_text("def total(values):\n    result = 0\n    for value in values:\n        ")

    def codespec(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program(environment, "codespec"), *args], cwd=tmp_path, capture_output=True, text=True
        )

    place = f"{file}:4:9"
    done = codespec("complete", place)
    assert done.returncode == 1
    assert done.stderr.startswith("error: llama.cpp, which computes models, is not built")
    assert "  Build it once, in a few minutes: codespec setup" in done.stderr
    done = codespec("doctor", "--quick", str(tmp_path))
    assert done.returncode == 1
    assert "codespec setup" in done.stdout
    done = codespec("setup")
    assert done.returncode == 0, done.stderr
    assert f"llama.cpp ({backend}) is ready" in done.stdout
    done = codespec("complete", place, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["text"]
    here = [sys.executable, "-m", "codespec", "complete", place, "--json"]
    assert said == json.loads(subprocess.check_output(here, cwd=ROOT))["text"]
    assert "value" in said
