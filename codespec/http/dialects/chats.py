"""OpenAI's chats: the dialect of POST /v1/chat/completions."""

from __future__ import annotations

from dataclasses import replace

from codespec.config import CompletionSettings
from codespec.http.bodies import ChatBody, read
from codespec.http.dialects.base import Json
from codespec.http.dialects.openai_answers import OpenAIAnswers, finish_of
from codespec.requests import Completion, CompletionRequest


class OpenAIChat(OpenAIAnswers[ChatBody]):
    """POST /v1/chat/completions"""

    kind = "chat.completion"
    kind_of_part = "chat.completion.chunk"

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, ChatBody), model, "chatcmpl")
        self._has_begun = False

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        messages = tuple(message.said for message in self._body.messages)
        made = self._body.request("\n\n".join(said.text for said in messages), "", defaults)
        return [replace(made, messages=messages, rewrites=self._body.predicted)]

    def choice(self, text: str, completion: Completion | None, *, is_part: bool) -> Json:
        said: Json = {"content": text}
        if not (is_part and self._has_begun):
            said = {"role": "assistant", **said}
        self._has_begun |= is_part
        key = "delta" if is_part else "message"
        return {"index": 0, key: said, "logprobs": None, "finish_reason": finish_of(completion)}
