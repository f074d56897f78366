"""Content of the package, and that its sources are clean."""

from __future__ import annotations

import json
import tarfile
import zipfile
from io import BytesIO

from . import install
from .conftest import Parts


def test_types_and_style(parts: Parts) -> None:
    install.script("check")


def test_the_package_brings_codespec_and_nothing_stray(parts: Parts) -> None:
    with zipfile.ZipFile(parts.vsix) as packed:
        names = {name.removeprefix("extension/") for name in packed.namelist()}
        source = packed.read("extension/dist/source.tar.gz")
    assert {"dist/extension.js", "dist/source.digest", "media/icon.png", "readme.md"} <= names
    assert not [name for name in names if name.endswith((".ts", ".map")) or "node_modules" in name]
    with tarfile.open(fileobj=BytesIO(source)) as sources:
        files = set(sources.getnames())
    assert {".ci/bootstrap.py", "pyproject.toml", "codespec/native/CMakeLists.txt"} <= files
    assert {"lsp/__main__.py", "codespec/models/bundled/codespec-base.gguf"} <= files


def test_each_command_is_in_the_manifest_and_each_setting_described() -> None:
    contributed = json.loads((install.PLUGIN / "package.json").read_text())["contributes"]
    for name, setting in contributed["configuration"]["properties"].items():
        assert setting.get("markdownDescription") or setting.get("description"), name
        # A workspace chooses no program and no model.
        if name.rsplit(".")[-1] in ("path", "python", "model", "draftModel"):
            assert setting["scope"] == "machine", name
    lock = (install.PLUGIN / "package-lock.json").read_text()
    assert '"resolved"' not in lock
