"""Answers that are kept, asked for again at the same places, and compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codespec.errors import InputError
from codespec_bench import answers, results
from codespec_bench.gains_table import print_gains
from codespec_bench.maintainers import endings
from codespec_bench.places import CutPlace

TEXT = "é = f(1, 2)\ny = g(3)\n"


def place_in(folder: Path) -> CutPlace:
    (folder / "a.py").write_text(TEXT, encoding="utf-8")
    path, at = folder / "a.py", TEXT.index("1")
    return CutPlace(path, folder, "python", "inline", TEXT[:at], "1, 2", TEXT[at + 4 :])


def answer(n: int, exact: bool, kind: str = "line", **more: Any) -> dict[str, Any]:
    figures = dict.fromkeys(answers.COMPARED, 1.0)
    names = {"config": "truth", "path": "a", "truth": "", "after": "", "language": "python"}
    return {**names, "start": n, "kind": kind, **figures, "exact": float(exact), **more}


def test_a_place_is_found_again_also_with_a_line_cut_short(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    closed = endings.without_line(place)
    assert closed is not None
    for asked in (place, closed, replace(place, kind="closed", suffix=")")):
        assert answers.place_of(answers.row_of(asked)).prefix == asked.prefix
    assert answers.place_of(answers.row_of(closed)) == closed


def test_a_file_that_changed_is_named(tmp_path: Path) -> None:
    row = answers.row_of(place_in(tmp_path))
    (tmp_path / "a.py").write_text("x" + TEXT, encoding="utf-8")
    with pytest.raises(InputError, match="not as it was at line 1"):
        answers.place_of(row)


def test_a_file_of_something_else_is_no_answers(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    results.append(file, [{"bench": "curve"}])
    with pytest.raises(InputError, match="no answers"):
        answers.read(file)


def test_what_is_said_at_places_of_another_version_is_compared_place_by_place() -> None:
    base = [answer(n, exact=False) for n in range(40)] + [answer(99, exact=True, kind="words")]
    now = [answer(n, exact=n > 1) for n in range(40)] + [answer(100, exact=True)]
    by = {(row["kind"], row["language"]): row for row in answers.gains(now, base)}
    assert set(by) == {(k, lang) for k in ("line", "all") for lang in ("python", "all")}
    row = by["line", "python"]
    assert (row["n"], row["exact_before"], row["exact"]) == (40, 0.0, 38 / 40)
    assert 0 < row["exact_gain_low"] <= row["exact_gain"] <= row["exact_gain_high"] <= 1
    assert row["shown_gain_low"] == row["shown_gain_high"] == 0
    assert not answers.is_loss(row)
    lost = next(answers.gains(base, now))
    assert answers.is_loss(lost)


def test_more_that_breaks_is_a_loss(capsys: pytest.CaptureFixture[str]) -> None:
    base = [answer(n, exact=True, breaks=0.0) for n in range(9)]
    rows = list(answers.gains([answer(n, exact=True) for n in range(9)], base))
    assert all(map(answers.is_loss, rows))
    print_gains(rows)
    assert capsys.readouterr().out.count("LOSS") == len(rows)


def test_the_true_text_at_places_of_a_file(tmp_path: Path) -> None:
    row = endings.answer(place_in(tmp_path))
    assert (row["text"], row["exact"], row["outcome"], row["breaks"]) == ("1, 2", 1.0, "whole", 0.0)


def test_what_a_model_said_is_said_again(tmp_path: Path) -> None:
    row = endings.answer(place_in(tmp_path), "3)\nz = 1\n")
    assert (row["config"], row["text"], row["exact"]) == ("said", "3", 0.0)
    assert row["by_rule"]
