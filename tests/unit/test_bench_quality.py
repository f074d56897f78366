"""The quality benchmark: which places it asks at, and what it counts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.errors import InputError
from codespec_bench.judge import breaks, breaks_strictly, repeats_suffix, similarity, wrote
from codespec_bench.places import FINISHED, KINDS, CutPlace, places_in
from codespec_bench.quality import AnswerAtPlace, rows_of, run
from codespec_bench.quality_report import print_rows

SOURCE = """\
def area(radius, factor):
    pi = 3.14159
    return pi * radius * compute(radius, factor)


def show(value):
    print(value, value)
    return None
"""


def place(prefix="x = ", truth="1", suffix="\n", kind="line", language="python"):
    return CutPlace(Path("a.py"), Path("."), language, kind, prefix, truth, suffix)


def test_places_are_real_of_every_kind_and_the_same_each_time(tmp_path):
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "broken.py").write_text("def f(:\n" + SOURCE)
    asked = (*KINDS, FINISHED)
    places = places_in(tmp_path, 10, asked)
    assert {p.kind for p in places} == set(asked)
    assert places == places_in(tmp_path, 10, asked)
    for p in places:
        assert p.path.name == "a.py"
        assert p.prefix + p.truth + p.suffix == SOURCE
        assert not breaks(p.truth, p)
        assert not repeats_suffix(p.truth, p)


def test_a_name_may_begin_beyond_ascii(tmp_path):
    (tmp_path / "a.py").write_text("def f():\n    x = 1\n    é = x\n", encoding="utf-8")
    assert {p.truth for p in places_in(tmp_path, 9, ("below",))} == {"\n    é = x"}


@pytest.mark.parametrize("in_git", [False, True])
def test_names_that_are_not_text_are_left_out_as_by_the_index(tmp_path, in_git):
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text(SOURCE)
    (tmp_path / "a.py").write_text(SOURCE)
    if in_git:
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    assert {p.path.name for p in places_in(tmp_path, 10)} == {"a.py"}


def test_files_that_are_ignored_are_left_out_even_in_git(tmp_path):
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "b.py").write_text(SOURCE)
    (tmp_path / ".gitignore").write_text("b.py")
    for command in (["init", "-q"], ["add", "-f", "."]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    assert {p.path.name for p in places_in(tmp_path, 10)} == {"a.py"}


def test_a_folder_without_places(tmp_path):
    with pytest.raises(InputError, match="no places"):
        places_in(tmp_path, 1)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("", "", 1.0), ("a", "", 0.0), ("abc", "abc", 1.0), ("abcd", "ab", 4 / 6), ("xy", "yx", 0.5)],
)
def test_similarity(a, b, expected):
    assert similarity(a, b) == pytest.approx(expected)


@given(st.text(alphabet="abc", max_size=12), st.text(alphabet="abc", max_size=12))
def test_similarity_is_that_of_the_longest_common_subsequence(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, c in enumerate(a, 1):
        for j, d in enumerate(b, 1):
            table[i][j] = max(table[i - 1][j], table[i][j - 1], table[i - 1][j - 1] + (c == d))
    expected = 2 * table[-1][-1] / (len(a) + len(b)) if a and b else float(a == b)
    assert similarity(a, b) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "suffix", "truth", "repeats"),
    [
        ("f()\nreturn x", "\nreturn x\n", "f()", True),
        ("f()\n}", "\n}\n", "f()", False),
        ("a) -> int:", ") -> int:\n", "a", True),
        ("a, b", ") -> int:\n", "a", False),
        ("f()", "\nx = f()\n", "f()", False),  # it stands twice in truth, too
        ("g()", "\nx = g()\n", "f()", True),
        ("f(a)", ")\n", "a", False),  # closes what it opens
        ("f(a))", ")\n", "a", True),
        ("a;", ";\n", "a", True),
    ],
)
def test_repeating_the_suffix(text, suffix, truth, repeats):
    assert repeats_suffix(text, place(truth=truth, suffix=suffix)) is repeats


def test_breaking_a_file():
    assert breaks("(", place())
    assert not breaks("2", place())
    header = place(prefix="def f():\n    ", truth="pass", suffix="\n")
    assert not breaks("if a:", header)  # this grammar is patient
    assert breaks_strictly("if a:", header)


@pytest.mark.parametrize(
    ("said", "suffix", "expected"),
    [
        ("1", "\n", True),
        ("1\ny = 2", "\n", True),
        (" 1 \n", "\n", True),
        ("12", "\n", False),
        ("1 + 2", "\n", False),
        ("1) + f(", ")\n", True),
        ("", "\n", False),
    ],
)
def test_what_the_model_wrote_before_anything_was_trimmed(said, suffix, expected):
    assert wrote(said, place(truth="1", suffix=suffix)) is expected


def test_gains_are_differences_at_the_same_places_with_intervals():
    places = [place(truth="1"), place(truth="2"), place(truth="3")]
    answers = [
        AnswerAtPlace(config, p, text, text)
        for config, texts in (("file", "1xx"), ("+edits", "12x"), ("all", "1xx"))
        for p, text in zip(places, texts, strict=True)
    ]
    rows = {(row["config"], row["kind"], row["language"]): row for row in rows_of(answers, "m")}
    first, edits = rows["file", "all", "all"], rows["+edits", "line", "python"]
    assert first["exact"] == pytest.approx(1 / 3)
    assert "exact_gain" not in first
    assert edits["exact_gain"] == pytest.approx(1 / 3)
    assert edits["exact_gain_low"] <= 0 < edits["exact_gain_high"] <= 1
    same = rows["all", "all", "all"]
    assert same["exact_gain"] == same["exact_gain_low"] == same["exact_gain_high"] == 0


def test_a_gain_at_one_place_has_no_interval(capsys):
    answers = [AnswerAtPlace(config, place(truth="1"), "1", "1") for config in ("file", "all")]
    rows = list(rows_of(answers, "m"))
    assert {name for row in rows for name in row if "_gain" in name} == {
        "exact_gain",
        "similarity_gain",
    }
    print_rows(rows)
    assert "+0.0% +0.000\n" in capsys.readouterr().out


def test_the_row_of_the_truth(tmp_path):
    """Without a model: what stood there comes out as it was."""
    (tmp_path / "a.py").write_text(SOURCE)
    rows, answers = run(places_in(tmp_path, 10, (*KINDS, FINISHED)), {})
    assert {row["kind"] for row in rows} == {*KINDS, FINISHED, "all"}
    assert {row["kind"]: row["shown"] for row in rows}[FINISHED] == 0
    assert {answer.config for answer in answers} == {"truth"}
    assert all(row["exact"] == 1.0 and row["breaks"] == row["repeats"] == 0 for row in rows)


def test_finished_lines_want_nothing_and_count_by_themselves():
    places = [place(), place("x = 1", "", "\n", FINISHED), place("y = 1", "", "\n", FINISHED)]
    answers = [
        AnswerAtPlace("file", p, text, text)
        for p, text in zip(places, ("2", "", " # one"), strict=True)
    ]
    rows = {(row["kind"], row["language"]): row for row in rows_of(answers, "m")}
    assert rows["all", "all"]["n"] == 1
    assert rows[FINISHED, "all"]["n"] == 2
    assert rows[FINISHED, "python"]["shown"] == rows[FINISHED, "python"]["exact"] == 0.5


def test_the_tables_fit_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    places = [place(language="typescript")] * 1500
    answers = [
        AnswerAtPlace(config, p, text, text, ms=1234.0)
        for config, text in (("truth", "1"), ("file", "x"), ("+symbols", "1"))
        for p in places
    ]
    print_rows(list(rows_of(answers, "codespec-base")))
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert all(len(line) <= 80 for line in printed.splitlines())
    heads = "config language n shown exact alone alike suffix breaks strict ms kind context"
    assert set(heads.split()) <= set(printed.split())
    assert "+100.0% (+100.0% to +100.0%)" in printed
