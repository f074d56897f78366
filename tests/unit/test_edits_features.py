"""The ranking's view of candidates: numbers that tell likely places from others."""

from __future__ import annotations

import math
import re

import hypothesis.strategies as st
from hypothesis import given, settings

from codespec.edits.line_tokens import shape
from codespec.edits.searched_text import SearchedTexts
from tests.edit_sessions import HERE, THERE, EditingSession

CALLS = "".join(f"x{i} = load(a{i})\n\n" for i in range(12))


def test_features_are_finite_numbers_with_the_same_names() -> None:
    session = EditingSession(
        {"/w/c.py": "from m import load\n\nz = load(9)\n"},
        a="from m import load\n\ny = load(1)\nself.load(load(2))\n# load\n",
        b="def load(a):\n    load(b)\n\n    pass\n",
    )
    session.edit("load(1)", "read(1)")
    session.edit("    load(b)\n", "    load(b)\n    log(b)\n", THERE)
    rows = list(session.features().values())
    assert len(rows) > 3
    assert len({tuple(row) for row in rows}) == 1
    assert all(math.isfinite(value) for row in rows for value in row.values())


TEXTS = st.lists(st.text('ab_ 1.,()"#\t\n', max_size=60), min_size=2, max_size=5)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_whatever_is_typed_has_features(texts: list[str]) -> None:
    session = EditingSession(a=texts[0], b=texts[-1])
    for text in texts[1:]:
        session.change(HERE, text, 0)
        for row in session.features().values():
            assert all(math.isfinite(value) for value in row.values())
        assert all(0 <= edit.chance <= 1 for edit in session.proposed())


def test_a_blank_that_becomes_a_word_has_features() -> None:
    session = EditingSession(a="use(one  two)\nput(one  two)\n")
    session.edit("one  two", "one or two")
    assert session.features()


def test_context_is_counted() -> None:
    session = EditingSession(a="a.load(x, 1)\nb = 1\na.load(x, 1)\nc = a.load(y)\n")
    session.edit("load", "read")
    rows = session.features()
    like, other = rows[HERE, 2], rows[HERE, 3]
    assert like["whole"]
    assert not other["whole"]
    assert like["sides"] > other["sides"]
    assert like["likeness"] == 1.0 > other["likeness"]


def test_lines_around_are_compared() -> None:
    text = "begin(1)\nload(a)\nend()\n\nbegin(2)\nload(b)\nend()\n\nother\nload(c)\nthing\n"
    session = EditingSession(a=text)
    session.edit("load", "read")
    rows = session.features()
    alike, unlike = rows[HERE, 5], rows[HERE, 9]
    assert alike["below_equal"]
    assert not alike["above_equal"]
    assert 0 < alike["above_likeness"] < 1
    assert unlike["above_likeness"] == unlike["lines_below_likeness"] == 0


def test_rare_words_that_are_shared_tell_more() -> None:
    text = "rare.load(self)\n" + "self.load()\n" * 4 + "rare.load()\n"
    session = EditingSession(a=text)
    session.edit("load", "read")
    rows = session.features()
    assert rows[HERE, 5]["rarest_shared"] < rows[HERE, 1]["rarest_shared"]


def test_sessions_that_go_down_are_told_from_those_that_go_up() -> None:
    down, up = EditingSession(a=CALLS), EditingSession(a=CALLS)
    for i in (3, 5, 7):
        down.edit(f"load(a{i})", f"read(a{i})")
        up.edit(f"load(a{10 - i})", f"read(a{10 - i})")
    above = down.features()[HERE, 2]
    assert above["share_down"] > up.features()[HERE, 2]["share_down"]
    assert above["is_above"]
    assert above["is_passed"]


def test_what_was_dismissed_is_counted() -> None:
    session = EditingSession(a=CALLS)
    session.edit("load(a3)", "read(a3)")
    before = session.features()[HERE, 8]
    first = next(edit for edit in session.proposed() if edit.line != 8)
    session.dismissed.add((first.path, first.old, first.new))
    after = session.features()[HERE, 8]
    assert before["n_pattern_dismissed"] == before["n_dismissed"] == 0
    assert after["n_pattern_dismissed"] == after["n_dismissed"] > 0


def test_a_renamed_definition_is_seen() -> None:
    session = EditingSession(a="def load(a):\n    pass\n\nload(1)\n")
    session.edit("def load", "def read")
    row = session.features()[HERE, 3]
    assert row["made_on_definition"]
    assert row["new_is_defined"]
    assert not row["old_is_defined"]


LINES = st.lists(st.sampled_from(["x = load(a)", "y = load(b)", "    z = put(c)", "", "end"]))


@given(st.lists(LINES, min_size=2, max_size=5))
def test_what_is_known_of_lines_follows_every_version(versions: list[list[str]]) -> None:
    known = SearchedTexts(4)
    for lines in versions:
        text = known.get(HERE, "\n".join(lines), True)
        fresh = SearchedTexts(4).get(HERE, "\n".join(lines), True)
        for body in ("x = load(a)", "z = put(c)"):
            assert sorted(text.of_shape(shape(body))) == sorted(fresh.of_shape(shape(body)))
            assert sorted(text.alike(body)) == sorted(fresh.alike(body))
            assert text.find(body) == fresh.find(body)


def test_what_is_known_of_lines_holds_after_many_versions() -> None:
    known = SearchedTexts(4)
    lines = ["x = load(a)", "y = load(b)", "    z.put(c)", "end"]
    for i in range(1_500):  # more than are kept of lines that are gone
        lines[3] = f"end = load(a{i})"
        text = known.get(HERE, "\n".join(lines), True)
        assert sorted(text.of_shape(shape("x = load(a)"))) == [0, 1, 3]


def test_names_that_a_text_defines_or_imports() -> None:
    lines = [
        "import { one, two } from './a';",
        "import {",
        "  three,",
        "  four,",
        "} from './b';",
        "export async function five(a: string): Promise<void> {",
        "  six(one, [",
        "    seven,",
        "  ]);",
        "}",
        "class C {",
        "  async eight(a = nine()) {",
        "    const ten = require('./c');",
        "    import { eleven } from './d';",
    ]
    text = SearchedTexts(1).get("/w/a.ts", "\n".join(lines), True)
    numbers = r"one|two|three|four|five|six|seven|eight|nine|eleven|ten"
    names = set(re.findall(numbers, " ".join(lines)))
    assert {n for n in names if text.brings_in(n)} == {"one", "two", "three", "four", "eleven"}
    assert not text.brings_in("eleven", at_top=True)
    assert {n for n in names if text.defines(n)} == {"five", "eight", "ten"}
