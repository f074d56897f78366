"""A statistics database that 97f5599 wrote, which stored kinds of places as sentences: its figures
stay what `codespec stats --json` of that version printed, `usage/statistics-97f5599.json`."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.usage.statistics import VERSION, Stats, default_path, delete
from codespec.usage.suppression import PlaceKind

USAGE = Path(__file__).parent / "usage"
PRINTED = json.loads((USAGE / "statistics-97f5599.json").read_text())
WRITTEN_S = 1_795_000_000.0
"""Time of the first event in the database: later writes delete what is a year old."""


@pytest.fixture
def path() -> Path:
    """The user's database, as that version left it."""
    path = default_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(USAGE / "statistics-97f5599.db", path)
    return path


@pytest.fixture
def stats(path: Path) -> Stats:
    return Stats(path, clock=lambda: WRITTEN_S)


def printed() -> dict[str, Any]:
    """Output of `codespec stats --json`, in the order and with the fields of 97f5599."""
    done = CliRunner().invoke(main, ["stats", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    for habit in found["habits"]:
        assert PlaceKind(habit.pop("kind_key")).text == habit["kind"]
    habits = sorted(found["habits"], key=lambda h: (h["language"], h["kind"]))
    return {"languages": found["languages"], "habits": habits}


def kinds(path: Path) -> set[str]:
    """Kinds of places as they are stored."""
    with closing(sqlite3.connect(path)) as db:
        return {kind for (kind,) in db.execute("SELECT kind FROM habit")}


def version(path: Path) -> int:
    """Version of the database's layout, as it is stored."""
    with closing(sqlite3.connect(path)) as db:
        ((found,),) = db.execute("PRAGMA user_version").fetchall()
    return found


def test_its_figures_are_read_as_they_were(path: Path) -> None:
    assert len({habit["kind"] for habit in PRINTED["habits"]}) == len(PlaceKind)
    assert printed() == PRINTED
    assert all(" " in kind for kind in kinds(path))  # reading changes nothing
    assert version(path) == 0


def test_its_habits_get_keys_when_something_is_written(path: Path, stats: Stats) -> None:
    stats.habit("go", PlaceKind.BELOW, 2, 1)
    stats.flush()
    assert kinds(path) == {kind.value for kind in PlaceKind}
    assert version(path) == VERSION
    found = printed()
    (counted,) = (h for h in found["habits"] if h["language"] == "go" and "below" in h["kind"])
    (before,) = (h for h in PRINTED["habits"] if h["language"] == "go" and "below" in h["kind"])
    assert counted["n_shown"] == before["n_shown"] + 2
    assert counted["n_accepted"] == before["n_accepted"] + 1
    counted.update(before)
    assert found == PRINTED


def test_a_conversion_that_fails_half_way_loses_nothing(path: Path, stats: Stats) -> None:
    stats.habit("go", PlaceKind.COMMENT, 1, 0)
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TRIGGER fails BEFORE DELETE ON habit WHEN old.kind = 'on empty lines' "
            "BEGIN SELECT RAISE(ABORT, 'interrupted'); END"
        )
    stats.flush()
    assert printed() == PRINTED
    assert all(" " in kind for kind in kinds(path))
    assert version(path) == 0
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TRIGGER fails")
    stats.flush()
    assert kinds(path) == {kind.value for kind in PlaceKind}
    (before,) = (
        h for h in PRINTED["habits"] if (h["language"], h["kind"]) == ("go", "in comments")
    )
    assert stats.habits()["go", PlaceKind.COMMENT] == (before["n_shown"] + 1, 0)


def test_an_older_codespec_may_write_beside(path: Path, stats: Stats) -> None:
    """An editor that was not restarted counts under sentences all the while."""
    stats.habit("go", PlaceKind.COMMENT, 1, 0)
    stats.flush()
    before = stats.habits()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO habit VALUES ('go', 'in comments', 4, 3)")
    n_shown, n_accepted = before["go", PlaceKind.COMMENT]
    after = {**before, ("go", PlaceKind.COMMENT): (n_shown + 4, n_accepted + 3)}
    assert stats.habits() == after
    stats.typed("go", 1)
    stats.flush()
    assert stats.habits() == after
    assert kinds(path) == {kind.value for kind in PlaceKind}


def test_kinds_of_a_later_codespec_are_kept_and_not_shown(path: Path, stats: Stats) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO habit VALUES ('go', 'in_a_dream', 4, 3)")
    assert printed() == PRINTED
    stats.typed("go", 1)
    stats.flush()
    assert "in_a_dream" in kinds(path)


def test_a_later_layout_is_neither_read_nor_written(path: Path, stats: Stats) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
        db.execute("ALTER TABLE suggestion RENAME TO offer")
    before = path.read_bytes()
    stats.habit("go", PlaceKind.COMMENT, 1, 0)
    stats.flush()
    assert stats.habits() == {}
    done = CliRunner().invoke(main, ["stats", "--json"])
    assert done.exit_code == 1
    assert "a later codespec wrote it" in done.output
    assert path.read_bytes() == before
    assert delete(path)
    stats.flush()
    assert stats.habits() == {("go", PlaceKind.COMMENT): (1, 0)}
    with closing(sqlite3.connect(path)) as db:
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert "offer" not in names
