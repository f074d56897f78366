"""Build of llama.cpp for this machine: the package llama-cpp-python as a wheel, with progress.

A wheel is kept in the cache folder under a name that says everything that decides its content,
with a checksum. The set-up of a checkout imports this module before any package is installed, so it
needs the standard library alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codespec.errors import CodespecError
from codespec.system import accelerators, programs

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
"""SHA-256 of the package's source archive, which is all that is ever downloaded of it."""

TOOLS = Path(__file__).with_name("build-tools.txt")
"""Packages that build it, with versions and hashes."""

FROM_FOLDER = (
    "Without a network, or where the index serves files with other hashes than PyPI, pip takes "
    "packages from a folder: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER."
)
"""The next step where pip cannot fetch a package."""

Say = Callable[[str], None]

_STEP = re.compile(r"^\s*\[(\d+)/(\d+)\]")
_RECORD = "wheel.json"
_PERCENT = 5
_TAIL = 25
_PATIENCE_S = 5.0


class BuildError(CodespecError):
    """A native package that could not be built."""


def cached(backend: str, cache: Path, say: Say) -> Path | None:
    """The wheel for this machine and backend that was built before; None where there is none."""
    folder, _ = _place(backend, cache)
    found = _read_json(folder / _RECORD)
    if not found:
        return None
    kept = folder / found.get("name", "-")
    if kept.is_file() and sha256(kept) == found.get("sha256"):
        say(f"llama.cpp ({backend}): using the wheel built before")
        return kept
    say("the cached llama.cpp wheel is damaged; building it again")
    return None


def wheel(backend: str, cache: Path, pip: Sequence[str], say: Say) -> Path:
    """The wheel for this machine and backend, from the cache or built now.

    pip: command of a pip whose environment has the packages of TOOLS.

    Raises: BuildError.
    """
    kept = cached(backend, cache, say)
    if kept is not None:
        return kept
    folder, flags = _place(backend, cache)
    folder.mkdir(parents=True, exist_ok=True)
    say(f"building llama.cpp for {backend}; this takes some minutes, once a machine")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        _build(backend, flags, Path(scratch), pip, folder / "build.log", say)
        built = next(Path(scratch).glob("*.whl"))
        kept = folder / built.name
        built.replace(kept)
    record = {"name": kept.name, "sha256": sha256(kept)}
    (folder / _RECORD).write_text(json.dumps(record))
    return kept


def _place(backend: str, cache: Path) -> tuple[Path, list[str]]:
    """(folder of the wheel, CMake's flags)"""
    flags = flags_here(backend)
    return cache / "wheels" / f"llama-{VERSION}-{backend}-{key_of(flags)}", flags


def flags_here(backend: str) -> list[str]:
    """CMake's flags of llama.cpp for a backend on this machine."""
    return accelerators.flags(backend) + _without_amx()


def key_of(flags: Sequence[str]) -> str:
    """Name for a build of llama.cpp with these flags: another one if anything differs that decides
    what comes out."""
    parts = [VERSION, flags, platform.machine(), sys.platform, cpu(), _compiler()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _build(
    backend: str, flags: list[str], out: Path, pip: Sequence[str], log: Path, say: Say
) -> None:
    # Half of the build is a helper library that only llama.cpp's own programs use. The package
    # forces it on; a normal variable, set where llama.cpp's project begins, goes before that.
    hook = out / "lean.cmake"
    hook.write_text("set(LLAMA_BUILD_COMMON OFF)\n")
    cmake_args = [*flags, f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={hook.as_posix()}"]
    env = dict(os.environ, CMAKE_ARGS=shlex.join(cmake_args), CMAKE_GENERATOR="Ninja")
    # Programs of the build's own environment first; none of a workspace.
    env["PATH"] = os.pathsep.join([str(Path(pip[0]).parent), programs.path()])
    env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 2))
    wanted = out / "requirements.txt"
    wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
    command = [
        *(*pip, "wheel", "--verbose", "--no-deps", "--no-build-isolation", "--no-cache-dir"),
        *("--disable-pip-version-check", "--require-hashes", "--no-binary", PACKAGE),
        *("--wheel-dir", str(out), "--requirement", str(wanted)),
    ]
    say(f"fetching its source ({PACKAGE} {VERSION}, 77 MB)")
    try:
        with_progress(command, "llama.cpp", log, say, env=env, cwd=out)
    except BuildError as e:
        hint = f"{e.hint}\n{accelerators.hint(backend)}\n{FROM_FOLDER}"
        raise BuildError(e.message, hint) from None


