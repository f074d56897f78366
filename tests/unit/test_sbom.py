"""The list of all parts: it has CycloneDX's form, and names what users run."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
import tomli

pytest.importorskip("cyclonedx")
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def listed() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / ".ci" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    project = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = module.document(project)
    assert module.document(project) == found, "the same sources give the same list"
    return found


def test_it_has_the_form_of_the_standard(listed: dict[str, Any]) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(listed)) is None
    listed = {**listed, "components": [{"name": "without a type"}]}
    assert validator.validate_str(json.dumps(listed)) is not None


def test_it_names_what_users_run_and_what_developers_need(listed: dict[str, Any]) -> None:
    parts = {part["bom-ref"]: part for part in listed["components"]}
    assert len(parts) == len(listed["components"])
    by_name = {part["name"]: part for part in parts.values()}
    for name in ("click", "numpy", "tree-sitter-python", "llama-cpp-python", "llama.cpp"):
        assert by_name[name]["scope"] == "required", name
    for name in ("pytest", "torch", "esbuild"):
        assert by_name[name]["scope"] == "excluded", name
    assert by_name["vscode-languageclient"]["purl"].startswith("pkg:npm/vscode-languageclient@")
    locked = (ROOT / ".ci" / "requirements.txt").read_text("utf-8")
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", locked, re.M):
        assert f"pkg:pypi/{name.lower()}@{version}" in parts
    (of_codespec,) = listed["dependencies"]
    assert set(of_codespec["dependsOn"]) == {
        r for r, p in parts.items() if p["scope"] == "required"
    }


def test_files_in_the_repository_are_known_by_their_bytes(listed: dict[str, Any]) -> None:
    models = [p for p in listed["components"] if p["type"] == "machine-learning-model"]
    assert models
    for part in models:
        file = ROOT / "codespec" / "models" / "bundled" / part["name"]
        assert part["hashes"][0]["content"] == hashlib.sha256(file.read_bytes()).hexdigest()
