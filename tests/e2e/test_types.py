"""The check of types sees a fake that does not do what it stands in for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAKES = """
from __future__ import annotations

from codespec.backends.fake import FakeTarget
from codespec.drafters.base import Drafter
from codespec.types import NO_DRAFT, Draft, LogitsRows, PassState, Tokens


class Right(Drafter):
    def propose(self, state: PassState, n_max: int) -> Draft:
        return NO_DRAFT


class WrongDrafter(Drafter):
    def propose(self, state: PassState) -> Draft:
        return NO_DRAFT


class WrongTarget(FakeTarget):
    def decode(self, tokens: Tokens, draft: Draft, more: int) -> LogitsRows:
        return super().decode(tokens, draft)


def wrong_call(target: FakeTarget) -> None:
    target.decode(NO_DRAFT.tokens)
"""


@pytest.mark.parametrize("folder", ["tests/unit", "tests/extension"])
def test_a_fake_with_a_wrong_signature_is_an_error(tmp_path: Path, folder: str) -> None:
    """By the project's own settings, in a project with this one file of tests."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in ("codespec", "typings"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "fakes.py").write_text(FAKES)
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(
        [*command, f"{folder}/fakes.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found = [
        (error["rule"], FAKES.splitlines()[error["range"]["start"]["line"]].strip())
        for error in json.loads(done.stdout)["generalDiagnostics"]
    ]
    assert found == [
        ("reportIncompatibleMethodOverride", "def propose(self, state: PassState) -> Draft:"),
        (
            "reportIncompatibleMethodOverride",
            "def decode(self, tokens: Tokens, draft: Draft, more: int) -> LogitsRows:",
        ),
        ("reportCallIssue", "target.decode(NO_DRAFT.tokens)"),
    ]
