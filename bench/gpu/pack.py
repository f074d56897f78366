"""Gather what a machine without a network needs: `python3 bench/gpu/pack.py FOLDER [REPO ...]`.

FOLDER gets the llama.cpp sources without what is not compiled, Python wheels, and the histories of
the given Git repositories. Standard library only. Together with the checkout it is all that
`build.py` and the measurements take.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from codespec.system import programs  # noqa: E402

LLAMA = "llama-cpp-python"
# fmt: off
PACKAGES = (
    "cmake", "ninja", "nanobind", "click", "filelock", "msgspec", "numpy", "platformdirs", "rich",
    "markdown-it-py", "mdurl", "pygments", "gguf", "pyyaml", "tqdm", "requests",
    "charset-normalizer", "idna", "urllib3", "certifi", "typing-extensions", "tree-sitter",
    "tree-sitter-c", "tree-sitter-cpp", "tree-sitter-go", "tree-sitter-java",
    "tree-sitter-javascript", "tree-sitter-python", "tree-sitter-rust", "tree-sitter-typescript",
    "watchfiles", "anyio", "jinja2", "markupsafe", "diskcache", "psutil", "pyahocorasick",
    "tomlkit",
)
# fmt: on
# Of the archive's llama.cpp, what its library and server are compiled from.
KEPT = re.compile(
    r"(llama_cpp/|vendor/llama\.cpp/("
    r"CMakeLists\.txt|LICENSE|(ggml|src|include|common|vendor|cmake|licenses)/"
    r"|tools/(CMakeLists\.txt|server|mtmd|ui)/?|scripts/(build-info|ui-assets)|.*\.in$))"
)
SKIPPED = re.compile(r"/(docs|tests|test|media|bench|themes|node_modules)/|/tools/ui/src/")
PLATFORMS = tuple(f"manylinux_2_{n}" for n in (28, 27, 24, 17, 5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("repos", type=Path, nargs="*", metavar="REPO", help="clones to replay")
    parser.add_argument("--python", default="3.12", help="of the other machine (default 3.12)")
    parser.add_argument("--machine", default="x86_64", help="its processor (default x86_64)")
    parser.add_argument("--commits", type=int, default=100, help="of each history (default 100)")
    parser.add_argument(
        "--without", default="", metavar="NAME,...",
        help="packages that the other machine has: numpy, cmake and ninja are 45 of 61 MiB",
    )  # fmt: skip
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    sources(args.folder)
    there = {name.strip() for name in args.without.split(",")} - {""}
    if unknown := there - set(PACKAGES):
        parser.error(f"--without {', '.join(sorted(unknown))}: it is not packed anyway")
    wheels(args.folder, args.python, args.machine, there)
    for repo in args.repos:
        history(args.folder, repo, args.commits)
    total = sum(f.stat().st_size for f in args.folder.rglob("*") if f.is_file())
    print(f"{args.folder}: {total / 2**20:.1f} MiB")


def sources(folder: Path) -> None:
    """llama.cpp and its Python binding, compressed."""
    packed = folder / "llama.tar.xz"
    if packed.exists():
        return
    pins = (ROOT / "pyproject.toml").read_text()
    version = re.search(rf'"{LLAMA}==([\w.]+)"', pins)
    assert version, "pyproject.toml pins llama-cpp-python"
    with tempfile.TemporaryDirectory() as scratch:
        pip("download", "--no-deps", "--no-binary", ":all:",
            "--dest", scratch, f"{LLAMA}=={version[1]}")  # fmt: skip
        archive = next(Path(scratch).glob("*.tar.gz"))
        partial = packed.with_suffix(".part")
        with tarfile.open(archive) as source, tarfile.open(partial, "w:xz") as out:
            for entry in source:
                name = entry.name.partition("/")[2]
                if KEPT.match(name) and not SKIPPED.search(name) and not entry.islnk():
                    entry.name = name
                    entry.pax_headers = {}  # else a long name would stay what it was
                    out.addfile(entry, source.extractfile(entry) if entry.isfile() else None)
        partial.rename(packed)


def wheels(folder: Path, python: str, machine: str, there: set[str]) -> None:
    """Everything codespec imports, for the other machine's Python, but what is there."""
    platforms = [f"--platform={p}_{machine}" for p in PLATFORMS] + [
        f"--platform=manylinux2014_{machine}",
        f"--platform=manylinux1_{machine}",
    ]
    pip("download", "--no-deps", "--only-binary", ":all:", f"--python-version={python}",
        "--implementation=cp", *platforms, "--dest", str(folder / "wheels"),
        "--constraint", str(ROOT / ".ci" / "constraints.txt"),
        *(name for name in PACKAGES if name not in there))  # fmt: skip


def history(folder: Path, repo: Path, n_commits: int) -> None:
    """The last commits with all they contain, as a bundle to clone from."""
    repo = repo.resolve()
    name = repo.name.removesuffix(".git")
    bundle = (folder / f"{name}.bundle").resolve()
    with tempfile.TemporaryDirectory() as scratch:
        clone = str(Path(scratch, "clone"))
        git("clone", "--quiet", "--bare", f"--depth={n_commits}", repo.as_uri(), clone)
        git("-C", clone, "bundle", "create", "--quiet", str(bundle), "HEAD")
        # A bundle of a shallow clone needs the list of where its history ends.
        shallow = Path(clone, "shallow")
        if shallow.exists():
            (folder / f"{name}.shallow").write_text(shallow.read_text())


def pip(*args: str) -> None:
    run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *args)


def git(*args: str) -> None:
    run("git", *args)


def run(*command: str) -> None:
    if subprocess.run(programs.command(*command), check=False).returncode:
        sys.exit(f"failed: {' '.join(command)}")


if __name__ == "__main__":
    main()
