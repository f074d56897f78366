"""Real editors for the tests, installed once a machine into the cache folder, from Debian's
packages, npm and PyPI, without touching the system. Standard library and the dev tools only.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from filelock import FileLock

from codespec.system.folders import cache_dir

# Named at import: tests get cache folders of their own.
CACHE = cache_dir() / "editors"


class Unavailable(Exception):
    """An editor that cannot be installed here, and why. Its tests are skipped."""


def cached(name: str, recipe: object, build: Callable[[Path], None]) -> Path:
    """The folder that `build` filled, now or in an earlier run. `recipe`: everything that decides
    its content; another recipe is another folder. Raises: Unavailable.
    """
    key = hashlib.sha256(json.dumps(recipe, default=_source).encode()).hexdigest()[:12]
    folder = CACHE / f"{name}-{key}"
    complete = folder / ".complete"
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / f"{name}.lock"):
        if not complete.exists():
            print(f"installing {name} into {folder}", flush=True)
            # Built where it stays: some files name their own place. What a failed attempt has
            # left is built upon.
            folder.mkdir(exist_ok=True)
            build(folder)
            complete.touch()
    return folder


def run(
    command: list[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Standard output. Raises: Unavailable, with the end of what the command said."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            timeout=600,
            check=False,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Unavailable(f"{command[0]}: {e}") from e
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise Unavailable(f"{' '.join(command[:4])} ... failed: {' / '.join(said)}")
    return done.stdout


def _source(part: object) -> str:
    """A function or module in a recipe counts by its text."""
    assert callable(part) or isinstance(part, ModuleType)
    return inspect.getsource(part)
