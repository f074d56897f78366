"""Libraries that are loaded before the C library, built with the compiler that codespec is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.system.folders import cache_path


def shim(source: Path) -> str:
    """Path of the library; a test is skipped where none can be loaded or built."""
    if sys.platform != "linux":
        pytest.skip("LD_PRELOAD is Linux's")
    names = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
    compiler = next(filter(None, map(shutil.which, filter(None, names))), None)
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    built = cache_path() / f"{source.stem}.so"
    built.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", built, source, "-ldl"], check=True, timeout=60
    )
    return str(built)
