"""Mistral's fill-in-the-middle, as clients ask for it and read it."""

from __future__ import annotations

import json

import pytest

from codespec.config import CompletionSettings
from codespec.http.dialects.mistral import MistralFim
from codespec.http.field_error import FieldError
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace


def fim(**fields: object) -> MistralFim:
    return MistralFim(json.dumps({"model": "codestral-latest", **fields}).encode(), "ours")


def test_its_fields_are_honoured() -> None:
    fields = {"suffix": "\n", "max_tokens": 16, "stop": ["\n\n"], "random_seed": 3, "top_p": 0.9}
    [request] = fim(prompt="x = ", **fields, temperature=0.5).requests(CompletionSettings())
    assert (request.prefix, request.suffix, request.stop) == ("x = ", "\n", ("\n\n",))
    assert (request.max_tokens, request.sampling.seed) == (16, 3)
    assert not request.sampling.any_seed
    [request] = fim(prompt="x = ", suffix=None, random_seed=None).requests(CompletionSettings())
    assert (request.suffix, request.sampling.any_seed) == ("", True)
    with pytest.raises(FieldError, match="min_tokens"):
        fim(prompt="x", min_tokens=4)


def test_its_answers_are_messages() -> None:
    made = Completion(CompletionRequest("").insertion("y"), "stop", trace=Trace(model="ours"))
    answer = fim(prompt="x").answer([made])
    [choice] = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "y"}
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert answer["object"] == "chat.completion"
    assert {"id", "model", "created", "usage"} <= answer.keys()
    last, done = fim(prompt="x", stream=True).end("y", made)
    assert done == "[DONE]"
    assert isinstance(last, dict)
    assert last["choices"][0]["delta"]["content"] == "y"
    assert last["usage"]["completion_tokens"] == 0
