"""Files that `make run` fetches."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from codespec.requests import Completion, CompletionRequest
from codespec_bench import demo


def test_archives_are_unpacked_by_a_python_without_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Debian 12's, for one. `bench models --json` fetches them, too: nothing is said among that."""
    source = tmp_path / "thing-1.0"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    inner = tarfile.TarFile.extractall

    def extractall(tar: tarfile.TarFile, path: Path) -> None:
        # A Python that has filters and is not told of one warns.
        vars(tar)["extraction_filter"] = lambda member, _: member
        inner(tar, path)

    def run(command: Sequence[str], check: bool) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--dest") + 1])
        folder.mkdir(parents=True)
        with tarfile.open(folder / "thing-1.0.tar.gz", "w:gz") as tar:
            tar.add(source, "thing-1.0")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    monkeypatch.setattr(subprocess, "run", run)
    assert (demo.fetch("thing==1.0") / "a.py").read_text() == "x = 1\n"
    assert tuple(capsys.readouterr()) == ("", "fetching thing==1.0\n")


def test_code_is_shown_in_lines_of_its_own_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    head = f"def {'longer_than_a_line, ' * 4}:"
    place = demo.DemoPlace(tmp_path / "a.py", 2, f"{head}\n    ", "")
    said = Completion(CompletionRequest("").insertion(f"return {'a + ' * 20}1"))
    demo.show(place, tmp_path, said, said)
    shown = capsys.readouterr().out.splitlines()
    assert {head, f"    {said.text}"} <= set(shown)


def test_what_keeps_it_from_running_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("x = [")
    env = {**os.environ, "CODESPEC_CONFIG": str(tmp_path / "config.toml")}
    command = [sys.executable, "-m", "codespec_bench.demo"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'config.toml'}: ")
