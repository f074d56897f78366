"""Log files, and what the light processes must not import."""

from __future__ import annotations

import errno
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespec.daemon import logs
from codespec.system import log_privacy


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_files_rotate_and_stderr_goes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_logger: logging.Logger
) -> None:
    moved: list[int] = []
    monkeypatch.setattr(logs.os, "dup2", lambda _fd, to: moved.append(to))
    monkeypatch.setattr(logs, "_MAX_BYTES", 500)
    path = tmp_path / "daemon.log"
    logs.set_up(path, "info")
    for i in range(50):
        logging.getLogger("codespec.test").info("line %d", i)
    files = sorted(tmp_path.iterdir())
    assert [f.name for f in files] == ["daemon.log", "daemon.log.1", "daemon.log.2"]
    assert all(f.stat().st_size <= 500 for f in files)
    assert "line 49" in path.read_text("utf-8")
    assert moved
    assert set(moved) == {2}


def test_the_level_is_the_one_of_the_settings(tmp_path: Path, root_logger: logging.Logger) -> None:
    path = tmp_path / "daemon.log"
    logs.set_up(path, "warning")
    logging.getLogger("codespec.test").info("quiet")
    logging.getLogger("codespec.test").warning("loud")
    assert "quiet" not in path.read_text("utf-8")
    assert "loud" in path.read_text("utf-8")


def test_exceptions_are_outlined_without_their_messages() -> None:
    def inner() -> None:
        raise KeyError("SECRET")

    def outer() -> None:
        try:
            inner()
        except KeyError as e:
            raise ValueError("SECRET") from e

    with pytest.raises(ValueError, match="SECRET") as caught:
        outer()
    outline = log_privacy.outline(caught.value)
    assert "SECRET" not in outline
    for words in ("ValueError", "KeyError", "inner", "outer", "test_daemon_logs.py:"):
        assert words in outline


def test_errors_of_the_system_are_outlined_by_name() -> None:
    error = OSError(errno.ENOSPC, "SECRET", "SECRET")
    assert log_privacy.outline(error) == "OSError ENOSPC at unknown"


def test_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert logs.last_lines(path, 3) == []
    path.write_text("".join(f"line {i}\n" for i in range(1000)))
    assert logs.last_lines(path, 3) == ["line 997", "line 998", "line 999"]
    path.write_bytes(b"\xff\xfe\n")
    assert len(logs.last_lines(path, 3)) == 1


@pytest.mark.parametrize("module", ["codespec.daemon.listener", "codespec_lsp.language_server"])
def test_processes_that_only_route_start_without_heavy_imports(module: str) -> None:
    heavy = "{'numpy', 'llama_cpp', 'torch', 'tree_sitter', 'rich', 'codespec.native'}"
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"
