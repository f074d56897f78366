"""Bodies of any kind, to every dialect: each is refused as a fault of the client, or asks for text
that an answer in its form can hold."""

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
from codespec.http.dialects.base import Dialect, Writes
from codespec.http.dialects.registry import APIS
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace

WRITERS = {
    path: route.read
    for api in APIS
    for path, route in api.routes.items()
    if isinstance(route, Writes)
}
NAMES = (
    "model", "prompt", "suffix", "messages", "options", "stream", "stop", "raw", "system", "seed",
    "temperature", "max_tokens", "num_predict", "n_predict", "keep_alive", "format", "think",
    "template", "context", "random_seed", "top_p", "top_k", "repeat_last_n", "repeat_penalty",
    "input_prefix", "input_suffix", "input_extra", "prediction", "stream_options", "language",
    "segments", "truncate", "min_tokens", "images", "tools", "n_probs", "workspace", "verbatim",
)  # fmt: skip
TEXTS = st.sampled_from(
    [
        "", "x", "def f(", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<PRE> a <SUF>b <MID>",
        "0s", "5m", "json", "user", "assistant", "\ud800", "any:latest", "<|fim_middle|>",
    ]
)  # fmt: skip
NUMBERS = st.sampled_from([0, 1, -1, 2, 16.0, 0.5, -0.5, 1e308, 2**63, -(2**70)])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": TEXTS | st.just("user"), "content": TEXTS | st.none()}),
    max_size=3,
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | MESSAGES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)
BODIES = st.fixed_dictionaries(
    {"prompt": TEXTS, "messages": MESSAGES},
    optional={name: VALUES for name in NAMES if name not in ("prompt", "messages")},
) | st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6)


def completed(request: CompletionRequest) -> Completion:
    return Completion(request.insertion("text"), "stop", trace=Trace(model="m", n_tokens=1))


def check(dialect: Dialect) -> None:
    requests = dialect.requests(CompletionSettings())
    assert requests
    if dialect.streams:
        assert len(requests) == 1
        events: list[Any] = [dialect.part("te"), *dialect.end("xt", completed(requests[0]))]
    else:
        events = [dialect.answer([completed(request) for request in requests])]
    for event in events:
        assert isinstance(event, str) or json.loads(msgspec.json.encode(event)) != {}


@pytest.mark.parametrize("path", WRITERS)
@settings(max_examples=50, deadline=None)
@given(body=BODIES)
def test_any_body_is_refused_or_answered(path: str, body: dict[str, Any]) -> None:
    with suppress(InputError):
        check(WRITERS[path](json.dumps(body).encode(), "m"))
