"""The builds of llama.cpp that lie beside each other, and which installations of codespec use each.

An update of codespec may need another version of llama.cpp, and machines that know different
instructions may share a home folder. So in each build's folder a file stands for each installation
that uses it, with the folder of that installation's package in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from codespec.system.llama_build import BuildError

_HERE = Path(__file__).parents[1]
"""Folder of this installation's package."""
_MODULE = "llama_cpp"
_USERS = "codespec-used-by"


@dataclass(frozen=True, slots=True)
class Build:
    """n_bytes: of its files. users: folders of the installations that use it and are still there.
    is_known: False for one of an earlier codespec, which does not say who uses it."""

    folder: Path
    n_bytes: int
    users: tuple[Path, ...]
    is_known: bool

    @property
    def is_unused(self) -> bool:
        """True if it is known that no installation uses it."""
        return self.is_known and not self.users

    def remove(self) -> None:
        """Raises: BuildError."""
        try:
            shutil.rmtree(self.folder)
        except OSError as e:  # Windows: a library that is loaded cannot be deleted
            raise BuildError(
                f"{self.folder} cannot be removed: {e.strerror}",
                "End what uses it (codespec daemon stop --all), then do this again.",
            ) from None


def mark(folder: Path) -> None:
    """Say in a build's folder that this installation uses it, and no other one for this kind of
    processor any more. A folder that cannot be written stays as it is."""
    name = hashlib.sha256(str(_HERE).encode()).hexdigest()[:12]
    file = folder / _USERS / name
    if file.is_file():
        return
    with contextlib.suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        file.write_text(str(_HERE), "utf-8")
        processor = folder.name.rpartition("-")[2]
        for other in folder.parent.glob(f"*-{processor}"):
            if other != folder:
                (other / _USERS / name).unlink(missing_ok=True)


def keep_marks(old: Path, new: Path) -> None:
    """Give a build that takes the place of another one the users of that."""
    if (old / _USERS).is_dir():
        shutil.copytree(old / _USERS, new / _USERS, dirs_exist_ok=True)


def builds(below: Path) -> list[Build]:
    """The builds in this folder, the newest first."""
    try:
        found = [each for each in below.iterdir() if (each / _MODULE).is_dir()]
        found.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    except OSError:
        return []
    return [_build(each) for each in found]


def _build(folder: Path) -> Build:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    n_bytes = sum(path.stat().st_size for path in files)
    marks = folder / _USERS
    users: list[Path] = []
    for file in sorted(marks.glob("*")):
        user = Path(file.read_text("utf-8", "replace"))
        if user.is_absolute() and (user / "system" / "llama_place.py").is_file():
            users.append(user)
    return Build(folder, n_bytes, tuple(users), marks.is_dir())
