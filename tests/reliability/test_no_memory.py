"""A model for which there is no memory: the error says so, and nobody is told to get it again."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits an address space")

LOAD = """
import resource, sys
from codespec.backends.llama import load_model
from codespec.errors import ModelError
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[1]) * 1_000_000,) * 2)
try:
    load_model(bundled(BUNDLED_TARGET)).context(n_ctx=2048)
except ModelError as e:
    print(e.message, e.hint)
"""


@pytest.mark.parametrize("megabytes", [2, 10, 35, 60])
def test_want_of_memory_is_called_that(megabytes: int) -> None:
    command = [sys.executable, "-c", LOAD, str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert "too little memory" in said
    assert "smaller model" in said or "n_ctx" in said
    assert "download" not in said
    assert "damaged" not in said
