"""`codespec setup` where llama.cpp is there: other builds of it are named, and removed where asked
for."""

from __future__ import annotations

from pathlib import Path

from codespec.system import llama_place
from tests.e2e.command_line import codespec
from tests.e2e.conftest import Home


def build(name: str, users: list[Path] | None) -> Path:
    """A folder like one of an earlier version. users: None for one that does not say."""
    folder = llama_place.folder().parent / name
    (folder / "llama_cpp").mkdir(parents=True)
    (folder / "llama_cpp" / "libllama.so").write_bytes(bytes(3_000_000))
    if users is not None:
        (folder / "codespec-used-by").mkdir()
    for n, user in enumerate(users or []):
        (folder / "codespec-used-by" / str(n)).write_text(str(user))
    return folder


def test_other_builds_are_named_and_those_that_none_uses_removed(
    home: Home, tmp_path: Path
) -> None:
    user = tmp_path / "environment" / "codespec"
    (user / "system").mkdir(parents=True)
    (user / "system" / "llama_place.py").touch()
    said, _, _ = codespec("setup")
    assert "also there" not in said
    unused = build("0.3.35-0123456789ab", [tmp_path / "gone"])
    used = build("0.3.34-0123456789ab", [user, tmp_path / "gone"])
    unknown = build("0.3.33-0123456789ab", None)
    said, _, _ = codespec("setup")
    assert f"also there: {unused} (3 MB), used by no codespec of yours" in said
    assert f"also there: {used} (3 MB), used by {user}\n" in said
    assert f"also there: {unknown} (3 MB), which does not say what uses it" in said
    assert "codespec setup --remove-unused" in said
    assert unused.is_dir()
    said, _, _ = codespec("setup", "--remove-unused")
    assert f"removed: {unused} (3 MB)" in said
    assert not unused.exists()
    assert used.is_dir()
    assert unknown.is_dir()
