"""Files of results: what comparing and gating make of them."""

from __future__ import annotations

import json
import math
import resource
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench import compare, gate, origins, results
from bench import report as html_report
from bench.peers import report
from codespec.cli import main
from codespec.cli.bench.results import deliver
from codespec.errors import InputError

RUN = {"bench": "replay", "config": "codespec", "curve": "cpu", "n_hunks": 3, "mat": 2.0}


def test_rows_are_read_as_written(tmp_path: Path) -> None:
    file = tmp_path / "results"
    rows = results.stamped("replay", [{"config": "plain", "mat": 1.0}])
    results.append(file, rows)
    results.append(file, rows)
    assert results.read(file) == rows * 2
    assert rows[0]["bench"] == "replay"
    named = {"cpu", "n_cores", "memory_gib", "backend", "os", "python", "codespec", "llama_cpp"}
    assert named <= set(rows[0]["machine"])


@pytest.mark.parametrize("content", ["nonsense", "[1, 2]", '{"a": 1}\n{"b":'])
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "results"
    file.write_text(content)
    with pytest.raises(InputError, match="line"):
        results.read(file)


def test_strings_and_parameters_are_what_was_measured() -> None:
    assert results.identity(RUN) != results.identity({**RUN, "n_hunks": 4})
    assert results.identity(RUN) == results.identity({**RUN, "mat": 9.0, "machine": {"cpu": "x"}})
    assert results.figures(RUN) == {"mat": 2.0}


def test_one_run_a_side_gives_a_ratio_and_no_interval() -> None:
    (found,) = compare.compare([RUN], [{**RUN, "mat": 3.0}])
    assert (found.ratio, found.low, found.certain) == (1.5, None, False)
    (found,) = compare.compare([{**RUN, "mat": 0.0}], [RUN])
    assert found.ratio is None  # what no JSON can say otherwise


def test_the_interval_holds_the_true_ratio_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for seed in range(100):
        a, b = rng.normal(10, 1, 25), rng.normal(12, 1, 25)
        low, high = compare.ratio_interval(a, b, seed)
        assert low is not None
        assert high is not None
        held += low <= 1.2 <= high
    assert 85 <= held <= 100


def test_a_real_difference_is_certain_and_noise_is_not() -> None:
    noise = [{**RUN, "mat": 2.0 + 0.01 * i} for i in range(5)]
    better = [{**RUN, "mat": 2.5 + 0.01 * i} for i in range(5)]
    assert not compare.compare(noise, noise)[0].certain
    assert compare.compare(noise, better)[0].certain


def test_the_gate_looks_at_the_direction() -> None:
    base = gate.gated([{**RUN, "bytes_per_token": 5.0}])
    assert not gate.regressions(base, [{**RUN, "mat": 2.5, "bytes_per_token": 4.0}], 0.01)
    worse = gate.regressions(base, [{**RUN, "mat": 1.9, "bytes_per_token": 5.2}], 0.01)
    assert [w.figure for w in worse] == ["mat", "bytes_per_token"]
    assert not gate.regressions(base, [{**RUN, "mat": 1.99, "bytes_per_token": 5.04}], 0.01)


def test_drafting_more_for_nothing_is_worse() -> None:
    base = gate.gated([{**RUN, "accepted": 10, "n_drafted": 100}])
    (worse,) = gate.regressions(base, [{**RUN, "accepted": 10, "n_drafted": 110}], 0.01)
    assert (worse.figure, worse.before, worse.now) == ("n_drafted", 100, 110)
    assert not gate.regressions(base, [{**RUN, "accepted": 11, "n_drafted": 110}], 0.01)
    assert not gate.regressions(base, [{**RUN, "accepted": 10, "n_drafted": 90}], 0.01)


def test_a_missing_result_is_a_regression() -> None:
    other = {**RUN, "config": "plain"}
    (missing,) = gate.regressions(gate.gated([RUN]), [other], 0.01)
    assert missing.now is None


def test_what_the_clock_decides_is_no_matter_for_the_gate() -> None:
    assert not gate.gated([{**RUN, "bench": "replay-model"}, {**RUN, "bench": "peers"}])


def test_the_gate_tells_repositories_apart_where_there_are_several() -> None:
    one, two = ({**RUN, "repository": name, "mat": mat} for name, mat in (("a", 2.0), ("b", 3.0)))
    assert not gate.regressions(gate.gated([one, two]), [two, one], 0.01)
    (worse,) = gate.regressions(gate.gated([one, two]), [one, {**two, "mat": 2.0}], 0.01)
    assert "b" in worse.of.split()
    assert not gate.regressions(gate.gated([one]), [{**one, "repository": "clone"}], 0.01)