def with_progress(
    command: Sequence[str],
    what: str,
    log: Path,
    say: Say,
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
) -> None:
    """Run a build whose output has ninja's "[done/all]", and say how far it is.

    log: file that takes the output. Raises: BuildError with the end of the output.
    """
    started = time.monotonic()
    shown = -1
    with (
        log.open("w", encoding="utf-8") as sink,
        child(command, env, cwd, subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            sink.write(line)
            step = _STEP.match(line)
            if step is None or int(step[2]) == 0:
                continue
            percent = 100 * int(step[1]) // int(step[2])
            if shown < 0 or percent // _PERCENT != shown // _PERCENT:
                shown = percent
                bar = "#" * (percent // _PERCENT)
                say(f"  [{bar:<20}] {percent:3d} %  {time.monotonic() - started:4.0f} s")
    if process.returncode:
        tail = "".join(log.read_text("utf-8", "replace").splitlines(keepends=True)[-_TAIL:])
        code = process.returncode
        raise BuildError(
            f"{tail}\n{what} could not be built (exit code {code}).", f"The whole log: {log}"
        )


@contextlib.contextmanager
def child(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None = None,
    output: int | None = None,
) -> Generator[subprocess.Popen[str], None, None]:
    """A child in a session of its own, which is awaited: an interrupt reaches us alone, and ends
    all that the child started without a word of theirs.

    output: `subprocess.PIPE` for a pipe of what it says; None: it says it where we do.
    """
    options: dict[str, Any] = {} if os.name == "nt" else {"start_new_session": True}
    if output is not None:
        options |= {"stdout": output, "stderr": subprocess.STDOUT}
    process: subprocess.Popen[str] | None = None
    try:
        with _signals_held():
            process = subprocess.Popen(
                command,
                env=dict(env),
                cwd=cwd,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                **options,
            )
        yield process
        process.wait()
    except BaseException:
        if process is not None:
            _end_group(process)
        raise
    finally:
        if process is not None and process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def _signals_held() -> Generator[None, None, None]:
    """Hold signals that would end us back meanwhile: an exception between the start of a child and
    our knowledge of it would leave the child alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if callable(handler):
            signal.signal(number, lambda number, _: held.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)
        for number in held:
            signal.raise_signal(number)


def _end_group(process: subprocess.Popen[Any]) -> None:
    """End a child and all that it started, if it was started in a session of its own."""
    if process.poll() is not None:
        return
    if sys.platform == "win32":
        process.kill()
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
            return


def _without_amx() -> list[str]:
    """llama.cpp's products with AMX tell the processor about their tiles in a way that compilers
    leave most of out; the process dies of the first of them."""
    if "amx_tile" not in cpu().split():
        return []
    without = " ".join(f"-mno-amx-{kind}" for kind in ("tile", "int8", "bf16"))
    return [f"-DCMAKE_C_FLAGS={without}", f"-DCMAKE_CXX_FLAGS={without}"]


def cpu() -> str:
    """Instruction sets that -march=native would see: a wheel with others must not be reused."""
    try:
        info = Path("/proc/cpuinfo").read_text()
        found = re.search(r"^(flags|Features)\s*:(.*)$", info, re.MULTILINE)
        return " ".join(sorted(found[2].split())) if found else platform.machine()
    except OSError:
        try:
            asked = subprocess.run(
                programs.command("sysctl", "-n", "machdep.cpu.brand_string"),
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError:
            return platform.machine()
        return asked.stdout.strip() or platform.machine()


def _compiler() -> str:
    name, *options = compiler()
    try:
        command = programs.command(name, *options, "--version")
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    except (OSError, ValueError):  # there is none, or a relative path names it
        return shlex.join([name, *options])
    return asked.stdout.splitlines()[0] if asked.stdout else shlex.join([name, *options])


def compiler() -> list[str]:
    """Command of the C++ compiler: CXX, or the first of `compilers` that is there, else that one
    which is looked for first."""
    named = os.environ.get("CXX", "").split()
    names = compilers()
    return named or [next((name for name in names if programs.find(name)), names[0])]


def compilers() -> list[str]:
    """Names by which a C++ compiler is looked for, in the order in which CMake does."""
    named = os.environ.get("CXX", "").split()[:1]
    return named or (["c++", "g++", "cl", "clang++"] if sys.platform == "win32" else ["c++"])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_json(path: Path) -> dict[str, str]:
    try:
        value: dict[str, str] = json.loads(path.read_text())
        return value
    except (OSError, ValueError):
        return {}
