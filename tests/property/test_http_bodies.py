"""Bodies of every dialect, with any values in the fields that it knows: each is a request, or an
error that says why not."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.config import CompletionSettings
from codespec.errors import InputError
from codespec.http.bodies import Body, ChatBody, CompletionsBody, fields_of
from codespec.http.dialects.base import DialectReader
from codespec.http.dialects.chats import OpenAIChat
from codespec.http.dialects.completions import OpenAICompletions
from codespec.http.dialects.infill import Infill
from codespec.http.dialects.llama_completion import LlamaCompletion
from codespec.http.dialects.mistral import FimBody, MistralFim
from codespec.http.dialects.ollama_answers import OllamaChat, OllamaGenerate
from codespec.http.dialects.ollama_bodies import GenerateBody, OllamaChatBody, ShowBody
from codespec.http.dialects.tabby import EventBody, TabbyBody, TabbyCompletion, is_asked
from codespec.http.llama_bodies import CompletionBody, DetokenizeBody, InfillBody, TokenizeBody
from codespec.requests import Completion

DIALECTS: list[tuple[DialectReader, type[Body], dict[str, Any]]] = [
    (OpenAICompletions, CompletionsBody, {"prompt": "x"}),
    (OpenAIChat, ChatBody, {"messages": [{"role": "user", "content": "x"}]}),
    (Infill, InfillBody, {}),
    (LlamaCompletion, CompletionBody, {"prompt": ["x", 1]}),
    (TabbyCompletion, TabbyBody, {"segments": {"prefix": "x"}}),
    (OllamaGenerate, GenerateBody, {"prompt": "x"}),
    (OllamaChat, OllamaChatBody, {"messages": [{"role": "user", "content": "x"}]}),
    (MistralFim, FimBody, {"prompt": "x"}),
]
FIELDS = (TokenizeBody, DetokenizeBody, ShowBody, EventBody)
OTHER_FIELDS = ("options", "tools", "n", "logit_bias")
"""Fields that bodies do not declare, and that are read or refused."""
INNER = ("prefix", "suffix", "filepath", "body", "text", "role", "content", "type", "declarations")
ATOMS: Any = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 16.0, 0.5, 1e308, 2**63, -(2**70)])
    | st.text(max_size=4)
    | st.sampled_from(["user", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "\ud83d", "\r\n"])
)
VALUES: Any = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=3)
    ),
    max_leaves=6,
)


def bodies(kind: type[msgspec.Struct], base: dict[str, Any]) -> Any:
    names = st.sampled_from((*kind.__struct_fields__, *OTHER_FIELDS))
    return st.dictionaries(names, VALUES, max_size=4).map(lambda more: json.dumps(base | more))


@pytest.mark.parametrize(("read", "kind", "base"), DIALECTS)
@settings(max_examples=60)
@given(data=st.data())
def test_a_body_is_a_request_or_an_error(
    read: DialectReader, kind: type[Body], base: dict[str, Any], data: st.DataObject
) -> None:
    raw = data.draw(bodies(kind, base)).encode()
    try:
        dialect = read(raw, "m")
        requests = dialect.requests(CompletionSettings())
    except InputError:
        return
    assert requests
    said = [Completion(request.insertion("a\n"), "stop") for request in requests]
    json.dumps(dialect.answer(said))
    if dialect.streams:
        json.dumps([dialect.part("a"), *dialect.end("\n", said[0])])


@pytest.mark.parametrize("kind", FIELDS)
@settings(max_examples=40)
@given(data=st.data())
def test_fields_are_read_or_an_error(kind: type[msgspec.Struct], data: st.DataObject) -> None:
    raw = data.draw(bodies(kind, {})).encode()
    with suppress(InputError):
        assert isinstance(fields_of(raw, kind), kind)


@settings(max_examples=80)
@given(st.binary(max_size=60))
def test_any_bytes_are_of_one_api(raw: bytes) -> None:
    for body in (raw, b'{"segments": ' + raw, b'{"segments": 1, "x": "' + raw + b'"}'):
        read = TabbyCompletion if is_asked(body) else OpenAICompletions
        with pytest.raises(InputError):
            read(body, "m")
