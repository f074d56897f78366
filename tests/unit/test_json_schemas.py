"""JSON schemas of HTTP clients: what is written under their grammar follows them, and what cannot
be had so is refused by its place."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from codespec.backends.llama import gbnf
from codespec.backends.llama.grammar import GrammarMask
from codespec.backends.llama.json_schema import gbnf_of
from codespec.backends.llama.loader import LoadedModel
from codespec.backends.llama.model import load_model
from codespec.config import CompletionSettings
from codespec.http.dialects.completions import OpenAICompletions
from codespec.http.field_error import FieldError
from codespec.http.json_schemas import normal_schema
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest


@pytest.fixture(scope="module")
def model() -> Iterator[LoadedModel]:
    found = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    yield found
    found.close()


def is_text(model: LoadedModel, token: int) -> bool:
    """False for a part of a character."""
    return "\ufffd" not in model.tokenizer.piece(token).decode("utf-8", "replace")


def written(model: LoadedModel, schema: object, rng: random.Random) -> tuple[str, bool]:
    """A text under the schema's grammar, tokens at random, mostly those that lead to its end; True
    if it came there."""
    grammar = gbnf_of(normal_schema("json_schema", schema))
    gbnf.check(grammar)
    mask = GrammarMask(model, grammar)
    emitted: list[int] = []
    is_whole = False
    ends = [model.tokenizer.encode(text)[-1] for text in ('"', "}", "]", ",", "1", ":")]
    try:
        while len(emitted) < 60:
            allowed = mask.allowed(emitted).tolist()
            if is_whole := any(token in model.info.eog for token in allowed):
                break
            closing = [token for token in ends if token in allowed]
            whole = [t for t in rng.sample(allowed, min(50, len(allowed))) if is_text(model, t)]
            is_closing = closing and rng.random() < min(0.9, 0.3 + len(emitted) / 30)
            emitted.append(rng.choice(closing if is_closing else whole or allowed))
    finally:
        mask.close()
    text = b"".join(model.tokenizer.piece(token) for token in emitted)
    return text.decode("utf-8", "replace"), is_whole


NODE = {"$ref": "#/$defs/no~1de"}
SCHEMAS: dict[str, tuple[Any, Any]] = {
    "object": (
        {
            "type": "object",
            "title": "T",
            "properties": {
                "name": {"type": "string", "maxLength": 300, "description": "d"},
                "age": {"type": "integer", "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            },
            "required": ["name", "tags"],
            "additionalProperties": False,
        },
        lambda v: (
            {"name", "tags"} <= v.keys() <= {"name", "tags", "age"}
            and len(v["name"]) <= 300
            and v.get("age", 0) >= 0
            and len(v["tags"]) <= 3
        ),
    ),
    "hard names": (
        {"properties": {'a"b\\c\n': {"const": 'x"\\\n\té'}}, "required": ['a"b\\c\n']},
        lambda v: v == {'a"b\\c\n': 'x"\\\n\té'},
    ),
    "texts": (
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        lambda v: 1 <= len(v) <= 2 and all(isinstance(s, str) for s in v),
    ),
    "lengths": (
        {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 3}},
        lambda v: all(2 <= len(s) <= 3 for s in v),
    ),
    "recursion": (
        {
            "$defs": {
                "no/de": {
                    "type": "object",
                    "properties": {"next": {"anyOf": [NODE, {"type": "null"}]}, "v": NODE["$ref"]}
                    | {"v": {"type": "boolean"}},
                    "required": ["next", "v"],
                }
            },
            **NODE,
        },
        lambda v: isinstance(v["v"], bool) and (v["next"] is None or "v" in v["next"]),
    ),
    "all of": (
        {
            "definitions": {"a": {"properties": {"x": {"type": "null"}}, "required": ["x"]}},
            "allOf": [{"$ref": "#/definitions/a"}, {"properties": {"y": {"enum": [1, "1"]}}}],
            "required": ["y"],
        },
        lambda v: v in ({"x": None, "y": 1}, {"x": None, "y": "1"}),
    ),
    "types": (
        {"type": ["integer", "null"], "minimum": 3, "exclusiveMaximum": 5, "maxLength": 1},
        lambda v: v in (3, 4, None),
    ),
    "required alone": ({"required": ["a"]}, lambda v: v.keys() == {"a"}),
    "values": (
        {"type": "object", "additionalProperties": {"type": "boolean"}},
        lambda v: all(isinstance(x, bool) for x in v.values()),
    ),
    "tuple": (
        {"prefixItems": [{"type": "null"}, {"const": "x"}], "minItems": 2},
        lambda v: v == [None, "x"],
    ),
    "positive": ({"type": "integer", "exclusiveMinimum": 0}, lambda v: v >= 1),
    "number": ({"type": "number", "minimum": 0}, lambda v: v >= 0),
    "no items": ({"items": False}, lambda v: v == []),
    "date": ({"type": "string", "format": "date"}, lambda v: re.fullmatch(r"[\d-]{10}", v)),
    "anything": ({"description": "x"}, lambda _: True),
    "one of": (
        {"oneOf": [{"const": {"k": [1]}}, {"const": False}]},
        lambda v: v in ({"k": [1]}, 0),
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_written_follows_the_schema(model: LoadedModel, name: str) -> None:
    schema, follows = SCHEMAS[name]
    rng, n_whole = random.Random(name), 0
    for _ in range(5):
        text, is_whole = written(model, schema, rng)
        if is_whole:
            value = json.loads(text)
            assert follows(value), value
            n_whole += 1
    assert n_whole


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "https://example.com/schema.json"}, "no other place is fetched"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd#/a"}}}, "/a: .*no other place"),
        ({"$ref": "#/$defs/none"}, "leads to no place"),
        ({"properties": {"a": {"type": "string", "pattern": "^a$"}}}, "/a: pattern"),
        ({"properties": {"a": {"type": "integer", "multipleOf": 3}}}, "/a: multipleOf"),
        ({"type": "number", "maximum": 3}, "range"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "string", "maxLength": 2001}, "maxLength needs"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "greater"),
        ({"not": {}}, "not is not supported"),
        ({"type": "text"}, "type needs"),
        ({"type": []}, "type needs"),
        ({"enum": []}, "enum needs"),
        ({"type": "string", "enum": [1]}, "enum needs"),
        (False, "object that something follows"),
        ([], "object that something follows"),
        ("x", "object that something follows"),
        ({"anyOf": []}, "list of schemas"),
        ({"anyOf": [{"type": "string"}], "type": "null"}, "two ways"),
        ({"allOf": [{"$ref": "#"}]}, "lead to each other|within schemas|stands for"),
        ({"required": ["a"], "additionalProperties": False}, "/a: .*something follows"),
        ({"properties": []}, "properties needs"),
        ({"items": {"minimum": "1"}}, "minimum needs to be a number"),
        ({"type": "integer", "minimum": 10**400}, "minimum needs to be a number"),
        ({"allOf": [{"required": 5}, {"required": ["a"]}]}, "required needs to be a list of names"),
        ({"const": 1, "minLength": 2}, "minLength beside"),
        ({"enum": ["x" * 70_000]}, "65536 characters"),
    ],
)
def test_what_cannot_be_held_to_is_refused_by_its_place(schema: object, words: str) -> None:
    with pytest.raises(FieldError, match=words) as refused:
        normal_schema("guided_json", schema)
    assert refused.value.field == "guided_json"
    assert refused.value.hint


def test_schemas_that_grow_are_bounded() -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"properties": {"a": deep}}
    with pytest.raises(FieldError, match="within schemas"):
        normal_schema("json_schema", deep)
    doubled: dict[str, Any] = {"type": "null"}
    for n in range(16):
        one, two = ({"type": "object", "properties": {f"{i}": {}}} for i in range(2))
        doubled = {"anyOf": [one, two], "properties": {f"p{n}": doubled}}
    with pytest.raises(FieldError, match=r"stands for more than|within schemas"):
        normal_schema("json_schema", doubled)


SCHEMA = {"type": "object", "properties": {"a": {"type": "null"}}}


def asked(**fields: object) -> CompletionRequest:
    raw = json.dumps({"prompt": "x", **fields}).encode()
    [request] = OpenAICompletions(raw, "").requests(CompletionSettings())
    return request


@pytest.mark.parametrize(
    "fields",
    [
        {"json_schema": SCHEMA},
        {"guided_json": SCHEMA},
        {"guided_json": json.dumps(SCHEMA)},
        {"structured_outputs": {"json": SCHEMA}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"schema": SCHEMA, "name": "n"},
            }
        },
        {"response_format": {"type": "json_object", "schema": SCHEMA}},
        {"json_schema": SCHEMA, "response_format": {"type": "text"}, "grammar": ""},
    ],
)
def test_a_schema_has_several_names(fields: dict[str, object]) -> None:
    sampling = asked(**fields).sampling
    assert sampling.has_form
    assert json.loads(sampling.json_schema)["properties"] == {"a": {"type": "null"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"structured_outputs": {"json_object": True}},
    ],
)
def test_any_object(fields: dict[str, object]) -> None:
    assert asked(**fields).sampling.json_schema == '{"type": "object"}'


def test_choices_are_a_grammar() -> None:
    for fields in (
        {"guided_choice": ["a\n", '"']},
        {"structured_outputs": {"choice": ["a\n", '"']}},
    ):
        assert asked(**fields).sampling.grammar == r'root ::= "a\n" | "\""'
    for name in ("grammar", "guided_grammar"):
        assert asked(**{name: 'root ::= "a"'}).sampling.grammar == 'root ::= "a"'


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
        ({"guided_json": "{"}, "guided_json"),
        ({"guided_json": '{"type": "integer", "minimum": NaN}'}, "guided_json"),
        ({"guided_json": f'{{"const": {"[" * 100}{"]" * 100}}}'}, "guided_json"),
        ({"structured_outputs": {"regex": "a"}}, "structured_outputs"),
        ({"json_schema": SCHEMA, "grammar": 'root ::= "a"'}, "json_schema"),
    ],
)
def test_forms_that_cannot_be_held_to_are_named(fields: dict[str, object], field: str) -> None:
    with pytest.raises(FieldError) as refused:
        asked(**fields)
    assert refused.value.field == field