def test_rows_of_no_repository_are_not_those_of_a_second_one() -> None:
    index = {"bench": "index", "bytes_per_token": 5.0}
    base = gate.gated([{**RUN, "repository": "one"}, index])
    assert not gate.regressions(base, [{**RUN, "repository": "clone"}, index], 0.01)


@pytest.mark.parametrize("value", ["two", math.nan, math.inf])
def test_a_figure_that_is_no_number_is_named(value: object) -> None:
    with pytest.raises(InputError, match="mat"):
        gate.gated([{**RUN, "mat": value}])


def test_the_gate_on_the_command_line(tmp_path: Path) -> None:
    now, baseline = tmp_path / "now", tmp_path / "baseline"
    results.append(now, [RUN])
    args = ["bench", "gate", str(now), "--baseline", str(baseline)]
    assert CliRunner().invoke(main, [*args, "--update"]).exit_code == 0
    assert CliRunner().invoke(main, args).exit_code == 0
    now.unlink()
    results.append(now, [{**RUN, "mat": 1.0}])
    failed = CliRunner().invoke(main, args)
    assert failed.exit_code == 1
    assert "replay codespec cpu n_hunks=3: mat 2 -> 1" in failed.output


def test_a_file_that_cannot_be_written_is_named_before_anything_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "none" / "rows.jsonl"
    done = CliRunner().invoke(main, ["bench", "hop", "--output", str(file)])
    assert done.exit_code == 2
    assert "cannot be written" in done.output


def test_figures_that_cannot_be_kept_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError):
        deliver("hop", [{"ms": 5.0}], True, tmp_path / "gone" / "rows.jsonl", print)
    assert json.loads(capsys.readouterr().out)["ms"] == 5.0


def test_a_gate_without_figures_is_an_error(tmp_path: Path) -> None:
    now, baseline = tmp_path / "now", tmp_path / "baseline"
    results.append(now, [{"bench": "curve", "t1_ms": 1.0}])
    for held, more in (("", ["--update"]), ("", []), (now.read_text(), [])):
        baseline.write_text(held)
        done = CliRunner().invoke(
            main, ["bench", "gate", str(now), "--baseline", str(baseline), *more]
        )
        assert done.exit_code == 1
        assert "no figure in it" in done.output


def test_a_clone_of_any_name_passes_the_gate() -> None:
    base = gate.gated([{**RUN, "repository": "one"}])
    assert not gate.regressions(base, [{**RUN, "repository": "two"}], 0.01)
    assert not gate.regressions([{**RUN, "repository": "one"}], [RUN], 0.01)


