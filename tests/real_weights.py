"""SmolLM2-135M-Instruct: a model that nobody here trained, in four bits, without FIM tokens.

`make dev` fetches it into the user's cache folder, which tests otherwise never see.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from codespec.system import folders

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

# Read before tests are given folders and variables of their own.
_FILE = folders.cache_path() / "weights" / NAME
_IS_CI = os.environ.get("CI", "").lower() in ("true", "1")


def smollm2() -> Path:
    """Its file. Where it is missing or damaged, a test fails in CI and is skipped elsewhere."""
    if _FILE.is_file() and hashlib.sha256(_FILE.read_bytes()).hexdigest() == SHA256:
        return _FILE
    why = f"{_FILE} is missing or damaged: make dev fetches it"
    if _IS_CI:
        pytest.fail(why)
    pytest.skip(why)
