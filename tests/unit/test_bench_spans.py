"""Places of the benchmarks around strings, comments, brackets, and by indentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from codespec_bench.judge import breaks
from codespec_bench.places import CLOSERS, LAYOUT, LITERALS, PEOPLE, TEXTS, CutPlace, places_in
from codespec_bench.spans_of_literals import open_brackets

PYTHON = """\
def show(value):  # the first of two
    print("said at last", value)  # what is said
    # more than that
    total = add(value, 3)  # three
    return call(outer(value, total))
"""
KOTLIN = """\
// the first of two
fun main() {
    // what is said
    val name = "said at last" // of it
    add(name,
        listOf(outer(name, 3)))
    run {
        other()
    }
}
"""
YAML = """\
# the first
# the second
jobs:
  - name: "one of two"
    run: make all
  - name: last
on: push
"""


def truths(folder: Path, name: str, text: str, kind: str) -> set[str]:
    (folder / name).write_text(text)
    places = places_in(folder, 20, (kind,), per_file=20, texts=TEXTS)
    assert all(place.prefix + place.truth + place.suffix == text for place in places)
    return {place.truth for place in places}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("in string", {"at last"}),
        ("at string", {'"said at last", value)  # what is said'}),
        ("in comment", {"of two", "is said", "than that"}),
        (
            "at comment",
            {"# the first of two", "# what is said", "# more than that", "# three"},
        ),
        ("before comment", {"show(value):", 'at last", value)', "value, 3)"}),
        ("before closers", {"value, total"}),
        ("closing", {"))"}),
    ],
)
def test_by_a_grammar(tmp_path: Path, kind: str, expected: set[str]) -> None:
    assert truths(tmp_path, "a.py", PYTHON, kind) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("in string", {"at last"}),
        ("at string", {'"said at last" // of it'}),
        ("in comment", {"of two", "is said", "it"}),
        ("at comment", {"// the first of two", "// what is said", "// of it"}),
        ("before comment", {'said at last"'}),
        ("before closers", {"name, 3"}),
        ("closing", {")))", "}"}),
    ],
)
def test_by_the_lines_of_a_file_alone(tmp_path: Path, kind: str, expected: set[str]) -> None:
    assert truths(tmp_path, "a.kt", KOTLIN, kind) == expected


def test_by_indentation(tmp_path: Path) -> None:
    item = '- name: "one of two"\n    run: make all'
    assert truths(tmp_path, "a.yml", YAML, "item") == {item}
    assert truths(tmp_path, "a.yml", YAML, "indented") == {f"{item}\n  - name: last"}


def test_nothing_is_cut_out_that_made_a_comment_of_what_follows(tmp_path: Path) -> None:
    text = "a = one(two)\n# of three\n# of four\nadd(1) # five)\n"
    assert truths(tmp_path, "a.R", text, "words") == {"one(two", "thre", "fou"}


def test_lines_that_name_people_are_apart(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('name = "a b"\nauthors = ["A B <a@b.example>"]\n')
    kinds = ("in string", "whole")
    found = {(p.kind, p.truth) for p in places_in(tmp_path, 9, kinds, texts=TEXTS)}
    assert ("in string", "b") in found
    assert {kind for kind, truth in found if "@" in truth} == {PEOPLE}


def test_prose_has_no_strings_and_code_with_a_grammar_no_layout(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text('# One\n# Two\n\nSome "words of prose" here (as it is).\n')
    (tmp_path / "a.py").write_text(PYTHON)
    found = places_in(tmp_path, 9, (*LITERALS, *CLOSERS, *LAYOUT), per_file=9, texts=TEXTS)
    assert not {p.kind for p in found if p.language == ".md"} & set(LITERALS)
    assert not {p.kind for p in found if p.language == "python"} & set(LAYOUT)


@pytest.mark.parametrize(
    ("text", "expected"), [("f(a)[", {"[]": 1}), (":)", {"()": -1}), ("{}", {}), ("", {})]
)
def test_open_brackets(text: str, expected: dict[str, int]) -> None:
    assert open_brackets(text) == expected


@pytest.mark.parametrize(
    ("name", "prefix", "text", "is_broken"),
    [
        (".kt", "f(", "1)", False),
        (".kt", "f(", "1))", True),
        (".json", '{"a": ', "1}", False),
        (".json", '{"a": ', "a}", True),
    ],
)
def test_a_file_without_a_grammar_breaks_by_its_brackets(
    name: str, prefix: str, text: str, is_broken: bool
) -> None:
    truth = "2)" if name == ".kt" else "2}"
    place = CutPlace(Path(f"a{name}"), Path("."), name, "words", prefix, truth, "\n")
    assert breaks(text, place) is is_broken