def test_rows_of_two_repositories_are_not_runs_of_the_same_thing(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    for name in ("one", "two"):
        deliver("peers", [{"config": "plain", "mat": 1.0}], True, file, print, [tmp_path / name])
    rows = results.read(file)
    assert [row["repository"] for row in rows] == ["one", "two"]
    assert compare.compare(rows, rows)[0].n_a == 1


def test_two_machines_are_told_apart(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    for file, cpu, commit in zip(files, ("one", "one", "two"), ("1", "2", "2"), strict=True):
        row = {**RUN, "machine": {"cpu": cpu, "n_cores": 2, "commit": commit}}
        file.write_text(json.dumps(row) + "\n")
    a, b, c = map(str, files)
    assert CliRunner().invoke(main, ["bench", "compare", a, b]).stderr == ""
    said = CliRunner().invoke(main, ["bench", "compare", a, c, "--json"])
    assert said.stderr == "note: these are not of one machine (cpu: one, two)\n"
    assert all(json.loads(line) for line in said.stdout.splitlines())


def test_figures_that_nobody_reads_are_kept(tmp_path: Path) -> None:
    def show(_: object) -> None:
        raise BrokenPipeError

    file = tmp_path / "rows"
    with pytest.raises(BrokenPipeError):
        deliver("hop", [{"ms": 5.0}], False, file, show)
    assert results.read(file)[0]["ms"] == 5.0


def test_results_of_some_repositories_beside_a_baseline_of_others() -> None:
    one, two = ({**RUN, "repository": name} for name in ("one", "two"))
    (missing,) = gate.regressions(gate.gated([one, two]), [two], 0.01)
    assert (missing.of.split()[-1], missing.now) == ("one", None)
    (worse,) = gate.regressions(gate.gated([one, two]), [{**two, "mat": 1.0}, one], 0.01)
    assert (worse.of.split()[-1], worse.now) == ("two", 1.0)
    for baseline in ([one], gate.gated([one])):
        with pytest.raises(InputError, match=r"several repositories \(one, two\), the baseline of"):
            gate.regressions(baseline, [one, two], 0.01)


def test_a_damaged_curve_is_named(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text('{"bench": "curve", "n": [1, 2], "ratio": [1.0]}\n')
    with pytest.raises(InputError, match="line 1: n and ratio of a curve are not equally long"):
        results.read(file)


def test_a_full_disk_leaves_no_half_of_a_row(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    results.append(file, [RUN])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 10, hard))
    try:
        with pytest.raises(InputError, match=r"r\.jsonl: "):
            results.append(file, [RUN, RUN])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert results.read(file) == [RUN]


def test_names_with_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    compare.print_differences(
        compare.compare([{**RUN, "curve": "a[/b]"}], [{**RUN, "curve": "a[/b]"}])
    )
    assert "a[/b]" in capsys.readouterr().out


def test_the_best_other_is_one_that_answered_as_many_requests(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A peer that died early may have been fast for the few that it answered."""
    row = {
        "workload": "edits", "model": "m[/b]", "backend": "cpu", "n_requests": 5, "tok_per_s": 10.0,
        "ratio_to_plain": 1.0, "ratio_low": 0.9, "ratio_high": 1.1, "mat": 1.0, "accepted": 0,
        "drafted": 0, "same": 1.0,
    }  # fmt: skip
    best = {"ratio_to_best_other": 1.5, "ratio_to_best_other_low": 1.2}
    rows = [
        {**row, "config": "plain"},
        {**row, "config": "codespec", **best, "ratio_to_best_other_high": 1.8},
        {**row, "config": "slow"},
        {**row, "config": "dead", "n_requests": 1, "tok_per_s": 99.0},
    ]
    report.print_rows(rows)
    said = capsys.readouterr().out
    assert "codespec: 1.50 times slow, the fastest other" in said
    assert "m[/b]" in said


@pytest.mark.parametrize(
    "line", ['{"path": "a.py", "said": "x"}', '{"bench": 3}', '{"bench": "x", "machine": "y"}']
)
def test_what_answers_keeps_is_no_result(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.jsonl").write_text(line)
    with pytest.raises(InputError, match="line 1: no result of a benchmark"):
        results.read(tmp_path / "r.jsonl")


def _commit(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "a.py").write_text(text)
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b")
    for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", text)):
        subprocess.run([*git, *command], check=True)
    return folder


@pytest.fixture
def namesakes(tmp_path: Path) -> list[results.Row]:
    """Rows of two repositories of one name."""
    file = tmp_path / "rows"
    for parent, mat in (("a", 2.0), ("b", 4.0)):
        folder = _commit(tmp_path / parent / "proj", parent)
        deliver("replay", [{"config": "codespec", "mat": mat}], True, file, print, [folder])
    return results.read(file)


def test_repositories_of_one_name_are_not_runs_of_one(namesakes: list[results.Row]) -> None:
    names = {d.of: (d.n_a, d.a, d.b) for d in compare.compare(namesakes, namesakes)}
    assert sorted(names.values()) == [(1, 2.0, 2.0), (1, 4.0, 4.0)]
    (one,) = compare.compare(namesakes[:1], namesakes)
    assert (one.a, one.b) == (2.0, 2.0), "each beside its own"
    page = html_report.page(namesakes)
    assert all(f"<td>proj ({row['origin'][0]}) codespec</td>" in page for row in namesakes)
    base = gate.gated(namesakes)
    assert not gate.regressions(base, namesakes[::-1], 0.01)
    (worse,) = gate.regressions(base, [{**namesakes[0], "mat": 1.0}, namesakes[1]], 0.01)
    assert (worse.before, worse.now) == (2.0, 1.0)
    assert {r.now for r in gate.regressions(base, namesakes[1:], 0.01)} == {None}
    with pytest.raises(InputError, match="several repositories"):
        gate.regressions(gate.gated(namesakes[:1]), namesakes, 0.01)


def test_a_clone_is_the_same_repository_whatever_its_path(tmp_path: Path) -> None:
    one = _commit(tmp_path / "one" / "proj", "1")
    clone = tmp_path / "two" / "proj"
    subprocess.run(["git", "clone", "-q", str(one), str(clone)], check=True)
    (clone / "part").mkdir()
    assert origins.origin(one) == origins.origin(clone) != origins.origin(clone / "part")
    plain = tmp_path / "plain"
    plain.mkdir()
    assert origins.origin(plain) != origins.origin(tmp_path)
    assert str(tmp_path) not in origins.origin(plain)


def test_alone_a_repository_has_its_name_and_files_of_two_are_said_to_be(
    tmp_path: Path, namesakes: list[results.Row]
) -> None:
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    old = [{k: v for k, v in row.items() if k != "origin"} for row in namesakes]
    for file, row in ((a, namesakes[0]), (b, namesakes[1])):
        results.append(file, [row])
    done = CliRunner().invoke(main, ["bench", "compare", str(a), str(b), "--json"])
    assert "not of one repository (proj)" in done.stderr
    assert json.loads(done.stdout)["of"] == "replay proj codespec"
    assert compare.compare(old[:1], namesakes[:1])[0].ratio == 1.0, "rows of before say no origin"
