"""`codespec bench ablation`: cells, and what the rule makes of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec_bench.maintainers import ablation
from codespec_bench.maintainers.ablation_clock import median_ratio
from codespec_bench.results import Row

SHARED = """def shared(first, second):
    total = first * second
    return sorted(total, key=lambda item: item.weight)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()

    def git(*args: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(root), *identity, *args], check=True, capture_output=True)

    git("init", "-q")
    for name in ("a", "b"):
        (root / f"{name}.py").write_text(f"import json\n\n\n{SHARED}")
        git("add", "-A")
        git("commit", "-qm", "x")
    return root


def cells(ratios: dict[str, list[float]]) -> list[Row]:
    return [
        {"mechanism": name, "target": f"target {i}", "kind": "replay", "ratio": ratio}
        for name, found in ratios.items()
        for i, ratio in enumerate(found)
    ]


def test_two_targets_decide() -> None:
    rows = cells(
        {
            "trees": [0.96, 0.97],
            "filling": [0.5, 0.99],
            "way_back": [1.2, 1.0],
        }
    )
    assert [ablation.stays(name, rows) for name in ("trees", "stretches", "way_back")] == [
        True,
        False,
        False,
    ]


def test_a_clock_counts_where_it_says_less() -> None:
    rows = cells({"stretches": [1.0, 0.9]})
    rows.append({"mechanism": "stretches", "target": "target 0", "kind": "clock", "ratio": 0.95})
    assert ablation.stays("stretches", rows)
    assert ablation.worst("stretches", rows) == 0.9


def test_the_most_valuable_comes_back_until_what_fell_costs_little() -> None:
    rows = cells({"filling": [0.9, 1.0], "trees": [0.99, 1.0], "way_back": [0.95, 1.0]})
    together = {"filling+trees+way_back": 0.8, "trees+way_back": 0.94, "trees": 0.99}

    def rows_without(off: object) -> list[Row]:
        assert isinstance(off, dict)
        for name in off:
            if name in together:
                rows.extend(cells({name: [together[name]]}))
        return rows

    decision = ablation.decide(("filling", "trees", "way_back"), rows_without)
    assert decision["falls"] == ["trees"]
    assert decision["came_back"] == ["filling", "way_back"]


def test_an_interval_holds_the_median() -> None:
    ratio, low, high = median_ratio([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert (ratio, low, high) == (0.5, 0.5, 0.5)


def test_every_cell_has_a_figure_or_a_reason(repository: Path, tmp_path: Path) -> None:
    output = tmp_path / "results.jsonl"
    args = ["bench", "ablation", str(repository), "--commits", "1", "--places", "1"]
    for target in ("bundled", "0.6 B", "7 B, H200"):
        args += ["--target", target]
    for name in ("trees", "filling", "stretches"):
        args += ["--mechanism", name]
    shown = CliRunner().invoke(main, [*args, "--output", str(output)])
    assert shown.exit_code == 0, shown.output
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    measured = {(r["target"], r["mechanism"], r["kind"]): r for r in rows}
    assert measured["0.6 B", "trees", "replay"]["ratio"] > 0
    assert "GPU" in measured["0.6 B", "filling", "replay"]["why"]
    assert measured["7 B, H200", "filling", "replay"]["n_hunks"] == 1
    assert "clock" in measured["bundled", "stretches", "replay"]["why"]
    assert measured["bundled", "stretches", "clock"]["n_places"] == 1
    assert "0.6 B" in shown.stdout
    assert "falls" in shown.stdout
    # What was measured stands.
    again = CliRunner().invoke(main, [*args, "--output", str(output), "--json"])
    assert again.exit_code == 0, again.output
    assert len(output.read_text().splitlines()) == len(rows)
    said = [json.loads(line) for line in again.stdout.splitlines()]
    assert said[-1]["config"] == "decision"


def test_names_that_are_none(repository: Path) -> None:
    done = CliRunner().invoke(main, ["bench", "ablation", str(repository), "--target", "9 B"])
    assert done.exit_code != 0
    assert "0.6 B" in done.output
