"""Make an environment from what `pack.py` gathered: `python3 bench/gpu/build.py BUNDLE FOLDER`.

No network is used. Standard library only, besides pip, a compiler (nvcc for CUDA), and packages
that were not carried. FOLDER gets llama.cpp's library and server, built for this machine's GPU
alone, the packages, and codespec; `FOLDER/run COMMAND` runs a command with all of it. What is there
already is kept, so an interrupted build goes on.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from codespec.system import programs  # noqa: E402

# With -c as with -m, Python imports from the working folder first, which is the checkout, whose
# codespec is not compiled. (-P would do, from Python 3.11 on.)
RUN = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; import runpy; "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
    args = parser.parse_args()
    bundle, folder = args.bundle.resolve(), args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    packages(bundle, folder)
    native(folder)
    llama(bundle, folder, args.backend)
    launcher(folder)
    see_that_it_runs(folder)
    say(f"ready: {folder / 'run'} python -m codespec_bench.gpu")


def packages(bundle: Path, folder: Path) -> None:
    site = folder / "site"
    if site.exists():
        return
    say("packages")
    wheels = sorted(map(str, (bundle / "wheels").glob("*.whl")))
    partial = folder / "site.part"
    shutil.rmtree(partial, ignore_errors=True)
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
        "--no-compile", "--target", str(partial), *wheels)  # fmt: skip
    partial.rename(site)


def native(folder: Path) -> None:
    """codespec beside its packages, with its native module."""
    site = folder / "site"
    for source, name in (("codespec", "codespec"), ("bench", "codespec_bench")):
        shutil.rmtree(site / name, ignore_errors=True)
        shutil.copytree(ROOT / source, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    note_checkout(site / "codespec_bench")
    say("codespec")
    cmake = cmake_of(folder)
    env = environment(folder)
    build = folder / "native"
    run(*cmake, "-S", str(ROOT / "codespec" / "native"), "-B", str(build), "-G", "Ninja",
        "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}", env=env)  # fmt: skip
    run(*cmake, "--build", str(build), env=env)
    run(*cmake, "--install", str(build), "--prefix", str(site), env=env)


def note_checkout(copy: Path) -> None:
    """Figures name the commit that they are of, and the self-test replays the history."""
    if not (ROOT / ".git").exists():
        return
    git = programs.command("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    at = subprocess.run(git, capture_output=True, text=True, check=False)
    (copy / "commit").write_text(at.stdout.strip())
    (copy / "checkout").write_text(str(ROOT), "utf-8")


def llama(bundle: Path, folder: Path, backend: str) -> None:
    """Library and server in one tree; the Python package is told where the library is."""
    source = folder / "llama"
    if not source.exists():
        partial = folder / "llama.part"
        shutil.rmtree(partial, ignore_errors=True)
        with tarfile.open(bundle / "llama.tar.xz") as archive:
            # As an attribute, which a Python 3.10 or 3.11 from before there were filters ignores.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(partial)
        # Of the tools only the server is wanted; its own file names what it needs.
        tools = partial / "vendor" / "llama.cpp" / "tools" / "CMakeLists.txt"
        tools.write_text("add_subdirectory(ui)\nadd_subdirectory(server)\nadd_subdirectory(mtmd)\n")
        partial.rename(source)
    site = folder / "site" / "llama_cpp"
    if not site.exists():
        shutil.copytree(source / "llama_cpp", site)
    say(f"llama.cpp for {backend}")
    started = time.monotonic()
    flags = ["-DGGML_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=native"] if backend == "cuda" else []
    build, cmake, env = folder / "llama-build", cmake_of(folder), environment(folder)
    run(*cmake, "-S", str(source / "vendor" / "llama.cpp"), "-B", str(build), "-G", "Ninja",
        "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DLLAMA_BUILD_TESTS=OFF",
        "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_TOOLS=ON", "-DLLAMA_BUILD_SERVER=ON",
        "-DLLAMA_BUILD_APP=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF",
        "-DLLAMA_CURL=OFF", "-DLLAMA_OPENSSL=OFF",
        f"-DGGML_CUDA={'ON' if backend == 'cuda' else 'OFF'}",
        "-DGGML_METAL=OFF", *flags, env=env)  # fmt: skip
    run(*cmake, "--build", str(build), "--target", "llama", "llama-server", env=env)
    say(f"llama.cpp took {time.monotonic() - started:.0f} s")


def launcher(folder: Path, preload: Path | None = None) -> None:
    script = folder / "run"
    bin_dir = folder / "llama-build" / "bin"
    script.write_text(
        "#!/bin/sh\n"
        f"{f'export LD_PRELOAD={shlex.quote(str(preload))}' if preload else ''}\n"
        f'export PYTHONPATH="{folder / "site"}" LLAMA_CPP_LIB_PATH="{bin_dir}"\n'
        f'export LLAMA_SERVER="{bin_dir / "llama-server"}"\n'
        f'if [ "$1 $2" = "python -m" ]; then shift 2; set -- python -c "{RUN}" "$@"; fi\n'
        f'if [ "$1" = python ]; then shift; exec "{sys.executable}" "$@"; fi\n'
        'exec "$@"\n'
    )
    script.chmod(0o755)


def see_that_it_runs(folder: Path) -> None:
    """With one C++ library for all, if it does not otherwise.

    Compilers outside the system's folders may put theirs into what they link, CMake leave some
    libraries with the system's. Each then takes symbols of the other, and loading a model crashes.
    """
    model = folder / "site" / "codespec" / "models" / "bundled" / "codespec-base.gguf"
    load = str(folder / "run"), "python", "-m", "codespec.backends.llama.trial", str(model)
    if subprocess.run(load, capture_output=True, check=False).returncode == 0:
        return
    say("no model can be loaded: trying again with the system's C++ library for all")
    launcher(folder, cxx_library(folder / "llama-build" / "bin" / "libllama.so"))
    run(*load)


def cxx_library(library: Path) -> Path | None:
    """The shared C++ library that `library` is linked to."""
    ldd = programs.find("ldd")
    if ldd is None:
        return None
    said = subprocess.run([ldd, str(library)], capture_output=True, text=True, check=False)
    found = re.search(r"libstdc\+\+\S* => (/\S+)", said.stdout)
    return Path(found[1]) if found else None


def cmake_of(folder: Path) -> list[str]:
    """The one that was carried, or the machine's."""
    if (folder / "site" / "cmake").is_dir():
        return [sys.executable, "-c", "import cmake; cmake.cmake()"]
    return ["cmake"]


def environment(folder: Path) -> dict[str, str]:
    site = str(folder / "site")
    # nvcc lies there, but seldom on the PATH.
    cuda = "/usr/local/cuda/bin"
    path = os.pathsep.join([f"{site}/bin", f"{site}/ninja/data/bin", programs.path(), cuda])
    return {**os.environ, "PYTHONPATH": site, "PATH": path}


def run(*command: str, env: dict[str, str] | None = None) -> None:
    if subprocess.run(programs.command(*command), env=env, check=False).returncode:
        sys.exit(f"failed: {' '.join(command)}")


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
