"""llama.cpp without a checkout: where it is put, and what is said where that fails."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from codespec.system import llama_build, llama_builds, llama_place
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


@pytest.fixture
def bare(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without llama-cpp-python of its own."""
    monkeypatch.setattr(llama_place, "is_in_environment", lambda: False)


@pytest.mark.usefixtures("bare")
def test_the_build_of_an_earlier_version_is_unused_once_nothing_needs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    earlier = llama_place.build("cpu", silent)
    assert llama_place.others() == []
    elsewhere = tmp_path / "other" / "codespec"
    (elsewhere / "system").mkdir(parents=True)
    (elsewhere / "system" / "llama_place.py").touch()
    with monkeypatch.context() as patch:
        patch.setattr(llama_builds, "_HERE", elsewhere)
        llama_builds.mark(earlier)
    monkeypatch.setattr(llama_place, "VERSION", "9.9.9")
    later = llama_place.build("cpu", silent)
    (other,) = llama_place.others()
    assert (other.folder, other.users, other.is_unused) == (earlier, (elsewhere,), False)
    assert other.n_bytes > len("def llama_backend_init(): pass\n")
    # The other installation is deleted.
    shutil.rmtree(elsewhere)
    (other,) = llama_place.others()
    assert other.is_unused
    other.remove()
    assert not earlier.exists()
    # What is built anew in its place keeps its users.
    assert llama_place.build("cpu", silent) == later
    monkeypatch.setattr(llama_place, "VERSION", "9.9.10")
    (other,) = llama_place.others()
    assert (other.folder, other.is_unused) == (later, False)
    assert other.users == (Path(llama_place.__file__).parents[1],)


@pytest.mark.usefixtures("bare")
def test_a_build_that_was_made_for_another_processor_is_used_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = llama_place.build("cpu", silent)
    monkeypatch.setattr(llama_place, "_processor", lambda: "0123456789ab")
    there = llama_place.build("cpu", silent)
    (other,) = llama_place.others()
    assert (other.folder, other.is_unused) == (here, False)
    assert there != here
