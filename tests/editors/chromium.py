"""The browser that VS Code is shown in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import debian
from .install import Unavailable, cached, run

# A system without fonts does not say where they are, either, and the browser dies of that.
_FONTS = """<fontconfig>
<dir>/usr/share/fonts</dir><dir>{root}/usr/share/fonts</dir><cachedir>{root}/font-cache</cachedir>
</fontconfig>
"""


@dataclass(frozen=True)
class Chromium:
    """env: where it finds what came with it."""

    program: Path
    env: dict[str, str]


def install() -> Chromium:
    """Raises: Unavailable."""
    packages = ["chromium", "chromium-common", "fonts-dejavu-core"]
    root = cached(
        "chromium", [packages, debian, _FONTS, _build], lambda into: _build(packages, into)
    )
    env = {
        "LD_LIBRARY_PATH": debian.library_path(root),
        "FONTCONFIG_FILE": str(root / "fonts.conf"),
    }
    chromium = Chromium(root / "usr/lib/chromium/chromium", env)
    # A library may have gone from the system since.
    version = run([str(chromium.program), "--version"], env=chromium.env)
    if "Chromium" not in version:
        raise Unavailable(f"chromium says {version!r}")
    return chromium


def _build(packages: list[str], into: Path) -> None:
    debian.unpack(packages, into)
    (into / "fonts.conf").write_text(_FONTS.format(root=into))
