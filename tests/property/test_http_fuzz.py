"""Any body that any route may be sent is read, or refused by `FieldError`."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.llama.json_schema import gbnf_of
from codespec.config import CompletionSettings
from codespec.http.dialects.base import Writes
from codespec.http.dialects.registry import APIS
from codespec.http.field_error import FieldError
from codespec.http.json_schemas import normal_schema
from codespec.requests import CompletionRequest

READERS = {
    path: route.read
    for api in APIS
    for path, route in api.routes.items()
    if isinstance(route, Writes)
}
FIELDS = [
    "prompt",
    "suffix",
    "messages",
    "input_prefix",
    "input_suffix",
    "input_extra",
    "stop",
    "max_tokens",
    "n_predict",
    "stream",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "seed",
    "grammar",
    "json_schema",
    "response_format",
    "guided_json",
    "guided_choice",
    "structured_outputs",
    "prediction",
    "segments",
    "options",
    "format",
    "raw",
    "model",
    "response_fields",
    "stream_options",
    "repeat_penalty",
    "repeat_last_n",
    "n",
    "logit_bias",
    "tools",
    "min_tokens",
    "path",
    "workspace",
]
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
TEXTS = st.sampled_from(
    [
        "",
        "x",
        "string",
        "object",
        "array",
        "integer",
        "json_schema",
        "#",
        "#/$defs/x",
        "<PRE>a<SUF>",
    ]
) | st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS


def values(names: list[str]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(names) | st.text(max_size=4)
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=8,
    )


@given(
    st.sampled_from(sorted(READERS)),
    st.dictionaries(
        st.sampled_from(FIELDS), values([*FIELDS, "content", "role", "text", "type"]), max_size=6
    ),
    st.booleans(),
)
@settings(max_examples=100)
def test_a_body_is_read_or_refused(path: str, fields: dict[str, Any], is_asked: bool) -> None:
    asked = {"prompt": "x", "messages": [{"role": "user", "content": "x"}]} if is_asked else {}
    try:
        made = READERS[path](json.dumps({**asked, **fields}).encode(), "").requests(
            CompletionSettings()
        )
    except FieldError:
        pass
    else:
        assert made
        assert all(isinstance(request, CompletionRequest) for request in made)


@given(st.sampled_from(sorted(READERS)), st.binary(max_size=40))
def test_bytes_are_read_or_refused(path: str, raw: bytes) -> None:
    with suppress(FieldError):
        assert READERS[path](raw, "").requests(CompletionSettings())


@given(st.dictionaries(st.sampled_from(KEYWORDS), values(["x", *KEYWORDS]), max_size=4))
@settings(max_examples=100)
def test_a_schema_is_a_grammar_or_refused(schema: dict[str, Any]) -> None:
    with suppress(FieldError):
        assert "root ::=" in gbnf_of(normal_schema("json_schema", schema))
