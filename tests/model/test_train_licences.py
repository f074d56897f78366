"""Only source whose licence is known and permissive may be trained on."""

from __future__ import annotations

import json
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from codespec.train import licences


@pytest.mark.parametrize(
    "expression",
    [
        "MIT",
        "Apache-2.0 OR BSD-3-Clause",
        "GPL-3.0-only OR MIT",
        "(MIT AND Zlib)",
        "MIT AND CC0-1.0",
    ],
)
def test_permissive_expressions_are_admitted(expression: str) -> None:
    assert licences.permissive_expression(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "GPL-3.0-or-later",
        "LGPL-2.1-only",
        "MPL-2.0 AND MIT",
        "MPL-2.0 AND MIT OR MIT",
        "MIT GPL-3.0-only",
        "LicenseRef-Own",
        "Apache-2.0 WITH LLVM-exception",
        "Proprietary",
    ],
)
def test_everything_else_is_refused(expression: str) -> None:
    assert not licences.permissive_expression(expression)


@pytest.mark.parametrize(
    ("head", "licence"),
    [
        ("License-Expression: ISC", "ISC"),
        ("License-Expression: MPL-2.0\nLicense: MIT", None),
        ("License: Apache License, Version 2.0", "Apache-2.0"),
        ("License: see LICENSE", None),
        ("Classifier: License :: OSI Approved :: BSD License", "BSD-3-Clause"),
        (
            "Classifier: License :: OSI Approved :: BSD License\n"
            "Classifier: License :: OSI Approved :: GNU General Public License (GPL)",
            None,
        ),
        ("License: GPL\nClassifier: License :: OSI Approved", None),
        ("Summary: nothing said", None),
    ],
)
def test_licence_of_a_distribution(tmp_path: Path, head: str, licence: str | None) -> None:
    info = tmp_path / "x-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: x\nVersion: 1.0\n{head}\n")
    assert licences.of_distribution(PathDistribution(info)) == licence


@pytest.mark.parametrize(
    ("field", "licence"),
    [("MIT", "MIT"), ("(MIT OR Apache-2.0)", "MIT OR Apache-2.0"), ("GPL-3.0", None), (None, None)],
)
def test_licence_of_an_npm_package(tmp_path: Path, field: str | None, licence: str | None) -> None:
    content = {"name": "@a/b", "version": "2.0.0", "license": field}
    (tmp_path / "package.json").write_text(json.dumps(content))
    assert licences.of_npm_package(tmp_path) == ("@a/b", "2.0.0", licence)


@pytest.mark.parametrize("content", ["[]", "{}", "{"])
def test_a_damaged_npm_manifest_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "package.json").write_text(content)
    with pytest.raises(ValueError, match=r"."):
        licences.of_npm_package(tmp_path)
