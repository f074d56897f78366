"""Request bodies of HTTP clients: the fields of OpenAI's completions and chats, and of all texts.

null means the default, whatever the field; an integer may be written 16.0. A field that would
change the text and cannot be honoured is an error that names it (`unsupported`). Others that are
not named here are ignored, and so is a `model` that is the name of none in use.
"""

from __future__ import annotations

import codecs
import re
import secrets
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec

from codespec import limits
from codespec.config import CompletionSettings
from codespec.http.constraints import ConstraintFields
from codespec.http.field_error import FieldError
from codespec.http.samplers import chosen
from codespec.http.unsupported import refuse_unsupported
from codespec.limits import (
    CountOrAll,
    Name,
    Share,
    Text,
    at_most,
    is_deeper,
)
from codespec.requests import (
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    ChatMessage,
    CompletionRequest,
)
from codespec.syntax.text import normalise
from codespec.types import SamplingParams, Snippet

ALL_THERE_IS = limits.TOKENS
"""Number of tokens that stands for as many as the model's context holds."""
LATEST = ":latest"
"""Ollama's tag of a model's name that stands for none."""
_OUTERMOST = re.compile(r"\n(?=[^\s)\]}])")
"""The end of a line before one that may begin a definition."""

_LAST_N = 64
"""llama-server's default of `repeat_last_n`, which clients send without a thought."""

_SEEDS = 1 << 63
"""Number of seeds there are; negative ones stand for some of them."""

_LIKELIEST = 1e-9
"""A `top_p` that leaves the likeliest token alone, which 0 asks for."""


class Body(ConstraintFields, kw_only=True):
    """Fields that all dialects have in common."""

    model: Name = ""
    stream: bool = False
    stop: limits.Stop | Annotated[list[limits.Stop], at_most(limits.STOPS)] = ""
    max_tokens: CountOrAll | None = None
    max_completion_tokens: CountOrAll | None = None  # OpenAI's newer name for it
    n_predict: CountOrAll | None = None  # llama.cpp's name for it
    temperature: limits.Temperature | None = None
    top_k: limits.AnyTopK = 0
    top_p: Share = 1.0
    min_p: Share = 0.0
    frequency_penalty: limits.Penalty = 0.0
    presence_penalty: limits.Penalty = 0.0
    repeat_penalty: limits.RepeatPenalty | None = None
    repetition_penalty: limits.RepeatPenalty | None = None  # vLLM's name for it
    repeat_last_n: CountOrAll = -1
    seed: limits.AnySeed = -1  # -1: any
    samplers: Annotated[tuple[Name, ...], at_most(limits.NAMES)] | Name = ()

    @property
    def n_tokens(self) -> int | None:
        """Most tokens to generate; None: not given."""
        names = (self.n_predict, self.max_completion_tokens, self.max_tokens)
        n = next((n for n in names if n is not None), None)
        return ALL_THERE_IS if n == -1 else n

    @property
    def penalty_of_repeats(self) -> float:
        given = (self.repeat_penalty, self.repetition_penalty)
        return next((penalty for penalty in given if penalty is not None), 1.0)

    def check(self) -> None:
        """Raises: FieldError for a field that cannot be honoured."""
        penalties = (self.penalty_of_repeats, self.frequency_penalty, self.presence_penalty)
        if self.repeat_last_n not in (-1, _LAST_N) and penalties != (1, 0, 0):
            why = "penalties are for repeats of all that was written; leave repeat_last_n out"
            raise FieldError("repeat_last_n", why)
        self.constraint()

    def request(self, prefix: str, suffix: str, defaults: CompletionSettings) -> CompletionRequest:
        """The request for these texts before and after the cursor. defaults: for fields that are
        not given."""
        prefix, suffix = normalise(prefix), normalise(suffix)
        if not self.verbatim:
            prefix, suffix = _end_of(prefix, MAX_PREFIX_CHARS), _start_of(suffix, MAX_SUFFIX_CHARS)
        temperature = defaults.temperature if self.temperature is None else self.temperature
        is_any_seed = self.seed == -1
        stops = [self.stop] if isinstance(self.stop, str) else self.stop
        grammar, json_schema = self.constraint()
        return CompletionRequest(
            prefix=prefix,
            suffix=suffix,
            language_id=self.language,
            max_tokens=defaults.max_tokens if self.n_tokens is None else self.n_tokens,
            sampling=chosen(
                SamplingParams(
                    temperature=max(0.0, temperature),
                    top_k=min(max(0, self.top_k), limits.VOCABULARY),
                    top_p=min(max(self.top_p, _LIKELIEST), 1.0),
                    min_p=min(max(self.min_p, 0.0), 1.0),
                    repetition_penalty=self.penalty_of_repeats,
                    frequency_penalty=self.frequency_penalty,
                    presence_penalty=self.presence_penalty,
                    seed=secrets.randbits(62) if is_any_seed else self.seed % _SEEDS,
                    any_seed=is_any_seed,
                    grammar=grammar,
                    json_schema=json_schema,
                ),
                self.samplers,
            ),
            # The model reads \n line ends alone, and writes them.
            stop=tuple(normalise(stop) for stop in stops if stop),
            model=self.model.removesuffix(LATEST),
            verbatim=self.verbatim,
            whole=self.verbatim,
        )


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = False


