"""The command line run as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def codespec(*args: object, check: bool = True, **env: str) -> tuple[str, str, int]:
    """Run the command. Returns: (stdout, stderr, exit code)."""
    done = subprocess.run(
        [sys.executable, "-m", "codespec", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | env,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr, done.returncode


def error(*args: object, **env: str) -> str:
    """The error message of a failing command; a traceback is none."""
    _, stderr, code = codespec(*args, check=False, **env)
    assert code != 0
    assert "Traceback" not in stderr
    return stderr
