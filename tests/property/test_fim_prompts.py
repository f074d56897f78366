"""Whatever a document holds: a prompt that is written for a family of models is read as the parts
that it was written from."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codespec.context.families import FAMILIES, Family
from codespec.context.templates import parted

MARKERS = sorted({text.strip() for f in FAMILIES for s in f.spelled for text in s if text.strip()})
WORDS = st.text(st.characters(exclude_characters="\"'`\n", exclude_categories=["Cs"]), max_size=9)
NAMED = st.builds("{0}{1}{0}".format, st.sampled_from("\"'`"), st.sampled_from(MARKERS))
SAID = st.sampled_from(MARKERS).map(lambda marker: f" ({marker})")
"""A marker outside quotes: a part that ends in a line end is told apart from that, too."""
CODE = st.lists(st.one_of(WORDS, NAMED, st.just("\n"), st.just("    ")), max_size=12).map("".join)
PROSE = st.lists(st.one_of(WORDS, NAMED, SAID), max_size=6).map("".join)
LINES = st.lists(PROSE, max_size=6).map(lambda lines: "".join(f" {line}\n" for line in lines))
OTHER = CODE.map(lambda text: f"x = 1\n{text}\ny = 2")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.prefix + family.order)
@given(prefix=CODE, suffix=CODE)
@example(prefix="M = '<|fim_suffix|>' + ", suffix="\n")
def test_what_is_written_is_read(family: Family, prefix: str, suffix: str) -> None:
    assert parted(family.prompt(prefix, suffix)) == (prefix, suffix, ())


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.prefix + family.order)
@given(prefix=LINES, suffix=LINES)
def test_a_line_begins_with_what_is_written(family: Family, prefix: str, suffix: str) -> None:
    assert parted(family.prompt(prefix, suffix)) == (prefix, suffix, ())


@pytest.mark.parametrize(
    "family", [f for f in FAMILIES if f.files], ids=lambda family: family.prefix + family.order
)
@given(prefix=CODE, suffix=CODE, texts=st.lists(OTHER, min_size=1, max_size=3))
def test_other_files_are_read(family: Family, prefix: str, suffix: str, texts: list[str]) -> None:
    others = [(f"b/{i}.py", text) for i, text in enumerate(texts)]
    found = parted(family.prompt(prefix, suffix, others, "a.py", "shop"))
    assert family.files is not None
    own = f"a.py\n{prefix}" if family.files.is_inside and family.files.file else prefix
    assert (found.prefix, found.suffix) == (own, suffix)
    assert [(name, text.rstrip("\n")) for name, text in found.files] == [
        (name, text.rstrip("\n")) for name, text in others
    ]
