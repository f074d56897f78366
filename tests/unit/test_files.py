from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from codespec.system.files import write_atomically


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
