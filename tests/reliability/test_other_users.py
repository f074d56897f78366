"""Another user of the machine: the real system says no, to a program that tries."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from codespec.daemon.address import address_of
from tests.e2e.command_line import codespec
from tests.e2e.conftest import CODE, CURSOR, Home

if sys.platform == "win32" or os.geteuid() != 0:
    pytest.skip("only root may be another user", allow_module_level=True)

NOBODY = 65_534

TRIES = f"""
import os, socket, sys
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
found = []
with socket.socket(socket.AF_UNIX) as client:
    try:
        client.connect(sys.argv[1])
        found.append("the socket")
    except PermissionError:
        pass
for root in sys.argv[2:]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            for flag in (os.O_RDONLY, os.O_WRONLY):
                try:
                    os.close(os.open(path, flag | os.O_NONBLOCK))
                    found.append(path)
                except OSError:
                    pass
        try:
            os.close(os.open(os.path.join(folder, "planted"), os.O_CREAT | os.O_WRONLY))
            found.append(folder)
        except OSError:
            pass
print(found)
"""


def test_another_user_reaches_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """However open the folders above are."""
    monkeypatch.delenv("CODESPEC_CACHE_DIR")
    place = f"{home.workspace / 'a.py'}:{CURSOR[0] + 1}:{CURSOR[1] + 1}"
    (home.workspace / "a.py").write_text(CODE)
    codespec("index", home.workspace)
    codespec("complete", "--daemon", place)
    kept = [home.path / name for name in ("xdg-cache", "state", "data", "config")]
    codespec("stats")
    socket = address_of(home.settings).socket
    assert socket.is_socket()
    for folder in (home.path, *home.path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o055)
    for folder in kept:
        folder.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", TRIES, socket, home.path / "run", *kept],
        cwd="/",
        env={},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.strip() == "[]", done.stderr