class _TextPart(msgspec.Struct):
    text: limits.OldText | None = None
    type: Name | None = "text"


class _Prediction(msgspec.Struct):
    """OpenAI's predicted output: a text that the answer is expected to repeat much of."""

    content: limits.OldText | Annotated[list[_TextPart], at_most(limits.PARTS)] | None = None
    type: Name | None = "content"

    @property
    def text(self) -> str:
        return _text_of(self.content)

    def check(self) -> None:
        """Raises: FieldError for a prediction of another kind, or one that is too long."""
        if (self.type or "content") != "content":
            why = f'a prediction needs the type "content", not "{self.type}"'
            raise FieldError("prediction", why, "Change it, or leave prediction out.")
        if self.content is None:
            why = "a prediction needs its content, a text or a list of parts of type text"
            raise FieldError("prediction", why, "Send it, or leave prediction out.")
        _check_parts("prediction", _parts(self.content))
        if (n_chars := len(self.text)) > limits.OLD_CHARS:
            most = f"the parts of a prediction have at most {limits.OLD_CHARS} characters together"
            raise FieldError("prediction", f"{most}, these have {n_chars}", "Shorten them.")


def _parts(content: str | list[_TextPart] | None) -> list[_TextPart]:
    return [_TextPart(content)] if isinstance(content, str) else content or []


def _text_of(content: str | list[_TextPart] | None) -> str:
    return "".join(part.text or "" for part in _parts(content))


def _check_parts(field: str, parts: list[_TextPart]) -> None:
    """Raises: FieldError for a part of another type, or without a text."""
    if other := [part.type for part in parts if (part.type or "text") != "text"]:
        why = f'the content of {field} needs parts of type "text", not "{other[0]}"'
        raise FieldError(field, why, "Send texts alone.")
    if any(part.text is None for part in parts):
        raise FieldError(field, f"a part in the content of {field} lacks its text", "Send it.")


class OpenAIBody(Body, kw_only=True):
    """Fields that OpenAI's requests have in common."""

    stream_options: _StreamOptions = msgspec.field(default_factory=_StreamOptions)
    prediction: _Prediction | None = None

    def check(self) -> None:
        super().check()
        if self.prediction is not None:
            self.prediction.check()

    @property
    def predicted(self) -> str:
        """The text that the answer is expected to repeat; "" for none."""
        return "" if self.prediction is None else self.prediction.text


class CompletionsBody(OpenAIBody, kw_only=True):
    """Body of POST /v1/completions."""

    prompt: Text | Annotated[list[Text], at_most(limits.PROMPTS)]
    suffix: Text = ""
    raw: bool = False  # ours: special tokens in the prompt are read as such, and all of it as it is

    def check(self) -> None:
        super().check()
        if self.prompt == []:
            raise FieldError("prompt", "the list of prompts is empty")
        if self.stream and len(self.prompts) > 1:
            raise FieldError("prompt", "a stream answers one prompt; send several one by one")
        if self.raw and self.suffix:
            raise FieldError("suffix", "a raw prompt has no suffix; leave it out")

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[_TextPart], at_most(limits.PARTS)] | None = None
    # Fields that cannot be honoured.
    tool_calls: limits.NotRead = None
    function_call: limits.NotRead = None
    audio: limits.NotRead = None

    @property
    def text(self) -> str:
        return _text_of(self.content)

    @property
    def said(self) -> ChatMessage:
        role = "system" if self.role == "developer" else self.role
        return ChatMessage(role, normalise(self.text))

    def check(self) -> None:
        """Raises: FieldError for what is no text."""
        _check_parts("messages", _parts(self.content))
        for field in ("tool_calls", "function_call", "audio"):
            if getattr(self, field):
                why = f"messages: {field} is not supported; send text alone"
                raise FieldError("messages", why)


