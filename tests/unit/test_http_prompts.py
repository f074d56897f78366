"""Prompts that HTTP clients write for some model: understood, or answered with a warning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codespec.config import CompletionSettings
from codespec.http.dialects.completions import OpenAICompletions
from codespec.requests import Completion

PREFIX, SUFFIX = "import os\n\ndef add(a, b):\n    return", "\n\nprint(add(1, 2))\n"
UTIL = "def helper(x):\n    return x"


def completions(**body: object) -> OpenAICompletions:
    return OpenAICompletions(json.dumps(body).encode(), "")


@pytest.mark.parametrize(
    ("prompt", "files"),
    [
        # Continue, Mercury
        (f"{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>", []),
        # ProxyAI, files of the repository before the markers
        (
            f"# util.py \n{UTIL}\n\n# main.py \n"
            f"<|fim_prefix|> {PREFIX} <|fim_suffix|>{SUFFIX} <|fim_middle|>",
            [("", f"# util.py \n{UTIL}\n\n# main.py")],
        ),
        (
            f"<|file_separator|>util.py \n{UTIL}\n\n<|file_separator|>main.py \n"
            f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
            [("util.py", UTIL)],
        ),
        (f"[SUFFIX]{SUFFIX}[PREFIX]{PREFIX}[MIDDLE]", []),
        # llama.vscode, OpenAI's endpoint
        (
            "Context:\n\n[object Object]"
            f"<|fim_prefix|>{PREFIX}<|fim_suffix|>{SUFFIX}<|fim_middle|>",
            [("", "Context:\n\n[object Object]")],
        ),
    ],
)
def test_prompts_of_clients_are_understood(prompt: str, files: list[tuple[str, str]]) -> None:
    asked = completions(prompt=prompt)
    [made] = asked.requests(CompletionSettings())
    assert (made.prefix, made.suffix) == (PREFIX, SUFFIX)
    assert [(extra.path, extra.text) for extra in made.extra] == files
    assert asked.warnings == []
    assert "warnings" not in asked.answer([Completion(made.insertion("x"), "stop")])


@pytest.mark.parametrize("prompts", ["<fim_prefix>a<fim_middle>", ["x", "<PRE>a<SUF>b"]])
def test_markers_that_make_no_template_are_warned_of(prompts: Any) -> None:
    asked = completions(prompt=prompts)
    made = asked.requests(CompletionSettings())
    assert [request.prefix for request in made] == ([prompts] if prompts[0] == "<" else prompts)
    [warning] = asked.warnings
    assert "FIM markers" in warning
    assert "fim_" not in warning
    answer = asked.answer([Completion(request.insertion("x"), "stop") for request in made])
    assert answer["warnings"] == [warning]


def test_a_streams_last_event_has_the_warning() -> None:
    asked = completions(prompt="<fim_prefix>a<fim_middle>", stream=True)
    [made] = asked.requests(CompletionSettings())
    part, end = asked.part("x"), asked.end("", Completion(made.insertion("x"), "stop"))[0]
    assert isinstance(part, dict)
    assert isinstance(end, dict)
    assert "warnings" not in part
    assert end["warnings"] == asked.warnings


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "<fim_prefix>a<fim_middle>", "raw": True},
        {"prompt": "<fim_prefix>a<fim_middle>", "suffix": "b"},
        {"prompt": "M = '<fim_prefix>', '<fim_middle>'\n"},
    ],
)
def test_nobody_is_warned_of_what_is_meant(body: dict[str, object]) -> None:
    asked = completions(**body)
    [made] = asked.requests(CompletionSettings())
    assert made.prefix == body["prompt"]
    assert asked.warnings == []
