"""`bench all`: steps that exist, results as they come, going on, and the time that is left."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import click
import psutil
import pytest
from click.testing import CliRunner

from codespec.cli.bench import command as bench
from codespec.errors import InputError
from codespec_bench import everything, results
from codespec_bench.everything import LeftOutStep, Step
from tests.e2e.conftest import wait_until_gone

CURVE = Step("curve", ("curve", "--context", "32", "--repeats", "1"), 1, "curve")
SLOW = Step("slow", ("models", "--places", "500"), 1, "models")
BROKEN = Step("broken", ("replay", "/"), 1, "replay")


def test_every_step_is_a_command_that_takes_its_arguments(tmp_path: Path) -> None:
    wanted = everything.steps(tmp_path, ("--draft-model", "none"), "*.py")
    assert len({step.name for step in wanted}) == len(wanted)
    context = click.Context(bench)
    for step in wanted:
        name, *arguments = step.arguments
        command = bench.get_command(context, name)
        assert command is not None
        command.make_context(name, [*arguments, "--output", "x"])


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    file = tmp_path / "results"
    told: list[tuple[str, int]] = []
    first = everything.run([CURVE, BROKEN], file, 5, lambda s, n: told.append((s.name, n)))
    assert told == [("curve", 0), ("broken", 1)]
    assert first[0].rows == results.read(file)
    assert "one token" in everything.headline(first[0].rows)
    assert "not a Git repository" in first[1].why
    again = everything.run([CURVE], file, 5)
    assert (again[0].rows, again[0].seconds) == (first[0].rows, 0.0)
    # Rows of one benchmark with something else measured are another step's.
    other = dataclasses.replace(CURVE, only=("model", "another"))
    assert not other.of(first[0].rows)


def test_when_the_time_is_up_the_rest_is_left_out(tmp_path: Path) -> None:
    (outcome,) = everything.run([CURVE], tmp_path / "results", 0.0)
    assert outcome.why == "the time was up"
    (outcome,) = everything.run([SLOW], tmp_path / "results", 0.02)
    assert outcome.why == "the time was up"
    assert not (tmp_path / "results").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_step_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    script = """if True:
        from codespec_bench import everything
        step = everything.Step("long", ("curve", "--repeats", "1000000"), 1, "curve")
        everything.run([step], __import__("pathlib").Path(__import__("sys").argv[1]), 60)
    """
    command = [sys.executable, "-c", script, str(tmp_path / "results")]
    with subprocess.Popen(command) as parent:
        found: list[psutil.Process] = []
        while not found and parent.poll() is None:
            children = psutil.Process(parent.pid).children()
            found = [p for p in children if "curve" in p.cmdline()]
        parent.kill()
    (step,) = found
    try:
        wait_until_gone(step.pid)
    finally:
        if step.is_running():
            step.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_step_that_is_ended_may_clean_up() -> None:
    script = """if True:
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("cleaned up"))
        print("ready", flush=True)
        time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "ready\n"
        everything._end(child)
        assert child.stderr.read() == "cleaned up\n"


def test_the_table_says_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    everything.print_outcomes(everything.run([CURVE], tmp_path / "r", 0.0), None)
    assert "left out: the time was up" in capsys.readouterr().out


def test_a_model_too_slow_for_the_typist_is_said_in_words() -> None:
    editor = {"bench": "latency", "config": "VS Code", "debounce_ms": 50.0}
    fast = {**editor, "visible_ms_p50": 70.4, "visible_ms_p95": 120.0}
    start = {"bench": "latency", "config": "start", "n": 2}
    assert everything.headline([fast, start]) == "VS Code: in view 70 ms after a key, p95 120"
    assert "before every suggestion" in everything.headline([editor, start])


def test_what_was_measured_on_something_else_is_measured_anew(tmp_path: Path) -> None:
    file = tmp_path / "results"
    (done,) = everything.run([CURVE], file, 5)
    arguments = [*CURVE.arguments, "--model", "another"]
    other = dataclasses.replace(CURVE, arguments=tuple(arguments))
    here, there = (everything.steps(tmp_path / name, (), "*.py")[1] for name in ("a", "b"))
    assert CURVE.of(done.rows)
    assert not other.of(done.rows)
    row = {**done.rows[0], "bench": "replay", "curve": "cpu-500m-q8"}
    assert here.of([{**row, "arguments": list(here.arguments)}])
    assert not there.of([{**row, "arguments": list(here.arguments)}])
    assert not CURVE.of([{**row, "machine": {"cpu": "another"}} for row in done.rows])


def test_interrupted_it_tells_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(step: Step, n: int) -> None:
        if step is SLOW:
            raise KeyboardInterrupt

    monkeypatch.setenv("COLUMNS", "80")
    first, *others = everything.run([CURVE, SLOW, BROKEN], tmp_path / "r", 5, told)
    assert first.rows
    assert [outcome.why for outcome in others] == ["interrupted"] * 2
    everything.print_outcomes([first, *others], None)
    said = capsys.readouterr().out
    assert "one token" in said
    assert "before" not in said


def test_names_with_brackets_are_printed_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = everything.Outcome(BROKEN, [], said="/a[/b]: no such [file]")
    file = tmp_path / "a [" / "b].jsonl"
    file.parent.mkdir()
    everything.print_outcomes([broken], file)
    said = capsys.readouterr().out
    assert "/a[/b]: no such [file]" in said
    assert "bench report" not in said, "there is nothing in it to report"
    file.touch()
    everything.print_outcomes([broken], file)
    assert f"codespec bench report '{file}'" in capsys.readouterr().out


def test_with_json_what_was_left_out_is_said_beside_it_and_all_of_it_is_a_failure(
    tmp_path: Path,
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = CliRunner().invoke(bench, ["all", str(tmp_path), "--minutes", "0", "--json"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "peers: left out: the time was up" in done.stderr
    assert isinstance(done.exception, InputError)
    assert "nothing was measured: the time was up" in done.exception.message
    assert "--minutes" in done.exception.hint


def test_where_every_step_fails_the_error_says_why_and_what_to_try() -> None:
    outcomes = [everything.Outcome(CURVE, [], cause=LeftOutStep.TIME_UP)]
    failed = everything.Outcome(BROKEN, [], cause=LeftOutStep.FAILED, said="no repository")
    outcomes += [failed] * 2
    error = everything.nothing(outcomes)
    assert error.message == "nothing was measured: the time was up; no repository"
    assert "codespec bench replay /" in error.hint
