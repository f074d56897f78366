"""How often text is lexed from a place and what a model says there to what is inserted.

A document is lexed line by line, each line once, as far as the rules look; what several lines say
together is put together from that, and what the whole document says is read at once. A candidate
is lexed once; as it grows, is cut and is changed, it is read on from the start of the line that
changes: an extension, as is a part of a text that was read. Elements of JSX and of mark-up have a
reader of their own, which is not counted.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.reasons import ShapeReason
from codespec.suggest import Judge, UnitStop, finish, place_in, shape_at
from codespec.syntax.lexer import COUNT, LexCount
from codespec.syntax.trees import TreeCache
from tests.golden.golden import Case
from tests.golden.test_suggestions import CASES, ENDS, EXTENSIONS

TOKENIZER = ByteTokenizer()


def since(before: LexCount) -> LexCount:
    return LexCount(
        COUNT.n_texts - before.n_texts,
        COUNT.n_lines - before.n_lines,
        COUNT.n_extensions - before.n_extensions,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file.stem}: {case.name}")
def test_a_text_is_lexed_once_for_a_place_and_once_for_a_candidate(case: Case):
    prefix, suffix = case.cursor
    before = replace(COUNT)
    place = place_in(TreeCache(), prefix, suffix, f"a{EXTENSIONS[case.file.stem]}")
    shape = shape_at(place)
    of_place = since(before)
    # A string or a comment that began above the cursor's line is read once more, from its start.
    assert of_place.n_texts <= (shape.why is ShapeReason.IN_TEXT)

    judge, ended = Judge(place), ENDS[case.options.get("ended", "stop")]
    said = TOKENIZER.encode(case.given("model")).tolist()
    for _ in range(2):
        begun = replace(COUNT)
        stop = UnitStop(TOKENIZER, shape, place)
        n_asked = next((n for n in range(1, len(said) + 1) if stop(said[:n])), len(said))
        n_read = since(begun).n_texts + since(begun).n_extensions
        text = TOKENIZER.decode(said[:n_asked]).decode()
        # Not once a token: a line is looked at when it ends, and when the next one has begun.
        assert n_read <= 1 + 5 * text.count("\n")
        found = finish(stop.candidate(text), stop.end(text), ended, shape, judge).text
        # A tab in place of the blanks that a text begins with makes it another one.
        assert since(begun).n_texts <= 1 + (found[:1] == "\t" != text[:1])
    # Each line once, with the cursor's in two parts; where brackets of the document are asked for,
    # all above it and all below as one text each, and the brackets above as one. A second candidate
    # for the place has none of them read again.
    assert since(before).n_lines <= case.document.count("\n") + 5


def test_what_is_asked_again_is_not_lexed_again():
    place = place_in(TreeCache(), "x = [", "", "a.py")
    stop = UnitStop(TOKENIZER, shape_at(place), place)
    text = "\n    1,\n    b,\n"
    assert stop.end(text) is None
    before = replace(COUNT)
    for n in range(1, 20):
        assert stop.end(text + n * " ") is None
    assert since(before) == LexCount()
