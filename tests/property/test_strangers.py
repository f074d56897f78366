"""Strangers are never named, and nothing else is changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codespec.languages.registry import records
from codespec.suggest import Candidate, place_in
from codespec.suggest.strangers import without_begun_comment, without_strangers
from codespec.syntax.trees import TreeCache

EXTENSIONS = [record.extensions[0] for record in records() if record.extensions]
NAMES = ("Jane Doe", "Acme Works", "jane@doe.org", "Zoë van Loon")
LINES = (
    *(
        "x = f(1, 'a')",
        "# Copyright (c) 2019",
        "# Reads the author's name.",
        " * @param author who",
    ),
    *("self.author = author", "/**", " */", '"""', "@dataclass", "}", "", "author: str", "a @ b.c"),
    *("# written by hand", "// (c) the authors", "mail = 'me@example.com'", "author=who,"),
)
SAYING = (
    *(
        "# Copyright 2019 {}",
        " * @author {}",
        "// Author: {}",
        "Signed-off-by: {}",
        "# (c) 2020 {}",
    ),
    *("__author__ = '{}'", "# SPDX-FileCopyrightText: 2019 {}", ":author: {}", "-- Author: Me, {}"),
)


def candidate(before: str, text: str, after: str, extension: str) -> Candidate:
    return Candidate(place_in(TreeCache(), before, after, f"/a{extension}"), text)


@given(
    st.lists(st.sampled_from(LINES), max_size=4).map("\n".join),
    st.lists(st.sampled_from(LINES), max_size=5).map("\n".join),
    st.sampled_from(EXTENSIONS),
)
def test_a_text_without_people_is_not_changed(above: str, text: str, extension: str) -> None:
    assert without_strangers(candidate(f"{above}\n", text, "\n", extension)) == text


@given(
    st.lists(st.sampled_from(LINES), max_size=4).map("\n".join),
    st.sampled_from(SAYING),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(LINES), max_size=4).map("\n".join),
    st.integers(0, 60),
    st.sampled_from(EXTENSIONS),
)
def test_who_is_unknown_is_not_shown(
    above: str, line: str, name: str, below: str, at: int, extension: str
) -> None:
    said = f"{above}\n{line.format(name)}\n{below}"
    # The user may have written some of it.
    at = min(at, said.index(name))
    here = candidate(said[:at], said[at:], "\n", extension)
    shown = without_strangers(here)
    assert name not in shown
    assert without_strangers(here, lambda asked: asked in (name, "Me")) == said[at:]
    known = candidate(said[:at], said[at:], f"\n{name}\nMe\n", extension)
    assert without_strangers(known) == said[at:]


@given(
    st.lists(st.sampled_from((*LINES, *SAYING)), min_size=1, max_size=6),
    st.sampled_from(NAMES),
    st.sampled_from(EXTENSIONS),
)
def test_lines_that_were_shown_stay(lines: list[str], name: str, extension: str) -> None:
    said = [line.replace("{}", name) for line in lines]
    shown = ""
    for n in range(1, len(said) + 1):
        text = without_begun_comment("\n".join(said[:n]))
        now = without_strangers(candidate("\n", text, "\n", extension))
        assert now.startswith(shown)
        shown = now
