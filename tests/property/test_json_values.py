"""JSON with a part that a model says once more: what is inserted makes it JSON again, whatever else
the model says, and the part itself is never changed."""

from __future__ import annotations

import json
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.engine.given_text import finish_text
from codespec.languages.registry import record_of
from codespec.requests import CompletionRequest
from codespec.suggest import Candidate, Place
from codespec.suggest.json_values import JsonRules

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
strings = st.text(st.sampled_from("ab1 {}[]:,/*\"\\'é\n"), max_size=6)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-99, 99), st.sampled_from([0.5, -1e20, 1e-7]), strings
)
values: st.SearchStrategy[Value] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=12,
)
indents = st.sampled_from([None, 2, 4])
# What models go on with that is no JSON.
EXTRA = (" + name", "()", " // one", ".join(', ')", ",", ",,", " 'x'", " || 1", ";")


@given(values, indents, st.data())
def test_a_true_text_is_never_changed(value: Value, indent: int | None, data: st.DataObject):
    text = json.dumps(value, indent=indent)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    dialect = record_of("json").json
    assert dialect is not None
    place = Place(text[:start], text[end:], "json")
    rules, said = JsonRules(place, dialect), Candidate(place, text[start:end])
    assert rules.upto_fault(said) == said.text
    assert rules.with_commas(said) == said.text


def members(text: str) -> list[tuple[int, int]]:
    """Beginnings and ends of elements that take one line each, without their comma."""
    found: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        body = line.strip().removesuffix(",")
        if body and not body.endswith(("{", "[")) and body[0] not in "}]":
            at = start + len(line) - len(line.lstrip())
            found.append((at, at + len(body)))
        start += len(line) + 1
    return found


@given(values, st.sampled_from([2, 4]), st.data())
def test_what_is_inserted_is_json(value: Value, indent: int, data: st.DataObject):
    text = json.dumps([value, 1, {"b": value}], indent=indent)
    start, end = data.draw(st.sampled_from(members(text)))
    after = text[end:].removeprefix(",")
    said = text[start:end] + data.draw(st.sampled_from(EXTRA)) + "\n"
    request = CompletionRequest(text[:start], after, "/a.json")
    found = finish_text(request, said, data.draw(st.sampled_from(["stop", "length"]))).text
    if found:
        assert json.loads(text[:start] + found + after) == json.loads(text)


@given(values, st.sampled_from([2, 4]), st.data())
def test_what_is_cut_off_is_json(value: Value, indent: int, data: st.DataObject):
    text = json.dumps([value, 1, {"b": value}], indent=indent)
    start, end = data.draw(st.sampled_from(members(text)))
    after = text[end:].removeprefix(",")
    said = text[start : data.draw(st.integers(start, end))]
    request = CompletionRequest(text[:start], after, "/a.json")
    found = finish_text(request, said, "length").text
    if found:
        json.loads(text[:start] + found + after)


@pytest.mark.parametrize("name", ["json", "jsonc", "json5", "jsonl"])
@given(st.data())
def test_any_text_may_be_said_anywhere(name: str, data: st.DataObject):
    dialect = record_of(name).json
    assert dialect is not None
    texts = st.text(st.sampled_from("a1 {}[]:,/*\"'\\-.+t\n"), max_size=20)
    place = Place(data.draw(texts), data.draw(texts), name)
    said = Candidate(place, data.draw(texts))
    rules = JsonRules(place, dialect)
    kept = rules.upto_fault(said)
    assert said.text.startswith(kept)
    again = Candidate(place, kept)
    mended = rules.with_commas(again)
    words = mended.replace(",", "").split()  # cut where it would run together with what follows
    assert words == kept.replace(",", "").split()[: len(words)]
