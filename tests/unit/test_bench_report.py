"""The HTML page of results: whole, self-contained, well-formed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench import plots, report, results
from codespec.cli import main
from codespec.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"bench": "replay", "config": "plain", "curve": "cpu", "speedup": 1.0, "mat": 1.0},
    {
        "bench": "replay",
        "config": "codespec",
        "curve": "cpu",
        "speedup": 1.25,
        "by_source": {"prefix": [3, 4]},
        "by_position": [[3, 4], [1, 3]],
        "reliability": {"prefix": [[9, 0.2, 0.25], [10, 0.3, 0.2], [30, 0.9, 0.88]]},
    },
    {"bench": "curve", "model": "m", "n_context": 64, "t1_ms": 2.0, "n": [1, 2], "ratio": [1, 1.5]},
    {"bench": "latency", "config": "codespec", "samples": {"first": [3.0, 1.0, 2.0]}},
    {"bench": "peers", "config": "<other>", "workload": "edits", "ratio_to_plain": 0.9},
    {"bench": "index", "bytes_per_token": 5.1},
]


@pytest.fixture(scope="module")
def page() -> str:
    return report.page(results.stamped("?", ROWS))


def test_every_benchmark_has_its_section_table_and_plots(page: str) -> None:
    assert re.findall(r"<h2>(\w+)</h2>", page) == ["replay", "curve", "latency", "peers", "index"]
    assert page.count("<table>") == 5
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert len(captions) == 7, captions
    assert "1.25" in page
    assert "5.1" in page


def test_runs_of_the_same_thing_are_one_row_of_medians() -> None:
    runs = [{**ROWS[0], "speedup": speedup, "machine": {"cpu": "a"}} for speedup in (1.0, 3.0, 1.2)]
    (row,) = report.folded(runs)
    assert (row["speedup"], row["n_runs"]) == (1.2, 3)
    elsewhere = {**runs[0], "machine": {"cpu": "b"}}
    assert len(report.folded([*runs, elsewhere])) == 2


def test_a_real_model_is_not_taken_for_the_true_text() -> None:
    row = {"bench": "replay-model", "model": "m", "config": "plain", "speedup": 1.0}
    text = report.page([row])
    assert "Whole completions by the model" in text
    assert "true text" not in text


def test_the_page_needs_nothing_else(page: str) -> None:
    # Names of XML vocabularies are the only addresses.
    outside = [a for a in re.findall(r'(?:src|href)="([^"]*)"', page) if not a.startswith("#")]
    assert not outside
    assert "<script" not in page
    assert "@import" not in page


def test_plots_take_the_colour_of_the_page(page: str) -> None:
    for plot in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(plot)
        assert "currentColor" in plot
        assert "#010203" not in plot
        assert "#000000" not in plot


def test_ids_are_unique_and_references_find_theirs(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(|href=")#([^")]+)', page)
    assert used
    assert set(used) <= set(ids)


def test_names_are_text(page: str) -> None:
    assert "<other>" not in page


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file, out = tmp_path / "results", tmp_path / "page.html"
    results.append(file, ROWS)
    done = CliRunner().invoke(main, ["bench", "report", str(file), "--output", str(out)])
    assert done.exit_code == 0, done.output
    assert out.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("of", ["repository", "model", "machine"])
def test_what_is_not_the_same_is_set_side_by_side(of: str) -> None:
    row = {"bench": "peers", "config": "codespec", "workload": "edits", "model": "m"}
    one, two = ({"cpu": name} if of == "machine" else name for name in ("one", "two"))
    rows = [
        {**row, "machine": {"cpu": "x"}, of: value, "ratio_to_plain": ratio}
        for value, ratio in ((one, 1.25), (two, 1.75))
    ]
    names = ("machine 1", "machine 2") if of == "machine" else ("one", "two")
    text = report.page(rows)
    (plot,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    for name, ratio in zip(names, ("1.25", "1.75"), strict=True):
        assert f"edits, {name}" in plot
        assert re.search(rf"<td>{ratio}</td>", text)
        assert re.search(rf"<td>[^<]*{name}", text)
    # Nothing tells rows of one run apart but what they are of.
    (alone,) = re.findall(r"<svg.*?</svg>", report.page(rows[:1]), re.DOTALL)
    assert "edits," not in alone


def test_names_are_no_formulas() -> None:
    row = {"bench": "replay-model", "model": r"a$\x$b", "config": "plain", "speedup": 1.0}
    text = report.page([row, {**row, "model": "$_$"}])
    assert r"a$\x$b" in re.findall(r"<svg.*?</svg>", text, re.DOTALL)[0]


def test_many_results_with_long_names_leave_room_for_the_plot_and_are_told_apart() -> None:
    name = (
        "a-model-whose-name-is-as-long-as-those-of-models-are-that-Q4_K_M says what was done to it"
    )
    series = {f"{name} {i}": ([1.0, 2.0], [1.0, float(i)]) for i in range(30)}
    drawn = plots.lines(series, "x", "y")
    tall = re.search(r'viewBox="0 0 (\d+)\S* (\d+)', drawn)
    assert tall is not None
    places = [float(y) for y in re.findall(r'<text[^>]*transform="translate\(\S+ ([\d.]+)', drawn)]
    assert max(places) < int(tall[2])
    strokes = re.findall(r'<path d="M[^"]*L[^"]*"[^>]*style="fill: none; (stroke[^"]*)"', drawn)
    assert len(set(strokes)) >= 30
    bars = plots.bars({f"{name} {i}": {name: 1.0} for i in range(30)}, "y")
    assert bars.count("Q4_K_M") > 30


def test_a_single_sample_is_drawn() -> None:
    drawn = plots.distribution({"a": [5.0]}, "ms")
    line = re.search(rf'<path d="([^"]*)"[^>]*stroke: {plots.PALETTE[0]}', drawn)
    assert line is not None
    assert len(set(re.findall(r"[ML] \S+ (\S+)", line[1]))) == 2, "from 0 to 1"


def test_a_report_of_nothing_is_an_error(tmp_path: Path) -> None:
    file, out = tmp_path / "results", tmp_path / "page.html"
    file.touch()
    done = CliRunner().invoke(main, ["bench", "report", str(file), "--output", str(out)])
    assert done.exit_code == 1
    assert "no results" in done.output
    assert not out.exists()


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        report.write(ROWS, tmp_path / "none" / "page.html")


@pytest.mark.parametrize(
    "row",
    [
        {"bench": "replay", "config": "codespec", "curve": "cpu", "speedup": "fast"},
        {"bench": "replay", "config": "codespec", "by_source": 3},
        {"bench": "latency", "config": "codespec", "samples": [1]},
        {"bench": "curve", "n": [1, 2], "ratio": [1]},
    ],
)
def test_a_damaged_figure_is_named_with_its_benchmark(row: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"a result of '{row['bench']}' is damaged"):
        report.page([row])
