"""Fields of HTTP requests, as clients write them, and of answers of llama-server's infill."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codespec.config import CompletionSettings
from codespec.http.dialects.base import DialectReader
from codespec.http.dialects.chats import OpenAIChat
from codespec.http.dialects.completions import OpenAICompletions
from codespec.http.dialects.infill import Infill
from codespec.http.field_error import FieldError
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace


def infill(**fields: object) -> tuple[CompletionRequest, dict[str, Any]]:
    """(request, answer "a\\nb") for a body of these fields."""
    asked = Infill(json.dumps({"input_prefix": "x = ", **fields}).encode(), "m")
    [request] = asked.requests(CompletionSettings(max_tokens=7))
    said = Completion(request.insertion("a\nb"), "stop", trace=Trace(model="m", n_ctx=99))
    answer = asked.answer([said])
    assert isinstance(answer, dict)
    return request, answer


def test_the_settings_of_an_answer_are_those_of_its_request() -> None:
    given = {
        "n_predict": 9,
        "seed": 5,
        "temperature": 0.5,
        "top_k": 40,
        "top_p": 0.9,
        "min_p": 0.1,
        "repeat_penalty": 1.1,
        "frequency_penalty": 0.2,
        "presence_penalty": 0.3,
        "grammar": 'root ::= "a"',
        "stop": ["b"],
    }
    _, answer = infill(**given)
    acting = ["penalties", "temperature", "top_k", "top_p", "min_p"]
    expected = {**given, "n_ctx": 99, "max_tokens": 9, "stream": False, "samplers": acting}
    assert answer["generation_settings"] == expected
    assert answer["has_new_line"]
    request, answer = infill(top_p=0, top_k=-1)
    settings = answer["generation_settings"]
    assert (settings["n_predict"], settings["seed"], settings["stop"]) == (7, -1, [])
    assert (settings["top_p"], settings["top_k"]) == (request.sampling.top_p, 0)
    assert infill(n_predict=-1)[1]["generation_settings"]["n_predict"] == -1


def test_a_context_that_is_not_known_is_not_told() -> None:
    asked = Infill(b"{}", "m")
    asked.requests(CompletionSettings())
    answer = asked.answer([Completion(finish="length")])
    assert isinstance(answer, dict)
    assert "n_ctx" not in answer["generation_settings"]


def test_an_empty_list_of_fields_asks_for_all() -> None:
    assert infill(response_fields=[])[1] == infill()[1] == infill(response_fields=None)[1]
    fields = ["content", "generation_settings/n_ctx"]
    assert infill(response_fields=fields)[1] == {"content": "a\nb", fields[1]: 99}
    assert infill(response_fields=[""])[1] == {}


DIALECTS: list[tuple[DialectReader, dict[str, object]]] = [
    (Infill, {}),
    (OpenAICompletions, {"prompt": "x"}),
    (OpenAIChat, {"messages": [{"role": "user", "content": "x"}]}),
]


@pytest.mark.parametrize(("dialect", "body"), DIALECTS)
def test_an_integer_may_be_written_with_a_fraction_of_nothing(
    dialect: DialectReader, body: dict[str, object]
) -> None:
    def read(text: str) -> CompletionRequest:
        raw = json.dumps({**body, "fields": 0}).replace('"fields": 0', text)
        [request] = dialect(raw.encode(), "").requests(CompletionSettings())
        return request

    given = '"max_tokens": 16{0}, "top_k": 40{0}, "seed": 3{0}, "n": 1{0}, "temperature": 1{0}'
    assert read(given.format(".0")) == read(given.format("")) == read(given.format("e0"))
    for field, value in (("max_tokens", "16.5"), ("max_tokens", "1e99"), ("seed", '"1"')):
        with pytest.raises(FieldError, match=field):
            read(f'"{field}": {value}')


@pytest.mark.parametrize(("dialect", "body"), DIALECTS)
def test_max_completion_tokens_is_one_more_name(
    dialect: DialectReader, body: dict[str, object]
) -> None:
    for more in ({}, {"max_tokens": 9}):
        raw = json.dumps({**body, **more, "max_completion_tokens": 5}).encode()
        [request] = dialect(raw, "").requests(CompletionSettings())
        assert request.max_tokens == 5
