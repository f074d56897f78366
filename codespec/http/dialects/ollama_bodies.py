"""Request bodies of Ollama's clients.

What stands in `options` counts as if it stood beside it. Options of how a model is loaded
(`num_ctx`, `num_thread`, ...) change nothing here: the user's settings say that. Source: Ollama,
docs/api.md.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from codespec import limits
from codespec.http.bodies import ALL_THERE_IS, Body
from codespec.http.field_error import FieldError
from codespec.limits import Name, NotRead, Text, at_most, between
from codespec.requests import ChatMessage
from codespec.syntax.text import normalise

_NOTHING = re.compile(r"-?0[0.nuµmsh]*")
"""A duration of no time at all, as `keep_alive` spells it."""


class OllamaBody(Body, kw_only=True):
    """Fields that Ollama's requests have in common. Of numbers beyond their range the nearest is
    meant, which some clients count on."""

    stream: bool = True
    temperature: limits.AnyNumber | None = None
    top_p: limits.AnyNumber = 1.0
    min_p: limits.AnyNumber = 0.0
    num_predict: Annotated[int, between(-limits.TOKENS, limits.TOKENS)] | None = None
    keep_alive: Annotated[float, between(-limits.INTEGER, limits.INTEGER)] | Name | None = None
    truncate: bool = True
    format: NotRead = None  # "json", or a JSON schema
    think: bool | Name = False  # cannot be honoured

    @property
    def n_tokens(self) -> int:
        n = self.num_predict or 0
        return n if n > 0 else ALL_THERE_IS

    @property
    def unloads(self) -> bool:
        """True if the model is not to be kept in memory after this request."""
        keep = self.keep_alive
        return _NOTHING.fullmatch(keep) is not None if isinstance(keep, str) else keep == 0

    def check(self) -> None:
        super().check()
        if self.think:
            raise FieldError("think", "think is not supported; leave it out")

    def __post_init__(self) -> None:
        if not self.format:
            return
        if self.format != "json" and not isinstance(self.format, dict):
            why = 'format needs to be "json" or a JSON schema'
            raise FieldError("format", why, "Change it, or leave it out.")
        self.json_schema = {"type": "object"} if self.format == "json" else self.format

    def _schemas(self) -> list[tuple[str, str, Any]]:
        return [
            ("format" if self.format and field == "json_schema" else field, grammar, schema)
            for field, grammar, schema in super()._schemas()
        ]


class GenerateBody(OllamaBody, kw_only=True):
    """Body of POST /api/generate. Without a suffix, and unless it is raw, the prompt is a message
    of a chat to a model that has a chat template."""

    prompt: Text = ""
    suffix: Text = ""
    system: Text = ""
    raw: bool = False
    # Fields that cannot be honoured.
    template: NotRead = None
    context: NotRead = None

    def check(self) -> None:
        super().check()
        if self.raw and self.system:
            raise FieldError("system", "a raw prompt has no system; leave it out")
        if not self.truncate:
            why = "truncate false is not supported: a prompt that is too long is cut"
            raise FieldError("truncate", why)
        for field, is_asked in (("template", self.template), ("context", self.context)):
            if is_asked:
                raise FieldError(field, f"{field} is not supported; leave it out")

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The prompt as a chat."""
        user = ChatMessage("user", normalise(self.prompt))
        return (ChatMessage("system", normalise(self.system)), user) if self.system else (user,)


class _OllamaMessage(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: Text | None = ""
    images: NotRead = None
    tool_calls: NotRead = None

    def check(self) -> None:
        """Raises: FieldError for what is no text."""
        for field, is_there in (("images", self.images), ("tool_calls", self.tool_calls)):
            if is_there:
                raise FieldError(field, f"{field} of a message are not supported; send text alone")


class OllamaChatBody(OllamaBody, kw_only=True):
    """Body of POST /api/chat."""

    messages: Annotated[list[_OllamaMessage], at_most(limits.MESSAGES)] = msgspec.field(
        default_factory=list
    )

    def check(self) -> None:
        super().check()
        for message in self.messages:
            message.check()
        if not self.verbatim:
            raise FieldError("verbatim", "a chat has verbatim answers; leave it out")

    @property
    def said(self) -> tuple[ChatMessage, ...]:
        return tuple(
            ChatMessage("system" if m.role == "developer" else m.role, normalise(m.content or ""))
            for m in self.messages
        )


class ShowBody(msgspec.Struct, kw_only=True):
    """Body of POST /api/show. name: of the model, as older clients say it."""

    model: Name = ""
    name: Name = ""
