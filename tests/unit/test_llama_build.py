"""How llama.cpp is built: its flags, its cache, its progress, and what is missing for it."""

from __future__ import annotations

import hashlib
import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import tomli

from codespec.errors import ConfigError
from codespec.system import accelerators, llama_build, llama_place, programs

ROOT = Path(__file__).parents[2]


def silent(line: str) -> None:
    pass


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_version_is_that_of_the_project() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pinned = f"{llama_build.PACKAGE}=={llama_build.VERSION}"
    assert project["optional-dependencies"]["llama"] == [pinned]


def test_the_cache_folder_may_have_a_space_in_its_name(tmp_path: Path) -> None:
    cache = tmp_path / "J. O'Neil"
    said: list[str] = []
    # Stands for pip: writes down what the build is told, and makes a file where the wheel belongs.
    pip = python(
        "import os, sys; print(os.environ['CMAKE_ARGS']); print('[1/2] a'); print('[2/2] b')\n"
        "open(sys.argv[sys.argv.index('--wheel-dir') + 1] + '/a.whl', 'w').write('wheel')\n"
        "needed = open(sys.argv[sys.argv.index('--requirement') + 1]).read()\n"
        f"assert 'sha256:{llama_build.SHA256}' in needed and '--require-hashes' in sys.argv\n"
    )
    wheel = llama_build.wheel("cpu", cache, pip, said.append)
    assert wheel.read_text() == "wheel"
    flags = shlex.split((wheel.parent / "build.log").read_text().splitlines()[0])
    assert flags[-1].startswith(f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={cache}")
    assert flags[-1].endswith("lean.cmake")
    assert any("50 %" in line for line in said)
    assert any("100 %" in line for line in said)
    # It is found again, until it is damaged.
    assert llama_build.cached("cpu", cache, silent) == wheel
    wheel.write_text("damaged")
    assert llama_build.cached("cpu", cache, silent) is None


def test_the_name_in_the_cache_stays_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each machine builds for minutes what it has."""
    monkeypatch.setattr(llama_build, "cpu", lambda: "avx2")
    monkeypatch.setattr(llama_build, "_compiler", lambda: "g++ 12")
    monkeypatch.setattr(llama_build.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "platform", "linux")
    parts = [llama_build.VERSION, ["-DLLAVA_BUILD=OFF", "-DGGML_CUDA=OFF"]]
    parts += ["x86_64", "linux", "avx2", "g++ 12"]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    folder = tmp_path / "wheels" / f"llama-{llama_build.VERSION}-cpu-{key}"
    folder.mkdir(parents=True)
    wheel = folder / "a.whl"
    wheel.touch()
    record = {"name": "a.whl", "sha256": hashlib.sha256(b"").hexdigest()}
    (folder / "wheel.json").write_text(json.dumps(record))
    assert llama_build.cached("cpu", tmp_path, silent) == wheel


def test_llama_cpp_is_built_without_amx_where_the_processor_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flags() -> list[str]:
        _, found = llama_build._place("cpu", tmp_path)
        return found

    monkeypatch.setattr(llama_build, "cpu", lambda: "amx_tile avx2")
    for language in ("C", "CXX"):
        flag = f"-DCMAKE_{language}_FLAGS=-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
        assert flag in flags()
    monkeypatch.setattr(llama_build, "cpu", lambda: "avx2")
    assert "amx" not in " ".join(flags())


def test_a_failure_shows_the_end_of_the_log_and_the_next_step(tmp_path: Path) -> None:
    pip = python("import sys; print('no such header'); sys.exit(3)")
    with pytest.raises(llama_build.BuildError) as failed:
        llama_build.wheel("vulkan", tmp_path, pip, silent)
    assert "no such header" in failed.value.message
    assert "exit code 3" in failed.value.message
    assert "apt install glslc libvulkan-dev" in failed.value.hint
    assert "CODESPEC_BACKEND=cpu" in failed.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="sessions are POSIX's")
def test_an_interrupt_ends_what_the_build_has_started(tmp_path: Path) -> None:
    """Its compilers, too, and they say nothing of it."""
    child = "import subprocess, sys; print('[1/9]', flush=True); " + (
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(99)'])"
    )
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from codespec.system.llama_build import with_progress\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\n"
        f"with_progress([sys.executable, '-c', {child!r}], 'it', Path({str(tmp_path / 'log')!r}),\n"
        "    lambda line: print(line, flush=True), env=os.environ)\n"
    )
    with subprocess.Popen(
        python(code), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert "11 %" in process.stdout.readline()
        of_build = psutil.Process(process.pid).children(recursive=True)
        assert of_build
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")
    gone, alive = psutil.wait_procs(of_build, timeout=20)
    assert not alive, gone


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with no compiler, SDK or device; a folder on its PATH for programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("VULKAN_SDK", "ROCM_PATH", "ONEAPI_ROOT", "CODESPEC_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(accelerators, "_matches", lambda pattern: [])
    monkeypatch.setattr(accelerators.ctypes, "CDLL", no_library)
    monkeypatch.setattr(programs, "_named", set())
    return tmp_path


def no_library(name: str) -> None:
    raise OSError(name)


def program(folder: Path, name: str, says: str = "") -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


POSIX = pytest.mark.skipif(sys.platform == "win32", reason="programs are shell scripts")


@POSIX
@pytest.mark.parametrize("name", accelerators.ACCELERATORS)
def test_what_an_accelerator_lacks_is_named_with_the_next_step(bare: Path, name: str) -> None:
    lacking = accelerators.missing(name, "compiler", "SDK")
    assert lacking
    with pytest.raises(ConfigError) as refused:
        accelerators.check_buildable(name)
    for part in lacking:
        assert part in refused.value.message
    assert accelerators.ACCELERATORS[name].step in refused.value.hint
    assert accelerators.ACCELERATORS[name].flags == tuple(accelerators.flags(name)[1:])


@POSIX
def test_the_backend_is_the_one_named_or_what_can_be_built_and_run(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert accelerators.chosen() == "cpu"
    program(bare, "nvcc")
    assert accelerators.chosen() == "cpu"  # a build server: no GPU
    program(bare, "nvidia-smi", "GPU 0: some")
    assert accelerators.chosen() == "cuda"
    assert accelerators.missing("cuda", "compiler", "device") == []
    assert accelerators.missing("cuda", "loader") == ["loader the driver's libcuda"]
    assert accelerators.chosen(built="vulkan") == "vulkan"
    for name in accelerators.NAMES:
        monkeypatch.setenv("CODESPEC_BACKEND", name)
        assert accelerators.chosen(built="vulkan") == name
    monkeypatch.setenv("CODESPEC_BACKEND", "opencl")
    with pytest.raises(ConfigError, match="'opencl' is not known") as refused:
        accelerators.chosen()
    assert refused.value.hint == "It can be cpu, cuda, metal, vulkan, hip or sycl."


@POSIX
def test_a_program_in_the_workspace_is_no_compiler(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bare, "glslc")
    assert "compiler glslc" not in accelerators.missing("vulkan", "compiler")
    monkeypatch.chdir(bare)
    assert "compiler glslc" in accelerators.missing("vulkan", "compiler")


def test_headers_are_found_where_a_variable_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk = "SDK Vulkan's headers"
    header = tmp_path / "include" / "vulkan" / "vulkan.h"
    header.parent.mkdir(parents=True)
    header.touch()
    monkeypatch.setenv("VULKAN_SDK", str(tmp_path))
    assert sdk in accelerators.here("vulkan")


@POSIX
def test_on_windows_each_of_its_compilers_is_looked_for_and_named(
    bare: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    assert llama_build.compiler() == ["c++"]
    assert "apt install g++" in accelerators.hint("cpu")
    monkeypatch.setattr(sys, "platform", "win32")
    assert llama_build.compilers() == ["c++", "g++", "cl", "clang++"]
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(cache))
    with pytest.raises(llama_build.BuildError) as failed:
        llama_place.build("cpu", silent)
    assert failed.value.message == "there is no C++ compiler (c++ or g++ or cl or clang++)"
    assert "Build Tools" in failed.value.hint
    program(bare, "clang++.exe")
    assert llama_build.compiler() == ["clang++"]
    program(bare, "cl.exe")
    assert llama_build.compiler() == ["cl"]
    monkeypatch.setenv("CXX", "icpx -fast")
    assert llama_build.compiler() == ["icpx", "-fast"]
    assert llama_build.compilers() == ["icpx"]
