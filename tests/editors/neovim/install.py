"""Neovim in the oldest and the newest version that the plug-in is for, beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.editors import debian
from tests.editors.install import Unavailable, cached, run
from tests.editors.relocate import relocate

# Debian's releases by the Neovim in them.
SUITES = {"0.10": "trixie", "0.12": "forky"}


@dataclass(frozen=True)
class Neovim:
    """version: as it says itself, e.g. (0, 12, 4)."""

    program: Path
    runtime: Path
    version: tuple[int, ...]

    @property
    def env(self) -> dict[str, str]:
        """Environment in which it finds its own files: it was built for another folder."""
        return {"VIM": str(self.runtime.parent), "VIMRUNTIME": str(self.runtime)}


def install(version: str) -> Neovim:
    """`version`: of SUITES. Raises: Unavailable."""
    suite = SUITES[version]
    root = cached(
        f"neovim-{version}", [suite, debian, relocate, _build], lambda into: _build(suite, into)
    )
    found = Neovim(root / "usr/bin/nvim", root / "usr/share/nvim/runtime", ())
    said = run([str(found.program), "--version"], env=found.env).split()[1]
    numbers = tuple(int(part) for part in said.lstrip("v").split("-")[0].split("."))
    if numbers < tuple(map(int, version.split("."))):
        raise Unavailable(f"Debian {suite} has Neovim {said}, older than {version}")
    return Neovim(found.program, found.runtime, numbers)


def _build(suite: str, into: Path) -> None:
    debian.unpack(["neovim"], into, suite)
    relocate(into, into / "usr/bin/nvim")
