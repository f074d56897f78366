"""`codespec models`, called as on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from codespec.cli import main
from codespec.config import config_path
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["models", *map(str, args)])


def ok(*args: object) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "Mine.gguf"
    path.write_bytes(bundled(BUNDLED_TARGET).read_bytes())
    return path


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config" / "config.toml"
    path.parent.mkdir()
    path.touch()
    monkeypatch.setenv("CODESPEC_CONFIG", str(path))
    assert config_path() == path
    return path
