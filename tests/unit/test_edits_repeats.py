"""Next edits by lookup: what is changed here is proposed there."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from codespec.edits import candidate_edits
from codespec.edits.dismissals import DismissedPlace, neighbours
from tests.edit_sessions import HERE, THERE, EditingSession


def test_a_rename_is_proposed_in_the_document_others_and_the_workspace() -> None:
    session = EditingSession(
        {"/w/c.py": "q = load(4)\n"},
        a="x = load(1)\ny = load(2)\nreload(3)\n",
        b="    z = load(3)\n",
    )
    session.edit("load", "read")
    said = session.said()
    assert (HERE, 1, ("y = read(2)",)) in said
    assert (THERE, 0, ("    z = read(3)",)) in said
    assert ("/w/c.py", 0, ("q = read(4)",)) in said
    assert len(said) == 3


def test_nothing_is_proposed_where_nothing_was_edited() -> None:
    session = EditingSession(a="x = load(1)\n" * 3)
    assert session.proposed() == []


@pytest.mark.parametrize(
    ("text", "old", "new", "proposed"),
    [
        ("fit(a, b)\nx = fit(a, b)\n", "fit(a, b)", "fit(a, b, key=1)", "x = fit(a, b, key=1)"),
        ("run(ctx, a)\nif run(ctx, b):\n", "ctx, ", "", "if run(b):"),
        ('g("one")\nh("one", 2)\n', '"one"', '"two"', 'h("two", 2)'),
        ("t.wait(1000)\nu.wait(1000)\n", "wait(1000)", "wait_ms(1000)", "u.wait_ms(1000)"),
        ("from a.old import x\nfrom a.old import y\n", "old", "new", "from a.new import y"),
    ],
)
def test_arguments_literals_calls_and_modules(text: str, old: str, new: str, proposed: str) -> None:
    session = EditingSession(a=text)
    session.edit(old, new)
    assert (HERE, 1, (proposed,)) in session.said()


@pytest.mark.parametrize(
    ("text", "old", "new", "proposed"),
    [
        ('"a": "^18.2.0",\n"b": "^18.2.0"\n', "8.2", "8.3", '"b": "^18.3.0"'),
        ('V = "2.4.1"\nsend("2.4.1, new")\n', "4.1", "5", 'send("2.5, new")'),
        ("port = 8080\nlisten(8080)\n", "8080", "9090", "listen(9090)"),
    ],
)
def test_versions_and_long_numbers_change_whatever_stands_around_them(
    text: str, old: str, new: str, proposed: str
) -> None:
    session = EditingSession(a=text)
    session.edit(old, new)
    assert (HERE, 1, (proposed,)) in session.said()


def test_the_same_line_is_added_after_the_same_line_with_its_indentation() -> None:
    text = "def f():\n    begin()\n    work()\n\n\ndef g():\n    if x:\n        begin()\n"
    session = EditingSession(a=text)
    session.edit("    begin()\n", "    begin()\n    log()\n")
    assert (HERE, 9, ("        log()",)) in session.said()


def test_blocks_change_with_their_indentation() -> None:
    text = (
        "if a:\n    open(x)\n    close(x)\n\nif b:\n    if c:\n        open(x)\n        close(x)\n"
    )
    session = EditingSession(a=text)
    session.edit("    open(x)\n    close(x)\n", "    with open(x):\n        pass\n    done()\n")
    wanted = ("        with open(x):", "            pass", "        done()")
    assert (HERE, 7, wanted) in session.said()


def test_names_are_carried_over_one_to_one() -> None:
    session = EditingSession(a="put(width, 1, 20)\nput(height, 1, 20)\n")
    session.edit("put(width, 1, 20)", "put(width, 1, 2 * width)")
    assert (HERE, 1, ("put(height, 1, 2 * height)",)) in session.said()


def test_lines_of_one_shape_keep_what_is_their_own() -> None:
    session = EditingSession(a="use(open, 1)\nuse(load, 1)\n")
    session.edit("use(open, 1)", "start(1)")
    assert session.said() == []


def test_lines_end_as_they_did() -> None:
    session = EditingSession(a="load(1)\nload(2)  \n")
    session.edit("load", "read")
    assert (HERE, 1, ("read(2)  ",)) in session.said()


def test_a_change_is_not_proposed_for_itself_or_where_it_was_made() -> None:
    session = EditingSession(a="f(a)\nf(b)\n")
    session.edit("f(a)", "f(f(a))")
    assert all(line == 1 for _, line, _ in session.said())
    session.edit("f(b)", "f(f(b))")
    assert session.said() == []


def test_an_undone_change_is_not_repeated() -> None:
    session = EditingSession(a="x = load(1)\ny = load(2)\n")
    session.edit("load", "read")
    assert session.said()
    session.edit("read", "load")
    assert session.said() == []


def test_lines_that_say_the_same_elsewhere_are_not_dismissed_together() -> None:
    body = "".join(f"def f{i}(a):\n    y = load(a)\n    put{i}(y)\n\n\n" for i in range(4))
    session = EditingSession(a=body)
    session.edit("load", "read")
    assert {line for _, line, _ in session.said()} == {6, 11, 16}
    lines = session.texts.opened[HERE].split("\n")
    around = neighbours(lines, 6, 7)
    assert around == ("def f1(a):", "put1(y)")
    place = DismissedPlace(HERE, ("    y = load(a)",), ("    y = read(a)",), *around)
    session.dismissed.add(place)
    assert {line for _, line, _ in session.said()} == {11, 16}
    assert {row["n_pattern_dismissed"] > 0 for row in session.features().values()} == {True}
    # It stays that place while a line beside it is edited, and other lines come above it.
    session.edit("put1(y)", "put1(y, a)")
    session.edit("def f0", "import x\n\n\ndef f0")
    assert 9 not in {line for _, line, _ in session.said()}
    assert {14, 19} <= {line for _, line, _ in session.said()}
    # Without places of their own, all are dismissed.
    session.dismissed.add(place[:3])
    assert {14, 19}.isdisjoint({line for _, line, _ in session.said()})


def test_what_was_dismissed_is_not_proposed_again() -> None:
    session = EditingSession(a="x = load(1)\ny = load(2)\nz = load(3)\n")
    session.edit("load", "read")
    first = session.proposed()[0]
    session.dismissed.add((first.path, first.old, first.new))
    assert [edit.line for edit in session.proposed()] == [2]


def test_more_context_and_more_changes_are_likelier() -> None:
    lines = ["a.load(x)", "1", "b.load(x)", "2", "c.load(x)", "3", "a.load(x)", "load = 1", ""]
    session = EditingSession(a="\n".join(lines))
    session.edit("load", "read")
    once = {edit.line: edit.chance for edit in session.proposed()}
    assert once[6] > once[7]
    session.edit("b.load", "b.read")
    session.edit("c.load", "c.read")
    often = {edit.line: edit.chance for edit in session.proposed()}
    assert often[6] > once[6]
    assert all(0 <= chance <= 1 for chance in once.values())


def test_the_likeliest_comes_first_and_none_meet() -> None:
    session = EditingSession(a="x = load(load(1))\n" + "y = load(load(2))\n" * 3)
    session.edit("x = load(load(1))", "x = read(load(1))")
    edits = session.proposed()
    assert [e.chance for e in edits] == sorted((e.chance for e in edits), reverse=True)
    assert len({edit.line for edit in edits}) == len(edits)


def test_hostile_texts_are_no_places() -> None:
    long_line = "load(1) " * 250_000
    session = EditingSession(a="x = load(1)\ny = load(2)\n", b=long_line, c="load(7)\n" * 100_000)
    session.edit("load", "read")
    proposed = session.proposed()
    assert (HERE, 1, ("y = read(2)",)) in [(e.path, e.line, e.new) for e in proposed]
    assert not any(edit.path == THERE for edit in proposed)
    assert len(proposed) <= 70


def test_an_ask_looks_at_so_many_places_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_edits, "N_ALL_FOUND", 3)
    monkeypatch.setattr(candidate_edits, "N_FOUND", 2)
    monkeypatch.setattr(candidate_edits, "N_FOUND_ALIKE", 2)
    session = EditingSession(a="load(1)\nopen(1)\n" + "load(2)\nopen(2)\n" * 9)
    session.edit("open", "start")
    assert len(session.said()) == 2
    session.edit("load", "read")
    new = [new for _, _, new in session.said()]
    assert ("read(2)",) in new
    assert len(new) <= 4


BODIES = ("load(a)", "load(b)", "    x = load(a, 1)", "if load(a):", "", "read(a)", "y = a.b")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(BODIES), min_size=2, max_size=8),
    st.integers(0, 7),
    st.sampled_from(BODIES),
)
def test_an_applied_edit_is_not_proposed_again(lines: list[str], at: int, new: str) -> None:
    session = EditingSession(a="\n".join(lines))
    at %= len(lines)
    session.change(HERE, "\n".join([*lines[:at], new, *lines[at + 1 :]]), at)
    for _ in range(len(lines) * 3):
        edits = session.proposed()
        for change in session.history.changes():
            end = change.line + len(change.new)
            for edit in edits:
                edit_end = edit.line + len(edit.old)
                assert edit.line >= end or edit_end <= change.line
        if not edits:
            return
        session.apply(edits[0])
        assert edits[0] not in session.proposed()
    raise AssertionError("the edits never end")


def test_an_import_goes_to_its_place_in_another_file_that_uses_the_name() -> None:
    session = EditingSession(
        {"/w/c.py": "import abc\n\nabc.x(1)\n"},
        a="import sys\n\nsys.exit(fetch(1))\n",
        b="import ast\nimport re\nimport sys\n\nre.x(json.loads(1))\n",
    )
    session.edit("import sys\n", "import json\nimport sys\n")
    assert (THERE, 1, ("import json",)) in session.said()
    assert not any(path == "/w/c.py" for path, _, _ in session.said())


@pytest.mark.parametrize(
    ("before", "after", "other", "wanted"),
    [
        (
            "from m import aa",
            "from m import aa, cc",
            "from m import bb, dd",
            "from m import bb, cc, dd",
        ),
        (
            "import { aa } from './m';",
            "import { aa, cc } from './m';",
            "import { dd } from './m';",
            "import { cc, dd } from './m';",
        ),
        ("use m::n::{aa};", "use m::n::{aa, cc};", "use m::n::{bb};", "use m::n::{bb, cc};"),
    ],
)
def test_a_name_joins_the_import_from_the_same_module(
    before: str, after: str, other: str, wanted: str
) -> None:
    session = EditingSession(a=f"{before}\n\naa(1)\n", b=f"{other}\n\ncc(1)\n")
    session.edit(before, after)
    assert (THERE, 0, (wanted,)) in session.said()


def test_words_are_asked_for_once() -> None:
    session = EditingSession(a="load(1)\nx.load(2)\n" * 5)
    session.edit("load(1)", "read(1)")
    session.edit("x.load(2)", "x.read(2)")
    session.proposed()
    assert len(session.texts.asked) == len({tuple(words) for words in session.texts.asked})
