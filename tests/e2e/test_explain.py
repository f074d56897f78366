"""`codespec explain`: the same suggestion, and where all of it came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.cli import main
from codespec.config import IndexSettings
from codespec.engine.explanation import best_place
from codespec.index.build import build_index
from codespec.index.word_encoder import WordEncoder
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.next_edit import BARS
from codespec.reasons import Trimming
from codespec.usage.statistics import Stats
from codespec.usage.suppression import PlaceKind

LIBRARY = """\
def connect_to_server(address, port, timeout_seconds):
    connection = open_connection(address, port, timeout_seconds)
    return connection
"""
MAIN = LIBRARY.replace("connect_to_server", "connect_again").rsplit("    return", 1)[0]


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "library.py").write_text(LIBRARY)
    (root / "main.py").write_text(MAIN + "    ret")
    encoder = WordEncoder(LlamaTokenizer(load_model(bundled(BUNDLED_TARGET), vocab_only=True)))
    build_index(root, encoder, IndexSettings())
    return root


def tokens_of(text: str) -> list[int]:
    tokenizer = LlamaTokenizer(load_model(bundled(BUNDLED_TARGET), vocab_only=True))
    return tokenizer.encode(text).tolist()


def run(*args: str) -> str:
    result = CliRunner().invoke(main, args, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_explain(project, monkeypatch):
    monkeypatch.setenv("CODESPEC_CONTEXT_SYMBOLS", "on")
    place = f"{project / 'main.py'}:3:8"
    found = json.loads(run("explain", place, "--json"))
    assert found["text"] == json.loads(run("complete", place, "--json"))["text"]
    assert found["shape"] == "statement"
    assert found["prompt"]["fim"]
    assert found["prompt"]["first_line"] == 1
    assert found["prompt"]["n_before"] > 20
    assert found["generated"].startswith(found["text"][:1])
    stages = {"context", "syntax", "drafting", "target", "finishing", "other", "all"}
    assert set(found["times_ms"]) == stages
    assert "".join(p["said"] for p in found["passes"]).endswith(found["generated"])
    for each in (span for p in found["passes"] for span in p["spans"]):
        assert 0 <= each["n_accepted"] <= each["n_drafted"]
        if each["line"] and each["text"].strip():
            lines = Path(each["path"]).read_text().split("\n")[each["line"] - 1 :]
            assert each["text"].strip("\n").split("\n")[0] in lines[0]
    shown = run("explain", place)
    assert (found["shape_why"], found["shape_why_key"]) == (
        "the cursor is within a statement",
        "in_statement",
    )
    assert [Trimming(key).text for key in found["trimmed_keys"]] == found["trimmed"]
    assert found["shape_why"] in shown
    assert "passes of the model" in shown


@pytest.mark.parametrize("n_lines", [500, 40_000])
def test_lines_of_the_prompt_count_from_the_begin_of_the_file(tmp_path, n_lines):
    """Also of a file of which the end alone is kept."""
    file = tmp_path / "long.py"
    file.write_text("".join(f"x_{i:06} = f({i:06})\n" for i in range(n_lines)) + "x_")
    prompt = json.loads(run("explain", f"{file}:{n_lines + 1}:3", "--json"))["prompt"]
    n_a_line = len(tokens_of("x_000001 = f(000001)\n"))
    n_shown = n_lines + 1 - prompt["first_line"]
    assert n_shown == pytest.approx(prompt["n_before"] / n_a_line, rel=0.1)


def test_what_speaks_against_a_suggestion_that_nobody_asked_for(project):
    def here(column: int) -> dict[str, str]:
        place = f"{project / 'main.py'}:3:{column}"
        return json.loads(run("explain", place, "--json"))["unasked"]

    assert here(8) == {
        "kind": "within a line",
        "kind_key": "within_line",
        "habit": "",
        "why_not": "",
        "rule": "",
        "likely": "",
        "n_likely": 0,
    }
    assert "suggestions within a line: none shown yet" in run("explain", f"{project}/main.py:3:8")
    assert here(7)["why_not"] == "a word goes on right after the cursor"
    assert here(7)["rule"] == "in_word"
    stats = Stats()
    stats.habit("python", PlaceKind.WITHIN_LINE, 50, 0)
    stats.flush()
    assert here(8)["habit"] == "0 of 50 accepted; one in 8 is made"
    assert "passed over: 0 of 50 accepted" in here(8)["why_not"]
    stats.habit("python", PlaceKind.WITHIN_LINE, 10, 9)
    stats.flush()
    assert here(8)["why_not"] == ""
    assert "9 of 60 accepted" in run("explain", f"{project / 'main.py'}:3:8")


def test_next_edits_of_the_file_are_explained(project, monkeypatch):
    place = f"{project / 'main.py'}:3:8"
    found = json.loads(run("explain", place, "--json"))["next_edits"]
    assert found == {"why_not": "", "bar": BARS["medium"], "where": "workspace"}
    assert "after changes, in the workspace, where at least" in run("explain", place)
    (project / ".codespec.toml").write_text('[edits]\nwhere = "file"\neagerness = "low"\n')
    found = json.loads(run("explain", place, "--json"))["next_edits"]
    assert (found["bar"], found["where"]) == (BARS["low"], "file")
    monkeypatch.setenv("CODESPEC_EDITS_ENABLED", "false")
    assert "none: edits.enabled is off" in run("explain", place)


def test_an_excluded_file_is_explained_by_its_rule(project):
    (project / ".codespecignore").write_text("main.py\n")
    found = json.loads(run("explain", f"{project / 'main.py'}:3:8", "--json"))
    assert found["text"] == ""
    assert ".codespecignore" in found["reason"]
    assert found["prompt"] is None
    assert ".codespecignore" in run("explain", f"{project / 'main.py'}:3:8")


TEXT = st.text(alphabet="ab\n", max_size=12)


@given(TEXT, TEXT, st.text(alphabet="ab\n", min_size=1, max_size=3))
def test_the_best_place_is_that_after_most_of_the_same_text(document, left, text):
    n, line = best_place(document, left, text)
    possible = [k for k in range(len(left) + 1) if left[len(left) - k :] + text in document]
    assert n == max(possible, default=-1)
    if n >= 0:
        shown = "\n".join(document.split("\n")[line - 1 :])
        assert text.lstrip("\n") in shown


def test_eagerness_is_explained_line_by_line(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is the model's own; what an editor would show of it unasked is told beside."""
    place = f"{project / 'main.py'}:3:8"

    def said(level: str) -> dict[str, Any]:
        monkeypatch.setenv("CODESPEC_COMPLETION_EAGERNESS", level)
        done = CliRunner().invoke(main, ["explain", place, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.output)

    high, low = said("high"), said("low")
    assert (low["text"], high["chances"]) == (high["text"], [])
    assert len(low["chances"]) == low["text"].count("\n") + 1
    assert "low shows what reaches" in low["unasked"]["likely"]
    is_held = low["unasked"]["n_likely"] == 0
    assert is_held == ("completion.eagerness" in low["unasked"]["why_not"])
    assert high["unasked"]["likely"] == ""
