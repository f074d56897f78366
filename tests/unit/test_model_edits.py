"""The certainty of a model's edits, and whether they fit their document."""

from __future__ import annotations

import math

import pytest

from codespec.edits.base import LineEdit
from codespec.edits.formats.base import EditPrompt, line_edits
from codespec.engine.model_edits import certain
from codespec.suggest.edited import fits

OLD = ("def f(a):", "    b = a", "    return b")
LINES = [*OLD, "", "", "x = f(1)", ""]


def prompt(prefill: str = "") -> EditPrompt:
    return EditPrompt(("",), 0, OLD, 0, ("",), prefill)


def chances(
    new: list[str], pieces: list[bytes], probs: list[float], prefill: str = ""
) -> list[float]:
    edits = line_edits("f.py", 0, OLD, new)
    log_probs = [math.log(p) for p in probs]
    return [edit.chance for edit in certain(edits, prompt(prefill), pieces, log_probs)]


def test_an_edit_is_as_certain_as_the_tokens_that_wrote_its_lines() -> None:
    new = ["def f(a):", "    c = a", "    return b", "    # end"]
    pieces = [b"def f(a):\n", b"    c", b" = a\n", b"    return b\n", b"    # end"]
    probs = [1.0, 0.25, 1.0, 1.0, 0.5, 0.9]
    assert chances(new, pieces, probs) == pytest.approx([0.5, 0.5])
    assert chances(new, pieces, [0.1, 1.0, 1.0, 0.1, 1.0, 0.1]) == pytest.approx([1.0, 1.0])


def test_of_a_deletion_the_line_that_follows_tells() -> None:
    new = ["def f(a):", "    return b"]
    pieces = [b"def f(a):\n", b"    return", b" b", b"\n"]
    assert chances(new, pieces, [1.0, 0.16, 1.0, 0.5, 1.0]) == pytest.approx([0.4])


def test_the_prefilled_part_of_a_line_was_written_by_nobody() -> None:
    new = ["def f(c):", "    b = a", "    return b"]
    pieces = [b"(c)", b":\n    b = a\n", b"    return b"]
    assert chances(new, pieces, [0.3, 0.3, 1.0, 1.0], "def f") == pytest.approx([0.3])


def test_without_probabilities_nothing_is_certain() -> None:
    assert certain(line_edits("f.py", 0, OLD, ["x"]), prompt(), [b"x"], [])[0].chance == 0.0


def test_lines_that_cannot_be_told_apart_are_as_certain_as_all() -> None:
    edit = LineEdit("f.py", 1, ("    b = a",), ("elsewhere",), 1.0, "model")
    pieces = [b"a", b"b"]
    log_probs = [math.log(0.16), 0.0, 0.0]
    assert certain([edit], prompt(), pieces, log_probs)[0].chance == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("line", "n_old", "new", "is_fit"),
    [
        (1, 1, ["    b = a + 1"], True),
        (1, 1, ["    b = (a"], False),
        (1, 1, [], True),
        (0, 1, ["def f(a"], False),
        (3, 0, ["", "def g(a):", "    return a"], True),
        (3, 0, ["def g(a:"], False),
        (3, 0, ["a(1)", "a(1)", "a(1)"], False),
        (3, 0, ["# Copyright 2019 Jane Doe", ""], False),
    ],
)
def test_an_edit_adds_no_error_no_loop_and_nobody(
    line: int, n_old: int, new: list[str], is_fit: bool
) -> None:
    assert fits("f.py", LINES, line, n_old, new) == is_fit


def test_errors_and_people_of_the_document_are_its_own() -> None:
    broken = ["x = (", *LINES]
    assert fits("f.py", broken, 2, 1, ["    b = a + 1"])
    assert fits("f.py", broken, 0, 1, ["x = ()"])
    named = ["# Copyright 2019 Jane Doe", *LINES]
    assert fits("f.py", named, 0, 1, ["# Copyright 2020 Jane Doe"])
    assert fits("f.py", LINES, 3, 0, ["# Copyright 2019 Jane Doe"], knows=lambda name: True)
    assert fits("notes.txt", ["(", "a"], 1, 1, ["b ("])
