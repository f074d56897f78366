"""Statistics: what is counted, by several processes, and how it goes away."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading

import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.errors import InputError
from codespec.usage import statistics
from codespec.usage.retained import n_retained
from codespec.usage.statistics import Stats, summary
from codespec.usage.suppression import PlaceKind

DAY = 86_400.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stats.db"


def test_what_was_shown_accepted_kept_and_typed(path):
    s = Stats(path)
    s.shown("a", "python", 20, 100.0)
    s.shown("b", "python", 10, 50.0)
    s.shown("c", "go", 8, 2.0, cached=True)
    s.accepted("a", 5)  # by word
    s.accepted("a", 20)
    s.retained("a", 12)
    s.accepted("c", 8)
    s.typed("python", 40)
    s.typed("python", 40)
    s.flush()
    everything, python, go = summary(path=path)
    assert (everything.n_shown, everything.n_accepted, everything.n_accepted_chars) == (3, 2, 28)
    assert (python.n_accepted_chars, python.n_retained_chars, python.n_looked_at_chars) == (
        20,
        12,
        20,
    )
    assert python.acceptance == 0.5
    assert python.written_share == 0.2
    assert python.model_ms == (100.0, 100.0)
    assert python.cached_ms is None
    assert (go.language, go.cached_ms, go.model_ms) == ("go", (2.0, 2.0), None)


def test_reports_that_come_twice_late_or_wrong_change_nothing(path):
    s = Stats(path)
    s.shown("a", "c", 10, 1.0)
    s.shown("a", "c", 99, 1.0)
    s.accepted("a", 50)
    s.accepted("a", 3)
    s.retained("a", 70)
    s.accepted("never shown", 5)
    s.flush()
    (row, _) = summary(path=path)
    assert (row.n_shown, row.n_accepted_chars, row.n_retained_chars) == (1, 10, 10)


def test_an_alternative_may_be_longer_than_what_was_shown_first(path):
    s = Stats(path)
    s.shown("a", "python", 5, 1.0)
    s.accepted("a", 3, 17)  # by word
    s.accepted("a", 17, 14)  # the rest of it
    s.accepted("a", 50, 2)
    s.flush()
    (row, _) = summary(path=path)
    assert (row.n_shown, row.n_shown_chars, row.n_accepted_chars) == (1, 17, 17)


def test_only_the_last_days_and_nothing_for_ever(path):
    now = 1000 * DAY
    old = Stats(path, clock=lambda: now - (statistics.MAX_AGE_DAYS + 1) * DAY)
    old.shown("ancient", "c", 1, 1.0)
    old.typed("c", 5)
    old.flush()
    week = Stats(path, clock=lambda: now - 7 * DAY)
    week.shown("last week", "c", 1, 1.0)
    week.flush()
    today = Stats(path, clock=lambda: now)
    today.shown("today", "c", 1, 1.0)
    today.flush()
    assert summary(path=path, clock=lambda: now)[0].n_shown == 2
    assert summary(path=path, clock=lambda: now)[0].n_typed_chars == 0
    assert summary(3, path=path, clock=lambda: now)[0].n_shown == 1
    for days in (1e20, 1e308):
        assert summary(days, path=path, clock=lambda: now)[0].n_shown == 2


def test_many_writers_lose_nothing(path):
    def write(who: int) -> None:
        s = Stats(path)
        for i in range(20):
            s.shown(f"{who}-{i}", "rust", 1, 1.0)
            s.typed("rust", 1)
            s.flush()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert summary(path=path)[0].n_shown == 80
    assert summary(path=path)[0].n_typed_chars == 80


def test_a_broken_database_is_no_error_for_editors_and_a_clear_one_for_readers(path):
    path.write_bytes(b"no database at all" * 100)
    s = Stats(path)
    s.shown("a", "c", 1, 1.0)
    s.flush()
    with pytest.raises(InputError, match="cannot be read"):
        summary(path=path)
    assert statistics.delete(path)
    s.shown("b", "c", 1, 1.0)
    s.flush()
    assert summary(path=path)[0].n_shown == 2  # the first one was kept until it could be written


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE suggestion SET language = NULL",
        "UPDATE suggestion SET latency_ms = 'x'",
        "UPDATE suggestion SET latency_ms = 1e999",
        "UPDATE typed SET n_chars = x'00ff'",
        "UPDATE typed SET language = CAST(x'ff' AS TEXT)",
    ],
)
def test_values_that_are_none_are_said_to_be(path, damage):
    s = Stats(path)
    s.shown("a", "c", 1, 1.0)
    s.typed("c", 3)
    s.habit("c", PlaceKind.COMMENT, 3, 1)
    s.flush()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(damage)
        db.execute("UPDATE habit SET n_shown = 'x'")
    with pytest.raises(InputError, match="codespec stats --delete"):
        summary(path=path)
    assert s.habits() == {}
    assert statistics.delete(path)


def test_a_database_whose_own_words_are_damaged(path):
    """SQLite says in its message what it cannot read."""
    s = Stats(path)
    s.shown("a", "c", 1, 1.0)
    s.flush()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE typed", b"CREATE T\xff\xfeLE typed"))
    s.shown("b", "c", 1, 1.0)
    s.flush()
    assert s.habits() == {}
    with pytest.raises(InputError, match="it is damaged"):
        summary(path=path)
    assert statistics.delete(path)
    s.flush()
    assert summary(path=path)[0].n_shown == 1


def test_deleting_mends_what_another_version_left(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE suggestion (id TEXT)")
    with pytest.raises(InputError, match="codespec stats --delete"):
        summary(path=path)
    assert statistics.delete(path)
    assert summary(path=path) == []


def test_what_could_not_be_written_is_written_later(path):
    s = Stats(path)
    path.mkdir()
    s.shown("a", "python", 20, 100.0)
    s.flush()
    path.rmdir()
    s.accepted("a", 5)
    s.flush()
    assert summary(path=path)[0].n_accepted_chars == 5


def test_a_data_folder_that_cannot_be_made_costs_editors_nothing_but_numbers(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    s = Stats()
    assert s.habits() == {}
    s.shown("a", "python", 20, 100.0)
    s.flush()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    s.flush()
    assert summary()[0].n_shown == 1


@pytest.mark.parametrize(("language", "n_chars"), [("\ud800", 1), ("python", 2**70)])
def test_what_no_database_can_hold_takes_nothing_else_with_it(path, language, n_chars):
    s = Stats(path)
    s.shown("a", language, n_chars, 1.0)
    s.shown("b", "python", 20, 1.0)
    s.flush()
    assert summary(path=path)[0].n_shown_chars == 20


def test_no_text_is_stored(path):
    s = Stats(path)
    s.shown("a", "python", 10, 1.0)
    s.flush()
    with sqlite3.connect(path) as db:
        columns = {row[1] for row in db.execute("PRAGMA table_info(suggestion)")}
    db.close()
    assert columns == {
        "id", "at", "language", "n_chars", "latency_ms", "cached", "n_accepted", "n_retained",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("accepted", "now", "n"),
    [
        ("foo(a)", "x = foo(a)\n", 6),
        ("foo(a)\nbar()", "foo(a)\n\n  bar()\n", 11),
        ("foo(a)\nbar()", "bar()\nfoo(a)\n", 6),
        ("foo(a)", "fo", 0),
    ],
)
def test_retained_characters(accepted, now, n):
    assert n_retained(accepted, now) == n


def test_command_line():
    runner = CliRunner()
    assert "nothing was shown yet" in runner.invoke(main, ["stats"]).output
    s = Stats()
    s.shown("a", "python", 10, 80.0)
    s.accepted("a", 10)
    s.flush()
    shown = json.loads(runner.invoke(main, ["stats", "--json"]).output)
    assert shown["languages"][0]["acceptance"] == 1.0
    assert "python" in runner.invoke(main, ["stats"]).output
    assert runner.invoke(main, ["stats", "--delete"], input="n\n").exit_code == 1
    deleted = runner.invoke(main, ["stats", "--delete", "--json"], input="y\n")
    assert json.loads(deleted.stdout) == {"deleted": True}
    assert "Delete all statistics?" in deleted.stderr
    s.typed("python", 1)
    s.flush()
    assert "deleted" in runner.invoke(main, ["stats", "--delete", "--yes"]).output
    assert json.loads(runner.invoke(main, ["stats", "--json"]).output)["languages"] == []


def test_a_language_is_printed_by_the_name_that_an_editor_gives_it(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    s = Stats()
    s.shown("a", "a[/b]\x1b", 10, 80.0)
    s.habit("a[/b]\x1b", PlaceKind.COMMENT, 44, 0)
    s.flush()
    done = CliRunner().invoke(main, ["stats"])
    assert done.exit_code == 0, done.exception
    assert done.output.count(r"a[/b]\x1b") == 2


def test_habits_are_shown_and_deleted_with_the_rest():
    runner = CliRunner()
    s = Stats()
    s.habit("go", PlaceKind.COMMENT, 44, 0)
    s.habit("python", PlaceKind.WITHIN_LINE, 30, 0)
    s.flush()
    found = json.loads(runner.invoke(main, ["stats", "--json"]).output)["habits"]
    assert [(h["language"], h["n_shown"], h["is_hopeless"]) for h in found] == [
        ("go", 44, True),
        ("python", 30, False),
    ]
    shown = runner.invoke(main, ["stats"]).output
    assert "unasked, in comments in go: 0 of 44 accepted; one in 8 is made" in shown
    assert "unasked, within a line in python: 0 of 30 accepted; they are made" in shown
    assert "deleted" in runner.invoke(main, ["stats", "--delete", "--yes"]).output
    assert Stats().habits() == {}
    assert "nothing was shown yet" in runner.invoke(main, ["stats"]).output


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_any_terminal_shows_all_figures(encoding, monkeypatch):
    s = Stats()
    s.shown("a", "python", 98765, 80.0)
    s.accepted("a", 98765)
    s.flush()
    monkeypatch.setenv("COLUMNS", "40")
    done = CliRunner(charset=encoding).invoke(main, ["stats"])
    assert done.exit_code == 0, done.exception
    said = done.stdout_bytes.decode(encoding)
    rows = [line for line in said.splitlines() if line[:1] in ("│", "|")]
    assert set("98765") <= set("".join(rows))
    assert "…" not in said
