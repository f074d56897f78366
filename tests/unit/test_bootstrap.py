"""Set-up: what it depends on."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "bootstrap.py"


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def test_only_sources_make_it_build_again(bootstrap: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "codespec" / "native"
    for name in ("kernels", "__pycache__"):
        (folder / name).mkdir(parents=True)
    before = bootstrap.stamp(dev=False)
    # Python leaves this when the package is first used, right after set-up.
    (folder / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"x")
    assert bootstrap.stamp(dev=False) == before
    for name in ("a.cpp", "b.h", "kernels/c.cpp", "CMakeLists.txt"):
        (folder / name).write_text("x")
        now = bootstrap.stamp(dev=False)
        assert now != before
        before = now


def test_a_new_cache_folder_is_marked_as_one(bootstrap: ModuleType, tmp_path: Path) -> None:
    folder = bootstrap.cache_dir()
    assert not folder.exists()
    bootstrap.make_cache_dir()
    mark = folder / "CACHEDIR.TAG"
    assert mark.read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    mark.unlink()
    bootstrap.make_cache_dir()
    assert not mark.exists()
