"""llama.cpp without a checkout: where it is put, and what is said where that fails."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pytest

from codespec.system import llama_build, llama_place
from codespec.system.folders import cache_dir
from codespec.system.llama_build import BuildError


def silent(line: str) -> None:
    pass


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel whose library loads, as built before."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "a.whl"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("llama_cpp/__init__.py", "def llama_backend_init(): pass\n")
    monkeypatch.setattr(llama_build, "cached", lambda *_: file)
    return file


def test_what_it_was_built_for_last_is_known(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the next version, too."""
    assert llama_place.built() == "cpu"
    for backend in ("vulkan", "cpu", "hip"):
        place = llama_place.build(backend, silent)
        assert (place / "llama_cpp" / "__init__.py").is_file()
        assert llama_place.built() == backend
    monkeypatch.setattr(llama_place, "VERSION", "9.9.9")
    assert not llama_place.folder().exists()
    assert llama_place.built() == "hip"


def test_one_that_cannot_be_loaded_does_not_take_the_place_of_one_that_can(wheel: Path) -> None:
    place = llama_place.build("cpu", silent)
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("llama_cpp/__init__.py", "raise ImportError('no libvulkan.so.1')\n")
    with pytest.raises(BuildError, match=r"cannot be loaded: .*no libvulkan"):
        llama_place.build("vulkan", silent)
    assert "llama_backend_init" in (place / "llama_cpp" / "__init__.py").read_text()
    assert llama_place.built() == "cpu"


def test_where_nothing_can_be_fetched_a_log_and_a_way_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pip = [sys.executable, "-c", "import sys; print('no such package'); sys.exit(1)"]
    monkeypatch.setattr(llama_place, "_environment", lambda where: pip)
    (cache_dir() / "wheels").mkdir(parents=True)
    with (
        pytest.raises(BuildError, match="no such package") as failed,
        llama_place._builder(cache_dir(), silent),
    ):
        pass
    assert "PIP_FIND_LINKS" in failed.value.hint
    named = re.search("The whole log: (.*)", failed.value.hint)
    assert named
    assert "no such package" in Path(named[1]).read_text()
