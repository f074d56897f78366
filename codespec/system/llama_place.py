"""llama.cpp of an installation without a checkout: where it is, and how it comes there.

An environment may have llama-cpp-python of the version that we need, as a checkout's has. Where it
has none, or another one, `codespec setup` builds it into the data folder, which no environment of
Python has to be writable for, and which outlives them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from codespec.errors import ModelError
from codespec.system import accelerators, llama_build, llama_builds, programs
from codespec.system.folders import cache_dir, data_dir, data_path, private_folder
from codespec.system.llama_build import PACKAGE, VERSION, BuildError, Say
from codespec.system.llama_builds import Build

_MODULE = "llama_cpp"
_CHECKOUT = Path(__file__).parents[2] / ".ci" / "bootstrap.py"
_BACKEND = "codespec-backend.txt"
_TRY = "import llama_cpp; llama_cpp.llama_backend_init()"


def add_to_path() -> None:
    """Let `import llama_cpp` find the version that we need. Raises: ModelError where there is none,
    with the command that builds it."""
    if _in_environment() == VERSION:
        return
    place = folder()
    if not (place / _MODULE / "__init__.py").is_file():
        raise ModelError(
            "llama.cpp, which computes models, is not built for this machine yet",
            "Build it once, in a few minutes: codespec setup",
        )
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
        llama_builds.mark(place)


def _in_environment() -> str:
    """Version of the environment's llama-cpp-python; "" for none."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return ""


def is_in_environment() -> bool:
    """True if the environment has the version that we need, so nothing has to be built."""
    return _in_environment() == VERSION


def folder() -> Path:
    """Folder of what `build` unpacked for this kind of processor; it may not exist. A home folder
    may be shared by machines that know different instructions."""
    return data_path() / "llama" / f"{VERSION}-{_processor()}"


def built() -> str:
    """The one of `accelerators.NAMES` that `build` was last asked for; "cpu" before the first."""
    try:
        records = (data_path() / "llama").glob(f"*-{_processor()}/{_BACKEND}")
        newest = max(records, key=lambda file: file.stat().st_mtime, default=None)
        return newest.read_text("utf-8") if newest else "cpu"
    except (OSError, ValueError):
        return "cpu"


def _processor() -> str:
    """Name of this kind of processor, in hexadecimal digits."""
    kind = f"{platform.machine()} {sys.platform} {_instructions()}"
    return hashlib.sha256(kind.encode()).hexdigest()[:12]


def _instructions() -> str:
    """The first processor's instruction sets, as Linux lists them; "" elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if re.match(r"(flags|Features)\s*:", line):
                    return " ".join(sorted(line.partition(":")[2].split()))
    except OSError:
        pass
    return ""


def rebuild(backend: str) -> str:
    """The command that builds llama.cpp for one of `accelerators.NAMES` in this installation."""
    if _CHECKOUT.is_file():
        return f"CODESPEC_BACKEND={backend} make env"
    return f"codespec setup --backend {backend}"


def repair() -> str:
    """The command that makes this installation's llama.cpp anew."""
    return "make clean env" if _CHECKOUT.is_file() else "codespec setup"


def build(backend: str, say: Say) -> Path:
    """Build llama.cpp for a backend, or take the wheel that was built before, and put it into its
    folder, in place of another one.

    Raises: BuildError, ConfigError.
    """
    cache = cache_dir()
    (cache / "wheels").mkdir(exist_ok=True)
    wheel = llama_build.cached(backend, cache, say)
    if wheel is None:
        accelerators.check_buildable(backend)
        compiler = llama_build.compiler()[0]
        if not os.path.isabs(compiler) and programs.find(compiler) is None:
            names = " or ".join(llama_build.compilers())
            raise BuildError(f"there is no C++ compiler ({names})", accelerators.hint("cpu"))
        with _builder(cache, say) as pip:
            wheel = llama_build.wheel(backend, cache, pip, say)
    place = folder()
    private_folder(data_dir() / "llama")
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        fresh = Path(scratch, "new")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(fresh)
        (fresh / _BACKEND).write_text(backend, "utf-8")
        _try(fresh)
        llama_builds.keep_marks(place, fresh)
        try:
            if place.exists():
                place.rename(Path(scratch, "old"))
            fresh.rename(place)
        except OSError as e:  # Windows: a library that is loaded cannot be moved
            raise BuildError(
                f"{place} cannot be replaced: {e.strerror}",
                "End what uses it (codespec daemon stop --all), then do this again.",
            ) from None
    llama_builds.mark(place)
    return place


def others() -> list[Build]:
    """Builds that this installation does not use, the newest first."""
    used = None if is_in_environment() else folder()
    return [each for each in llama_builds.builds(folder().parent) if each.folder != used]


def _try(place: Path) -> None:
    """Load the library in another process. Raises: BuildError."""
    code = f"import sys; sys.path.insert(0, {str(place)!r}); {_TRY}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise BuildError(
            f"llama.cpp was built, but cannot be loaded: {said[0]}",
            "If a driver's library is missing, install it; or build for the CPU: "
            "codespec setup --backend cpu",
        )


@contextmanager
def _builder(cache: Path, say: Say) -> Generator[Sequence[str], None, None]:
    """Yields the command of a pip whose environment has what builds llama.cpp. The environment is
    deleted afterwards."""
    with tempfile.TemporaryDirectory(dir=cache, prefix="builder-") as scratch:
        say("fetching what builds llama.cpp (CMake, Ninja; 35 MB)")
        pip = _environment(Path(scratch, "venv"))
        command = [*pip, "install", "--quiet", "--require-hashes", "--no-deps"]
        options = ["--disable-pip-version-check", "--requirement", str(llama_build.TOOLS)]
        log = cache / "wheels" / "tools.log"
        env = dict(os.environ, PATH=programs.path())
        what = "the environment that builds llama.cpp"
        try:
            llama_build.with_progress(
                [*command, *options], what, log, say, env=env, cwd=Path(scratch)
            )
        except BuildError as e:
            raise BuildError(e.message, f"{e.hint}\n{llama_build.FROM_FOLDER}") from None
        yield pip


def _environment(where: Path) -> list[str]:
    """Make an environment with pip. Returns: the command of that pip. Raises: BuildError."""
    python = where / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if importlib.util.find_spec("ensurepip"):
        try:
            venv.create(where, with_pip=True, symlinks=os.name != "nt")
        except (OSError, subprocess.CalledProcessError):
            shutil.rmtree(where, ignore_errors=True)
    if not python.is_file() and programs.find("uv"):
        options = ["venv", "--quiet", "--seed", "--no-project", "--python", sys.executable]
        subprocess.run(programs.command("uv", *options, str(where)), check=False)
    if not python.is_file():
        raise BuildError(
            "an environment to build llama.cpp in cannot be made by Python's module venv",
            "Debian: apt install python3-venv; or install uv.",
        )
    return [str(python), "-m", "pip"]
