from __future__ import annotations

import errno
import ntpath
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from codespec.system import files
from codespec.system.files import relative, write_atomically


def test_a_file_is_replaced_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new" / "folder" / "state.json"
    write_atomically(path, b"old")
    write_atomically(path, b"whole")
    assert path.read_bytes() == b"whole"
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        write(self, data[:2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="space") as error:
        write_atomically(path, b"other")
    assert error.value.filename == str(path), "the next step needs it"
    assert path.read_bytes() == b"whole"
    assert os.listdir(path.parent) == ["state.json"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (r"C:\w\src\a.py", r"src\a.py"),
        (r"c:\W\a.py", "a.py"),
        (r"C:\other\a.py", r"..\other\a.py"),
        (r"D:\w\src\a.py", r"..\w\src\a.py"),
        (r"\\server\share\a.py", r"..\a.py"),
    ],
)
def test_a_file_on_another_drive_is_outside_of_a_folder(
    path: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Windows' own rules of paths, on every system."""
    monkeypatch.setattr(files, "os", SimpleNamespace(path=ntpath, pardir=".."))
    assert relative(path, r"C:\w") == name
