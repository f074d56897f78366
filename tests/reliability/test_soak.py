"""The soak itself: it goes on where it stopped, and tells what failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reliability import soak

STEP = """
import os
from pathlib import Path
from tests.reliability.amount import amount, tell

def test_step():
    folder = Path({folder!r})
    with (folder / "done").open("a") as file:
        file.write(f"{name} {{amount(1)}}\\n")
    tell(injected=amount(1), largest_ms=float(len((folder / "done").read_text())))
    assert not (folder / "broken").exists() or "{name}" != "second"
"""


def test_it_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "FOLDER", tmp_path / "soak")
    rows = list[soak.Row]()
    for name in ("first", "second"):
        test = tmp_path / f"test_{name}.py"
        test.write_text(STEP.format(folder=str(tmp_path), name=name))
        rows.append(soak.Row("X", name, 2, 2, 90, str(test)))
    monkeypatch.setattr(soak, "ROWS", rows)
    done = tmp_path / "done"
    broken = tmp_path / "broken"
    broken.touch()
    assert soak.main() == 1
    assert done.read_text().splitlines() == ["first 2", "second 2"]
    said = capsys.readouterr().out
    assert "about 3 min in all" in said
    assert "2 first   passed; injected 2" in said
    broken.unlink()
    rows[1] = soak.Row("X", "second", 4, 2, 90, rows[1].command)
    assert soak.main() == 0
    assert done.read_text().splitlines()[2:] == ["second 2"] * 2
    assert "2 first: passed before" in capsys.readouterr().out
    report = json.loads((tmp_path / "soak" / "report.json").read_bytes())
    assert [(row["injects"], row["n"], row["passed"]) for row in report["rows"]] == [
        ("first", 2, True),
        ("second", 4, True),
    ]
    assert report["rows"][0]["facts"] == {"injected": 2, "largest_ms": 8.0}
    # A commit that is another one begins anew.
    monkeypatch.setattr(soak, "commit", lambda: "another")
    assert not soak.State.load().rows


def test_figures_that_are_too_high_are_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "FOLDER", tmp_path / "soak")
    monkeypatch.setattr(soak, "LIMITS", {"largest_ms": 10.0})
    test = tmp_path / "test_first.py"
    test.write_text(STEP.format(folder=str(tmp_path), name="first"))
    monkeypatch.setattr(soak, "ROWS", [soak.Row("X", "first", 2, 2, 1, str(test))])
    (tmp_path / "done").write_text("more")
    assert soak.main() == 1
    (tmp_path / "done").unlink()
    assert soak.main() == 0  # all of it was done again
