"""llama-server for tests: one that LLAMA_SERVER names, or built from the source archive that
llama-cpp-python brings, in about five minutes, once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import platformdirs

_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
)
_READY_S = 120.0


def program() -> Path:
    """The program, built if it is not there yet."""
    if named := os.environ.get("LLAMA_SERVER"):
        return Path(named)
    wanted = f"llama-cpp-python=={version('llama-cpp-python')}"
    folder = platformdirs.user_cache_path("codespec") / "llama-server" / wanted.partition("==")[2]
    built = folder / "build" / "bin" / "llama-server"
    if not built.exists():
        pip = (sys.executable, "-m", "pip", "download", "--no-binary", ":all:", "--no-deps")
        subprocess.run([*pip, wanted, "-d", str(folder)], check=True)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        source = next(folder.glob("*/vendor/llama.cpp"))
        build = str(folder / "build")
        subprocess.run(["cmake", "-S", str(source), "-B", build, *_OPTIONS], check=True)
        subprocess.run(["cmake", "--build", build, "-j", "2", "-t", "llama-server"], check=True)
    return built


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
