"""Each way to install, as a user with an empty home walks it, with what each step takes.

    python -m tests.packages.ways [--work FOLDER] [WAY ...]

It needs `make dist` and, for the editors, what their tests install. llama.cpp is built from nothing
by the first way that needs it; the wheel is then in the caches of the others. Prints each command
as it runs, and a row of a table for each way: seconds by the clock until codespec is installed,
until llama.cpp is there, and until the first suggestion.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from codespec_bench.machine import stamp
from tests.editors.conftest import end_daemons

from .ways_of_editors import by_lazy, by_lazy_folder, by_runtimepath, by_vim_pack, by_vscode
from .ways_of_users import CODE, ROOT, User


def of(suffix: str) -> Path:
    """The file that `make dist` made. Raises: SystemExit where there is none."""
    found = sorted((ROOT / "dist").glob(f"codespec-*{suffix}"))
    if not found:
        sys.exit("there is nothing to install: make dist")
    return found[0]


def completes(user: User, program: str) -> None:
    """The rest of a line, asked for on the command line."""
    file = user.home / "total.py"
    file.write_text(CODE)
    user.step("suggested", program, "complete", f"{file}:4:9")


def by_uv(user: User) -> None:
    user.step("installed", "uv", "tool", "install", "--python", sys.executable, of(".whl"))
    user.step("built", "codespec", "setup")
    completes(user, "codespec")


def by_pip(user: User, package: Path) -> None:
    environment = user.home / "codespec"
    user.step("installed", "python3", "-m", "venv", environment)
    user.step("installed", environment / "bin/pip", "install", "--quiet", package)
    user.step("built", environment / "bin/codespec", "setup")
    completes(user, str(environment / "bin/codespec"))


def by_checkout(user: User) -> None:
    checkout = user.home / "src" / "codespec"
    user.step("installed", "git", "clone", "--quiet", ROOT, checkout)
    # All in one: packages, llama.cpp, the index of a repository, lines of it completed.
    user.step("suggested", "make", "-C", checkout, "run")
    user.step("ready for developers", "make", "-C", checkout, "dev")


WAYS: dict[str, Callable[[User], None]] = {
    "uv tool install, wheel": by_uv,
    "uv tool install, wheel, again": by_uv,
    "pip install, wheel": lambda user: by_pip(user, of(".whl")),
    "pip install, archive": lambda user: by_pip(user, of(".tar.gz")),
    "make run, make dev": by_checkout,
    "Neovim, lazy.nvim, URL": by_lazy,
    "Neovim, lazy.nvim, folder": by_lazy_folder,
    "Neovim, vim.pack, URL": by_vim_pack,
    "Neovim, folder": by_runtimepath,
    "VS Code": by_vscode,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ways", nargs="*", metavar="WAY", help="a part of a way's name")
    parser.add_argument("--work", type=Path, help="a folder that stays, with its cache of wheels")
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="codespec-ways-"))
    wheels = work / "wheels"
    rows: list[str] = []
    for name, walk in WAYS.items():
        if arguments.ways and not any(part in name for part in arguments.ways):
            continue
        print(f"\n== {name}", flush=True)
        user = User(work / name.replace(" ", "-").replace(",", ""), wheels)
        try:
            walk(user)
        except (AssertionError, OSError, subprocess.SubprocessError) as e:
            user.fail(str(e))
        finally:
            end_daemons(user.runtime)
            user.keep_wheels()
            if not arguments.work:
                shutil.rmtree(user.home, ignore_errors=True)
        rows.append(f"| {name} | {' | '.join(user.cells())} |")
    here = stamp()
    print(f"\n{here['cpu']}, {here['n_cores']} cores, {here['os']}, Python {here['python']}\n")
    print("| way | installed | llama.cpp | first suggestion |\n|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
