"""A text that is right stays as it is, in every language without a grammar: the rest of a line of
code, with the language's strings, characters and comments, and of a line of prose."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codespec.engine.given_text import finish_text
from codespec.languages.base import Language, Quotes
from codespec.languages.registry import records
from codespec.requests import CompletionRequest

# Mark-up has a judge of its own, and in JSON nothing stays that is none.
WITHOUT_GRAMMAR = [
    record
    for record in records()
    if record.grammar is None and not record.is_markup and record.json is None
]
CODE = [
    record
    for record in WITHOUT_GRAMMAR
    # Brackets are text in some, as in LaTeX.
    if not record.prose and not re.fullmatch(record.text or "(?!)", "(")
]
PROSE = [record for record in WITHOUT_GRAMMAR if record.prose]
WORDS = ("it's", "(see", "that)", ":)", ":-(", "don't", '"quoted"', "[a](b)", "5'", "a", "{x", ";)")
BODY = ("a", "b c", "(", ")", "[", "}", " 1 ", "it is :) ", "_")
CHARACTERS = "a()[]1"


def name_of(record: Language) -> str:
    return f"/a{record.extensions[0]}" if record.extensions else "/a"


def strings(record: Language) -> list[Quotes]:
    """Those that may stand in a line, without the assertions of others."""
    return [q for q in record.strings if not q.after and "\n" not in q.closer]


def literals(record: Language) -> st.SearchStrategy[str]:
    """Strings and characters that hold brackets, and the quotes of others."""

    def made(quotes: Quotes) -> st.SearchStrategy[str]:
        closer = quotes.closer or quotes.opener
        if quotes.is_character:
            return st.sampled_from(CHARACTERS).map(lambda c: f"{quotes.opener}{c}{closer}")
        others = [q for q in ("'", '"') if q not in quotes.opener + closer]
        signs = [part for part in (*BODY, *others) if not quotes.nests or part.isalnum()]
        signs = [part for part in signs if closer[0] not in part]
        body = st.lists(st.sampled_from(signs), min_size=1, max_size=4).map("".join)
        return body.map(lambda text: f"{quotes.opener}{text}{closer}")

    return st.one_of(st.just("b"), *map(made, strings(record)))


@st.composite
def lines(draw: st.DrawFn, record: Language) -> str:
    """A call with arguments, some of which are calls."""
    arguments: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        literal = draw(literals(record))
        index = f" {literal}" if literal[0] == "[" else literal  # else the two open another one
        arguments.append(draw(st.sampled_from((literal, f"g({literal})", f"x[{index}]"))))
    return f"f({', '.join(arguments)})"


@pytest.mark.parametrize("record", CODE, ids=lambda record: record.name)
@settings(max_examples=15)
@given(data=st.data())
def test_the_rest_of_a_line_of_code(record: Language, data: st.DataObject) -> None:
    line = data.draw(lines(record))
    at = data.draw(st.integers(2, len(line) - 2))
    assume(not line[at - 1].isspace() and not line[at].isspace())
    # An editor closes the first bracket at once, or does not.
    closer = data.draw(st.sampled_from(["", ")"]))
    request = CompletionRequest(line[:at], f"{closer}\n", name_of(record))
    found = finish_text(request, f"{line[at:]}\n", "stop")
    assert line[:at] + found.text + closer == line


@pytest.mark.parametrize("record", PROSE, ids=lambda record: record.name)
@settings(max_examples=15)
@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=8), st.data())
def test_the_rest_of_a_line_of_prose(
    record: Language, words: list[str], data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, len(words) - 1))
    before, said = " ".join(words[:at]), " ".join(words[at:])
    request = CompletionRequest(f"so {before} ", "\n", name_of(record))
    assert finish_text(request, f"{said}\n", "stop").text == said


@pytest.mark.parametrize("record", CODE, ids=lambda record: record.name)
@settings(max_examples=8)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_the_text_of_a_comment(record: Language, words: list[str]) -> None:
    openers = [comment.opener for comment in record.line_comments]
    said = " ".join(words)
    for opener in openers:
        request = CompletionRequest(f"f(1)\n{opener} so ", "\n", name_of(record))
        assert finish_text(request, f"{said}\n", "stop").text == said
