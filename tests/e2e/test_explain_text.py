"""`codespec explain --text`: what an editor would insert if a model said a text."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from codespec.cli import main
from codespec.reasons import Trimming
from codespec.usage.statistics import Stats
from codespec.usage.suppression import PlaceKind
from tests.e2e.command_line import codespec, error


def run(place: str, *args: str, given: str | None = None) -> str:
    result = CliRunner().invoke(main, ["explain", place, *args], given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def asked(place: str, text: str, *args: str) -> dict[str, str]:
    said = run(place, "--text", text, "--json", *args)
    assert said.count("\n") == 1
    return json.loads(said)


@pytest.fixture
def place(tmp_path: Path):
    def at(document: str, name: str = "a.py") -> str:
        prefix, suffix = document.split("<CURSOR>")
        (tmp_path / name).write_text(prefix + suffix)
        line = prefix.count("\n") + 1
        return f"{tmp_path / name}:{line}:{len(prefix.rpartition(chr(10))[2]) + 1}"

    return at


def test_a_text_is_ended_trimmed_and_made_to_fit(place):
    here = place("def f(a):\n    return g(<CURSOR>)\n\nx = 1\n")
    found = asked(here, "a, 1) + 2\n\nx = 1\n")
    assert found["text"] == "a, 1"
    assert (found["replaces"], found["unasked"], found["shape"]) == ("", "", "inline")
    assert [Trimming(key).text for key in found["by_rule"]] == found["trimmed"] != []
    assert f"({found['by_rule'][0]})" in run(here, "--text", "a, 1) + 2\n")


def test_rules_end_a_text_however_much_follows(place):
    found = asked(place("<CURSOR>\n", "a.js"), "const a = 1;\nconst b = 2;\n" * 50)
    assert found["text"] == "const a = 1;"


def test_it_was_cut_off_or_ended_by_itself(place):
    here = place("x = [\n    <CURSOR>\n]\n")
    assert asked(here, "1,\n    2,\n    long")["text"] == "1,\n    2,\n    long"
    assert asked(here, "1,\n    2,\n    long", "--ended", "stop")["text"].endswith("long")
    found = asked(here, "1,\n    2,\n    long", "--ended", "length")
    assert (found["text"], found["by_rule"]) == ("1,\n    2,", ["unfinished_line"])


def test_nothing_is_made_unasked_before_text_but_when_asked(place):
    here = place("x = foo(<CURSOR>) + bar\n")
    found = asked(here, "a")
    assert (found["text"], found["unasked"]) == (
        "",
        "more than closing punctuation stands after the cursor",
    )
    assert found["unasked"] in run(here, "--text", "a")
    invoked = asked(here, "a", "--invoked")
    assert (invoked["text"], invoked["unasked"]) == ("a", found["unasked"])


def test_a_habit_counts_for_what_is_unasked(place):
    here = place("x = <CURSOR>\n")
    stats = Stats()
    stats.habit("python", PlaceKind.WITHIN_LINE, 50, 0)
    stats.flush()
    assert "0 of 50 accepted" in asked(here, "1")["unasked"]
    assert asked(here, "1", "--invoked")["text"] == "1"


def test_nothing_is_made_in_an_excluded_file(place, tmp_path):
    here = place("x = <CURSOR>\n")
    (tmp_path / ".codespecignore").write_text("a.py\n")
    found = asked(here, "1", "--invoked")
    assert found["text"] == ""
    assert ".codespecignore" in found["unasked"]


def test_a_text_of_standard_input_and_none_at_all(place):
    here = place("x = <CURSOR>\n")
    assert json.loads(run(here, "--text", "-", "--json", given="'é😀'\r\n"))["text"] == "'é😀'"
    assert asked(here, "")["text"] == ""
    assert "none: nothing was left" in run(here, "--text", "")


def test_no_model_is_loaded_and_bytes_that_are_no_text_do_no_harm(place):
    here = place("x = <CURSOR>\n")
    stdout, _, _ = codespec(
        "explain", here, "--text", "1", "--json", CODESPEC_MODEL_TARGET="/nothing.gguf"
    )
    assert json.loads(stdout.splitlines()[-1])["text"] == "1"
    if sys.platform == "linux":
        stdout, _, _ = codespec("explain", here, "--text", '"\udcff"', "--json")
        assert json.loads(stdout)["text"] == '"\ufffd"'


def test_options_that_need_a_text_and_a_text_too_long(place):
    here = place("x = <CURSOR>\n")
    assert "--text" in error("explain", here, "--invoked")
    assert "20000 at most" in error("explain", here, "--text", "x" * 20_001)
