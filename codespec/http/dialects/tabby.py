"""Tabby's API: completions by segments of a document, health, settings, and events, of which
nothing is kept. Source: Tabby, crates/tabby/src/routes and services/completion.rs.

Completions have OpenAI's path; the body tells the two apart.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from codespec import limits
from codespec.config import CompletionSettings
from codespec.http.bodies import Body, fields_of, read, snippets_of
from codespec.http.body_document import BodyDocument
from codespec.http.dialects.base import Api, Event, Json, OfBody, Question, Tells, about
from codespec.http.dialects.openai_answers import error_of
from codespec.http.dialects.written_prompts import request_for
from codespec.http.field_error import FieldError
from codespec.limits import Name, PathText, Text, at_most
from codespec.requests import Completion, CompletionRequest

_CRLF = "\r\n"
_STANDARD = "standard"


class _OtherText(msgspec.Struct):
    """Text of another file. filepath: as that of the document, or a URI."""

    filepath: PathText = ""
    body: Text = ""


_OtherTexts = Annotated[list[_OtherText], at_most(limits.FILES)]


class _Segments(msgspec.Struct):
    """Parts of the document at hand, and of others, the most relevant first."""

    prefix: Text = ""
    suffix: Text | None = ""
    filepath: PathText | None = ""
    declarations: _OtherTexts | None = None
    relevant_snippets_from_changed_files: _OtherTexts | None = None
    relevant_snippets_from_recently_opened_files: _OtherTexts | None = None

    @property
    def files(self) -> Iterator[tuple[str, str]]:
        """(name, text) of other files, the most relevant last."""
        opened = self.relevant_snippets_from_recently_opened_files or []
        changed = self.relevant_snippets_from_changed_files or []
        for text in (*reversed(opened), *reversed(changed), *reversed(self.declarations or [])):
            yield text.filepath, text.body


class _DebugOptions(msgspec.Struct):
    raw_prompt: Text | None = None
    return_snippets: bool | None = False
    return_prompt: bool | None = False
    disable_retrieval_augmented_code_completion: bool | None = False


class TabbyBody(Body, kw_only=True):
    """Body of POST /v1/completions, as Tabby's clients send it."""

    verbatim: bool = False  # they are editors
    segments: _Segments | None = None
    debug_options: _DebugOptions = msgspec.field(default_factory=_DebugOptions)
    mode: Name = _STANDARD

    def check(self) -> None:
        super().check()
        if self.mode != _STANDARD:
            why = f'the mode "{self.mode}" is not supported; leave it out'
            raise FieldError("mode", why)
        if self.debug_options.return_snippets or self.debug_options.return_prompt:
            why = "return_snippets and return_prompt are not supported; leave them out"
            raise FieldError("debug_options", why)
        if self.segments is None and self.debug_options.raw_prompt is None:
            raise FieldError("segments", "a completion needs segments", "Send them.")


class TabbyCompletion(OfBody[TabbyBody]):
    """POST /v1/completions, with segments. The document's path helps where it is that of a file in
    a workspace of the server, and is left out otherwise."""

    def __init__(self, raw: bytes, model: str) -> None:
        super().__init__(read(raw, TabbyBody), model)
        self._id = f"cmpl-{secrets.token_hex(12)}"
        segments = self._body.segments
        texts = (segments.prefix, segments.suffix or "") if segments else ()
        self._has_crlf = any(_CRLF in text for text in texts)

    @property
    def document(self) -> BodyDocument:
        path = self._body.segments.filepath if self._body.segments else ""
        return BodyDocument(path=_local(path or ""), language=self._body.language)

    @property
    def path_is_hint(self) -> bool:
        return True

    def requests(self, defaults: CompletionSettings) -> list[CompletionRequest]:
        body, segments = self._body, self._body.segments
        if body.debug_options.raw_prompt is not None:
            body = msgspec.structs.replace(body, verbatim=True)
            raw = body.debug_options.raw_prompt or ""
            return [request_for(body, raw, "", defaults, raw=True).request]
        assert segments is not None
        made = body.request(segments.prefix, segments.suffix or "", defaults)
        if body.debug_options.disable_retrieval_augmented_code_completion:
            return [made]
        return [replace(made, extra=snippets_of(segments.files))]

    def answer(self, completions: Sequence[Completion]) -> Json:
        [completion] = completions
        return self._said(completion.text) | about(completion)

    def part(self, text: str) -> Event:
        return self._said(text)

    def end(self, text: str, completion: Completion) -> list[Event]:
        return [self._said(text) | about(completion)]

    def _said(self, text: str) -> Json:
        if self._has_crlf:
            text = text.replace("\n", _CRLF)
        return {"id": self._id, "choices": [{"index": 0, "text": text}], "mode": _STANDARD}


def is_asked(raw: bytes) -> bool:
    """True if a body is one of Tabby's, not of OpenAI's."""
    if b'"segments"' not in raw and b'"debug_options"' not in raw:
        return False
    try:
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True  # whoever reads it says why
    return "segments" in fields or "debug_options" in fields


def _local(path: str) -> str:
    """The path of a file, which may be a URI; "" for a URI that is none."""
    if not path.startswith("file://"):
        return path
    try:
        return unquote(urlsplit(path).path)
    except ValueError:  # brackets that enclose no address
        return ""


class EventBody(msgspec.Struct):
    """Body of POST /v1/events."""

    type: Literal["view", "select", "dismiss"]


async def _event(question: Question) -> str:
    await asyncio.to_thread(fields_of, question.body, EventBody)  # it may be long
    return ""


async def _server_setting(question: Question) -> Json:
    return {"disable_client_side_telemetry": True}


async def health_state(question: Question) -> Json:
    """The model and the machine, as Tabby's clients ask for them. Raises: Refused while no model is
    ready."""
    server = question.server
    server.check_ready()
    daemon = server.daemon
    return {
        "model": daemon.model,
        "chat_model": daemon.model if daemon.figures.chats else None,
        "device": daemon.figures.backend or "cpu",
        "arch": platform.machine(),
        "cpu_info": platform.machine(),
        "cpu_count": os.cpu_count() or 1,
        "cuda_devices": [],
        # Without a number, which would be taken for one of Tabby's.
        "version": {
            "build_date": "",
            "build_timestamp": "",
            "git_sha": "",
            "git_describe": "codespec",
        },
    }


API = Api(
    routes={
        "/v1/events": Tells(_event, "POST"),
        "/v1beta/server_setting": Tells(_server_setting),
    },
    error=error_of,
    prefixes=("/v1beta/",),
)
