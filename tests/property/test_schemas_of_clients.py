"""JSON schemas with any values of their keywords: each is a grammar, or refused by `FieldError`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.llama.json_schema import gbnf_of
from codespec.http.field_error import FieldError
from codespec.http.json_schemas import normal_schema

KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "prefixItems",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "$defs",
    "enum",
    "const",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "additionalProperties",
    "pattern",
]
NAMES = ["", "x", "string", "object", "array", "integer", "#", "#/$defs/x"]
TEXTS = st.sampled_from(NAMES) | st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
KEYS = st.sampled_from(["x", *KEYWORDS]) | st.text(max_size=4)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=4))
@settings(max_examples=100)
def test_a_schema_is_a_grammar_or_refused(schema: dict[str, Any]) -> None:
    with suppress(FieldError):
        assert "root ::=" in gbnf_of(normal_schema("json_schema", schema))
