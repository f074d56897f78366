"""Debian packages unpacked into a folder: no root, the system's own packages stay as they are."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from .install import Unavailable, run

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def unpack(packages: list[str], folder: Path, suite: str = "") -> None:
    """`packages` and what they depend on, into `folder` (as if it were /).

    suite: "" takes the release of this machine, and only what it lacks; another release ("forky")
    comes with all it needs, its C library included. Raises: Unavailable.
    """
    if not shutil.which("apt-get"):
        raise Unavailable("no apt-get: not a Debian system")
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    options: dict[str, object] = {
        "Dir::State::lists": apt / "lists",
        "Dir::Cache": apt / "cache",
        "Debug::NoLocking": 1,
    }
    if os.getuid() == 0:
        options["APT::Sandbox::User"] = "root"  # its own user cannot read our cache folder
    if suite:
        (apt / "status").touch()
        (apt / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {suite} main\n")
        options["Dir::State::status"] = apt / "status"
        options["Dir::Etc::sourcelist"] = apt / "sources.list"
        options["Dir::Etc::sourceparts"] = "-"
    get = ["apt-get", "-qq", *[f"-o{name}={value}" for name, value in options.items()]]
    run([*get, "update"])
    # Those named are wanted here even where the system has them, too.
    fetch = ["install", "--yes", "--download-only", "--reinstall", "--no-install-recommends"]
    run([*get, *fetch, *packages])
    for archive in sorted((apt / "cache" / "archives").glob("*.deb")):
        run(["dpkg-deb", "-x", str(archive), str(folder)])
    shutil.rmtree(apt)


def _mirror() -> str:
    """Address of the mirror that this machine gets its own packages from."""
    sources = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    written = "\n".join(path.read_text() for path in sources if path.is_file())
    found = re.search(r"[a-z]+://\S+/debian/?(?=\s)", written + "\n")
    if not found:
        raise Unavailable("apt's sources name no Debian mirror")
    return found[0]


def library_path(folder: Path) -> str:
    """LD_LIBRARY_PATH of what was unpacked from this machine's own release."""
    libraries = [
        *folder.glob("lib/*-linux-gnu*/**/*.so*"),
        *folder.glob("usr/lib/*-linux-gnu*/**/*.so*"),
    ]
    return ":".join(sorted({str(library.parent) for library in libraries}))
