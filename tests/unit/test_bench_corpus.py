"""What the index benchmarks measure on."""

from __future__ import annotations

from pathlib import Path

from codespec_bench.corpus import source_files


def test_links_that_lead_nowhere_are_no_sources(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("a = 1\n")
    (tmp_path / ".#a.py").symlink_to("user@host.1:2")
    (tmp_path / "folder.py").mkdir()
    assert [path.name for path in source_files(tmp_path)] == ["a.py", "b.py"]
