"""Users with an empty home who install codespec, and a clock for what they do."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

CODE = "def total(values):\n    result = 0\n    for value in values:\n        "
STEPS = ("installed", "built", "suggested")
ROOT = Path(__file__).parents[2]


def _processor_s() -> float:
    """Seconds of the processor that processes which were waited for have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class User:
    """home: an empty folder, which is made. wheels: of llama.cpp, built by earlier users; where
    there are some, this one finds them in the cache."""

    def __init__(self, home: Path, wheels: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        self.home = home
        self.runtime = home / "run"
        self.runtime.mkdir(mode=0o700)
        self._wheels = wheels
        self._seconds: dict[str, float] = {}
        self._has_failed = False
        self._cached = home / ".cache" / "codespec" / "wheels"
        self._has_wheel = wheels.is_dir()
        if self._has_wheel:
            shutil.copytree(wheels, self._cached)
        tools = home / ".local" / "bin"
        tools.mkdir(parents=True)
        (tools / "uv").symlink_to(Path(sys.executable).parent / "uv")
        kept = ("PIP_", "SSL_", "NODE_EXTRA_", "REQUESTS_")
        self.env = {
            **{name: value for name, value in os.environ.items() if name.startswith(kept)},
            "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "CODESPEC_RUNTIME_DIR": str(self.runtime),
            "CODESPEC_BACKEND": "cpu",
        }

    def step(self, until: str, *command: str | Path) -> None:
        """Run a command. until: one of `STEPS`, or another name, which is reached with its end."""
        words = [str(word) for word in command]
        self.say(f"$ {shlex.join(words)}")
        used = _processor_s()
        with self.clock(until):
            done = subprocess.run(
                words, env=self.env, cwd=self.home, capture_output=True, text=True, check=False
            )
        self.say(f"({_processor_s() - used:.1f} s of the processor)")
        self.say("\n".join((done.stdout + done.stderr).strip().splitlines()[-6:]))
        assert done.returncode == 0, f"exit code {done.returncode}"

    @contextmanager
    def clock(self, until: str) -> Generator[None]:
        """The time of the body counts for a step."""
        begin = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - begin
            self._seconds[until] = self._seconds.get(until, 0.0) + seconds
            self.say(f"({seconds:.1f} s)")

    def say(self, text: str) -> None:
        print(text.replace(str(self.home), "~").replace(str(ROOT), "CHECKOUT"), flush=True)

    def fail(self, why: str) -> None:
        self._has_failed = True
        self.say(f"failed: {why}")

    def keep_wheels(self) -> None:
        """Leave what was built to the users after this one."""
        if not self._wheels.is_dir() and list(self._cached.glob("*/*.whl")):
            shutil.copytree(self._cached, self._wheels)

    def cells(self) -> list[str]:
        """Seconds of each step, "" where it had none; after a failure, that."""
        if self._has_failed:
            return ["failed", *[""] * (len(STEPS) - 1)]
        said = {step: f"{seconds:.0f} s" for step, seconds in self._seconds.items()}
        if "built" in said and self._has_wheel:
            said["built"] += ", built before"
        return [said.get(step, "") for step in STEPS]
