"""The browser that VS Code is shown in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import debian
from .install import Unavailable, cached, run


@dataclass(frozen=True)
class Chromium:
    program: Path
    shared_objects: str


def install() -> Chromium:
    """Raises: Unavailable."""
    packages = ["chromium", "fonts-dejavu-core"]
    root = cached("chromium", [packages, debian], lambda into: debian.unpack(packages, into))
    chromium = Chromium(root / "usr/lib/chromium/chromium", debian.library_path(root))
    # A library may have gone from the system since.
    environment = {"LD_LIBRARY_PATH": chromium.shared_objects}
    version = run([str(chromium.program), "--version"], env=environment)
    if "Chromium" not in version:
        raise Unavailable(f"chromium says {version!r}")
    return chromium
