"""OpenAI's chats: the dialect of POST /v1/chat/completions, and its errors."""

from __future__ import annotations

from dataclasses import replace

from codespec import limits
from codespec.config import CompletionSettings
from codespec.http.bodies import ChatBody, read
from codespec.http.dialects import llama_vim
from codespec.http.dialects.base import Event, Json
from codespec.http.dialects.openai_answers import OpenAIAnswers, chat_choice, error_of
from codespec.requests import Completion, CompletionRequest


class OpenAIChat(OpenAIAnswers[ChatBody]):
    """POST /v1/chat/completions"""

    kind = "chat.completion"
    kind_of_part = "chat.completion.chunk"

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, ChatBody), model, "chatcmpl")
        self._has_begun = False
        self._selection = llama_vim.selection_in(self._body)

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        messages = tuple(message.said for message in self._body.messages)
        made = self._body.request("\n\n".join(said.text for said in messages), "", defaults)
        rewrites = self._body.predicted or (self._selection or "")[: limits.OLD_CHARS]
        return [replace(made, messages=messages, rewrites=rewrites)]

    def end(self, text: str, completion: Completion) -> list[Event]:
        if self._selection is not None:
            text += llama_vim.remark(completion, self._selection)
        return super().end(text, completion)

    def instead_of_error(self, why: str) -> list[Event] | None:
        if self._selection is None:
            return None
        text = llama_vim.instead_of_error(why, self._selection)
        return [self.part(f"\n{text}" if self._has_begun else text), "[DONE]"]

    def choice(self, text: str, completion: Completion | None, *, is_part: bool) -> Json:
        said: Json = {"content": text}
        if not (is_part and self._has_begun):
            said = {"role": "assistant", **said}
        self._has_begun |= is_part
        return chat_choice(said, completion, is_part=is_part)


def chat_error(status: int, message: str, field: str) -> Json:
    """An error of a chat. It is an answer that says so, too: clients that look for no error show
    that, where they would take it for an empty answer."""
    said = {"role": "assistant", "content": f"codespec: no answer: {message}"}
    choice = {"index": 0, "message": said, "finish_reason": "error"}
    return error_of(status, message, field) | {"choices": [choice]}
