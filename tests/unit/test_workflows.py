"""Workflow files for a public host: their form, their faults, and what they may."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("ruamel.yaml")

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BIN = Path(sys.executable).parent


def run(name: str, *args: str | Path) -> None:
    done = subprocess.run([BIN / name, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def workflow(file: Path) -> dict[str, Any]:
    return yaml.YAML(typ="safe").load(file.read_text("utf-8"))


def test_there_is_one_that_tests_and_one_that_releases() -> None:
    assert [file.name for file in FILES] == ["release.yml", "test.yml"]


def test_their_form_is_that_of_the_schema() -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *FILES)


def test_the_linter_finds_no_fault() -> None:
    run("zizmor", "--offline", "--no-progress", "--persona", "pedantic", *FILES)


def test_a_fault_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "test.yml"
    file.write_text(re.sub(r"@[0-9a-f]{40} # (v[\d.]+)", r"@\1", FILES[1].read_text("utf-8")))
    with pytest.raises(AssertionError, match="unpinned-uses"):
        run("zizmor", "--offline", "--no-progress", file)
    file.write_text("on: push\njobs: {test: {steps: []}}\n")
    with pytest.raises(AssertionError, match="is not valid"):
        run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_they_may_no_more_than_they_need_and_run_named_commits(file: Path) -> None:
    text, jobs = file.read_text("utf-8"), workflow(file)["jobs"]
    assert text.startswith("# Untried: ")
    assert workflow(file)["permissions"] == {}
    for name, job in jobs.items():
        allowed = {"attestations", "id-token"} if name == "publish" else set[str]()
        written = {what for what, how in job["permissions"].items() if how == "write"}
        assert written == allowed, name
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


def test_they_run_what_a_checkout_runs() -> None:
    test = workflow(FILES[1])["jobs"]["test"]
    assert test["steps"][-1]["run"].startswith("make test ")
    systems = {row["system"]: row["backend"] for row in test["strategy"]["matrix"]["include"]}
    assert any(name.startswith("windows") for name in systems)
    assert "metal" in {backend for name, backend in systems.items() if name.startswith("macos")}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    for file in FILES:
        for words in re.findall(
            r"run: make ([a-z ]+?)(?= PYTHON|$)", file.read_text("utf-8"), re.M
        ):
            assert set(words.split()) <= set(targets)
