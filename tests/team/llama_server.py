"""llama-server for tests: one that LLAMA_SERVER names, or built once from the source archive that
llama-cpp-python brings, as that package is built here."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from codespec.system import llama_build
from codespec.system.folders import cache_dir

OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",  # one file is kept
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_OPENSSL=OFF",
)
_READY_S = 120.0


def program() -> Path:
    """The program, built if it is not there yet: minutes, in which others that want it wait."""
    if named := os.environ.get("LLAMA_SERVER"):
        return Path(named)
    options = [*llama_build.flags_here("cpu"), *OPTIONS]
    version, key = llama_build.VERSION, llama_build.key_of(options)
    folder = cache_dir() / "llama-server" / f"{version}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        return kept_in(folder) or _built(folder, version, options)


def kept_in(folder: Path) -> Path | None:
    """The program in a folder of the cache; None where it is not there, or is damaged."""
    file, digest = folder / "llama-server", folder / "sha256"
    is_whole = file.is_file() and digest.is_file() and digest.read_text() == _digest(file)
    return file if is_whole else None


def _built(folder: Path, version: str, options: list[str]) -> Path:
    print(f"building llama-server {version}: some minutes, once a machine", file=sys.stderr)
    bin_dir = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}"}
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        (folder / "build.log").open("w") as log,
    ):

        def run(*command: str) -> None:
            done = subprocess.run(command, env=env, stdout=log, stderr=log, check=False)
            assert done.returncode == 0, f"{command[0]} failed: see {log.name}"

        run(
            sys.executable, "-m", "pip", "download", "--no-deps", "--no-build-isolation",
            "--no-binary", "llama-cpp-python", "--dest", scratch, f"llama-cpp-python=={version}",
        )  # fmt: skip
        with tarfile.open(next(Path(scratch).glob("*.tar.gz"))) as archive:
            archive.extractall(scratch, filter="data")
        source = next(Path(scratch).glob("*/vendor/llama.cpp"))
        build = str(Path(scratch) / "build")
        run("cmake", "-G", "Ninja", "-S", str(source), "-B", build, *options)
        run("cmake", "--build", build, "--target", "llama-server")
        file = folder / "llama-server"
        shutil.move(Path(build) / "bin" / "llama-server", file)
    (folder / "sha256").write_text(_digest(file))
    return file


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@contextmanager
def llama_server(model: Path) -> Generator[str]:
    """The URL of a llama-server that has loaded this model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(program()), "-m", str(model), "--port", str(port), "-c", "2048", "-np", "1"]
    with subprocess.Popen([*command, "-t", "1"], stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            until = time.monotonic() + _READY_S
            while not _is_ready(url):
                assert server.poll() is None
                assert time.monotonic() < until
                time.sleep(0.1)
            yield url
        finally:
            server.terminate()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
