"""LlamaInstruct's chats: told from all others, drafted from the selected lines, and answered so
that accepting loses none of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codespec.config import CompletionSettings
from codespec.http.dialects.chats import OpenAIChat
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace

MARKS = {name: f"--- {name:12}{'-' * 40}\n" for name in ("PREFIX", "SELECTION", "SUFFIX")}
LINES = "def f():\n    return 1"


def system(selection: str = LINES, prefix: str = "import os", suffix: str = "f()") -> str:
    parts = zip(MARKS.values(), (prefix, selection, suffix), strict=True)
    return "Edit.\n\n" + "".join(f"{mark}{part}\n" for mark, part in parts)


def asked(text: str, **fields: object) -> OpenAIChat:
    said = [{"role": "system", "content": text}, {"role": "user", "content": "INSTRUCTION: x"}]
    return OpenAIChat(json.dumps({"messages": said, "stream": True, **fields}).encode(), "m")


def request_of(chat: OpenAIChat) -> CompletionRequest:
    [request] = chat.requests(CompletionSettings())
    return request


def text_of(events: Any) -> str:
    return "".join(e["choices"][0]["delta"]["content"] for e in events if e != "[DONE]")


@pytest.mark.parametrize("lines", [LINES, "", "a\n\n", "--- CONTEXT", "\tx\r"])
def test_the_selection_is_drafted_from_and_comes_back_with_an_error(lines: str) -> None:
    chat = asked(system(lines))
    assert request_of(chat).rewrites == lines
    events = chat.instead_of_error("no template\n  Choose another.")
    assert events is not None
    said, _, kept = text_of(events).partition("\n")
    assert said.startswith("codespec: no answer: no template. Choose another.")
    assert kept == lines
    assert events[-1] == "[DONE]"


def test_a_prediction_goes_before_the_selection() -> None:
    assert request_of(asked(system(), prediction={"content": "p"})).rewrites == "p"


@pytest.mark.parametrize("place", ["prefix", "selection", "suffix"])
@pytest.mark.parametrize("mark", ["SELECTION", "SUFFIX"])
def test_of_an_uncertain_selection_nothing_is_quoted(place: str, mark: str) -> None:
    chat = asked(system(**{place: f"a\n{MARKS[mark]}b"}))
    events = chat.instead_of_error("no template")
    assert events is not None
    assert text_of(events) == "codespec: no answer: no template."


def test_other_chats_get_their_errors() -> None:
    for chat in (asked("Be brief."), asked(system(), stream=False), asked(MARKS["SELECTION"])):
        assert chat.instead_of_error("no template") is None
        assert request_of(chat).rewrites == ""


def end_of(text: str, finish: Any, **trace: Any) -> str:
    chat = asked(system())
    edit = request_of(chat).insertion(text)
    return text_of(chat.end(text, Completion(edit, finish, trace=Trace(**trace))))


def test_an_answer_that_is_not_whole_keeps_the_lines() -> None:
    assert end_of("def g(): ...", "stop") == "def g(): ..."
    for text, finish in (("def g", "length"), ("def g", "deadline"), ("", "stop"), (" \n", "stop")):
        assert end_of(text, finish).endswith(f"as they were.\n{LINES}")
    assert "limit" in end_of("def g", "stop", is_limited=True)