class ChatBody(OpenAIBody, kw_only=True):
    """Body of POST /v1/chat/completions."""

    messages: Annotated[list[_Message], at_most(limits.MESSAGES)]

    @property
    def n_tokens(self) -> int:
        n = super().n_tokens
        return ALL_THERE_IS if n is None else n

    def check(self) -> None:
        super().check()
        if not self.messages:
            raise FieldError("messages", "the list of messages is empty", "Send one at least.")
        for message in self.messages:
            message.check()
        if not self.verbatim:
            raise FieldError("verbatim", "a chat has verbatim answers; leave it out")


_Body = TypeVar("_Body", bound=Body)
_Fields = TypeVar("_Fields", bound=msgspec.Struct)


def read(raw: bytes, kind: type[_Body], inner: str = "") -> _Body:
    """Decode and check a body. inner: see `fields_of`. Raises: FieldError."""
    body = fields_of(raw, kind, inner)
    body.check()
    return body


def fields_of(raw: bytes, kind: type[_Fields], inner: str = "") -> _Fields:
    """Decode a body, within the bounds of its fields. inner: field whose object's fields count as
    the body's own. Raises: FieldError."""
    try:
        fields = msgspec.json.decode(_whole_characters(raw.removeprefix(codecs.BOM_UTF8)))
        if is_deeper(fields):
            raise _too_deep()
        if isinstance(fields, dict):
            pairs = _with_inner(cast("dict[str, Any]", fields), inner).items()
            fields = {name: _whole(value) for name, value in pairs if value is not None}
            refuse_unsupported(fields, kind.__struct_fields__)
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as e:
        # Names fields and types, never text; of what an object in a field lacks, the place first.
        place = re.search(r" - at `\$\.?(\w*)", str(e)) or re.search(
            r"required field `(\w+)", str(e)
        )
        raise FieldError(place[1] if place else "", str(e), limits.next_step(e)) from None
    except RecursionError:
        raise _too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        detail = str(e) if isinstance(e, msgspec.DecodeError) else type(e).__name__
        raise FieldError("", f"the body is not JSON: {detail}") from None


def _with_inner(fields: dict[str, Any], inner: str) -> dict[str, Any]:
    found = fields.get(inner) or {}
    if not isinstance(found, dict):
        raise FieldError(inner, f"{inner} needs to be an object", "Send one, or leave it out.")
    return {**cast("dict[str, Any]", found), **fields}


def _whole(value: Any) -> Any:
    """A number without a fraction as an integer: JSON has one kind of numbers, and some clients
    write 16.0 for 16."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= limits.INTEGER
    return int(value) if is_whole else value


def _too_deep() -> FieldError:
    return FieldError(
        "",
        f"the body has more than {limits.DEPTH} levels of lists and objects",
        "Leave out fields that the API does not name.",
    )


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # one alone
    rb"|\\.",
    re.DOTALL,
)


def _whole_characters(raw: bytes) -> bytes:
    """Replace half surrogate pairs by U+FFFD: text that was cut within a character, as JavaScript
    cuts it, has them in JSON, and they are no characters."""
    if _SURROGATE.search(raw) is None:
        return raw
    return _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], raw)


def snippets_of(files: Iterable[tuple[str, str]]) -> tuple[Snippet, ...]:
    """Snippets of other files, (name, text) each, that a client sends. Raises: FieldError for too
    many, or for names longer than a file's name may be: a prompt may hold names."""
    snippets = tuple(
        Snippet("buffers", name, normalise(text).rstrip(), "sent by the client")
        for name, text in files
    )
    if len(snippets) > limits.FILES:
        most = f"at most {limits.FILES} other files are shown"
        raise FieldError("prompt", f"{most}, the prompt has {len(snippets)}", "Show fewer.")
    if any(len(snippet.path) > limits.PATH_CHARS for snippet in snippets):
        most = f"a file's name has at most {limits.PATH_CHARS} characters"
        raise FieldError("prompt", most, "Shorten it.")
    return snippets


def _end_of(text: str, n_chars: int) -> str:
    """The last `n_chars` characters at most, from a place where a definition may begin if that is
    not far: within a definition parsers would find errors, and each key typed would give another
    beginning."""
    start = len(text) - n_chars
    if start <= 0:
        return text
    place = _OUTERMOST.search(text, start, start + n_chars // 2)
    return text[place.end() if place else start :]


def _start_of(text: str, n_chars: int) -> str:
    """The first `n_chars` characters at most, up to the end of a definition if that is not far."""
    if len(text) <= n_chars:
        return text
    places = [place.end() for place in _OUTERMOST.finditer(text, n_chars // 2, n_chars)]
    return text[: places[-1] if places else n_chars]
