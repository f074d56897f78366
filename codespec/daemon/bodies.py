"""What HTTP clients say: the fields of OpenAI's completions and of llama.cpp's infill.

null means the default, whatever the field. Fields that are not named here are ignored, `model`
among them; one that is named and cannot be honoured is an error that names it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar, cast

import msgspec

from codespec.config import CompletionSettings
from codespec.errors import InputError
from codespec.index.text import normalise
from codespec.requests import MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS, CompletionRequest
from codespec.types import SamplingParams, Snippet

_ALL_THERE_IS = 1 << 20
"""Tokens: as many as the model's context holds."""
_ANY_TOKEN = 1 << 30
"""For `top_k`: no vocabulary is larger."""
_MAX_GRAMMAR_CHARS = 1 << 16
"""Reading a grammar and following it take time, and cannot be interrupted."""
_OUTERMOST = re.compile(r"\n(?=[^\s)\]}])")
"""The end of a line before one that may begin a definition."""

_LIKELIEST = 1e-9
"""A `top_p` that leaves the likeliest token alone, which is what 0 asks for."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=_ALL_THERE_IS)]
_CountOrAll = Annotated[int, msgspec.Meta(ge=-1, le=_ALL_THERE_IS)]
_Penalty = Annotated[float, msgspec.Meta(ge=-100, le=100)]
_Texts = Annotated[list[str], msgspec.Meta(max_length=64)]


class FieldError(InputError):
    """A request that cannot be honoured. `field`: which of its fields is why, "" for none."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Document(msgspec.Struct, kw_only=True):
    """Our own fields: which document of which workspace this is. `verbatim` false: what an editor
    would suggest, a syntactic unit that fits what follows, in place of the model's own text."""

    workspace: str | None = None  # None: the server's first
    path: str = ""  # absolute, or from the workspace's folder
    language: str = ""
    verbatim: bool = True


class Body(Document, kw_only=True):
    """What both dialects have in common."""

    stream: bool = False
    stop: str | _Texts = ""
    max_tokens: _CountOrAll | None = None
    n_predict: _CountOrAll | None = None  # llama.cpp's name for it
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_k: int = 0
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    min_p: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    frequency_penalty: _Penalty = 0.0
    presence_penalty: _Penalty = 0.0
    repeat_penalty: Annotated[float, msgspec.Meta(ge=0.01, le=100)] = 1.0
    seed: Annotated[int, msgspec.Meta(ge=-1, le=(1 << 63) - 1)] = -1
    grammar: Annotated[str, msgspec.Meta(max_length=_MAX_GRAMMAR_CHARS)] = ""
    # What cannot be honoured.
    n: int = 1
    best_of: int = 1
    echo: bool = False
    logprobs: int | bool = False  # 0 asks for those of what was said
    n_probs: int = 0
    logit_bias: Any = None
    json_schema: Any = None
    response_format: dict[str, Any] = {}

    @property
    def n_tokens(self) -> int | None:
        """At most; None: not said."""
        n = self.max_tokens if self.n_predict is None else self.n_predict
        return _ALL_THERE_IS if n == -1 else n

    def check(self) -> None:
        """Raises: FieldError for a field that cannot be honoured."""
        for field, is_asked in (
            ("n", self.n != 1),
            ("best_of", self.best_of != 1),
            ("echo", self.echo),
            ("logprobs", self.logprobs is not False),
            ("n_probs", self.n_probs),
            ("logit_bias", self.logit_bias),
            ("json_schema", self.json_schema),
            ("response_format", (self.response_format.get("type") or "text") != "text"),
        ):
            if is_asked:
                raise FieldError(field, f"{field} is not supported; leave it out")

    def request(self, prefix: str, suffix: str, defaults: CompletionSettings) -> CompletionRequest:
        prefix, suffix = normalise(prefix), normalise(suffix)
        if not self.verbatim:
            prefix, suffix = _end_of(prefix, MAX_PREFIX_CHARS), _start_of(suffix, MAX_SUFFIX_CHARS)
        temperature = defaults.temperature if self.temperature is None else self.temperature
        stops = [self.stop] if isinstance(self.stop, str) else self.stop
        return CompletionRequest(
            prefix=prefix,
            suffix=suffix,
            language_id=self.language,
            max_tokens=defaults.max_tokens if self.n_tokens is None else self.n_tokens,
            sampling=SamplingParams(
                temperature=temperature,
                top_k=min(max(0, self.top_k), _ANY_TOKEN),
                top_p=max(self.top_p, _LIKELIEST),
                min_p=self.min_p,
                repetition_penalty=self.repeat_penalty,
                frequency_penalty=self.frequency_penalty,
                presence_penalty=self.presence_penalty,
                seed=secrets.randbits(62) if self.seed < 0 else self.seed,
                any_seed=self.seed < 0,
                grammar=self.grammar,
            ),
            # The model reads \n line ends alone, and writes them.
            stop=tuple(normalise(stop) for stop in stops if stop),
            verbatim=self.verbatim,
            whole=self.verbatim,
        )


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = False


class CompletionsBody(Body, kw_only=True):
    prompt: str | _Texts
    suffix: str = ""
    stream_options: _StreamOptions = msgspec.field(default_factory=_StreamOptions)

    def check(self) -> None:
        super().check()
        if self.prompt == []:
            raise FieldError("prompt", "the list of prompts is empty")
        if self.stream and len(self.prompts) > 1:
            raise FieldError("prompt", "a stream answers one prompt; send several one by one")

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt


class _Extra(msgspec.Struct):
    text: str
    filename: str | None = ""


class InfillBody(Body, kw_only=True):
    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: list[_Extra] = []
    prompt: str = ""  # what stands before the cursor in its line
    n_indent: _Count = 0
    t_max_predict_ms: float = 0.0
    response_fields: list[str] | None = None


_Body = TypeVar("_Body", bound=Body)


def read(raw: bytes, kind: type[_Body]) -> _Body:
    """Raises: FieldError."""
    try:
        fields = msgspec.json.decode(_whole_characters(raw))
        if isinstance(fields, dict):
            pairs = cast("dict[str, Any]", fields).items()
            fields = {name: value for name, value in pairs if value is not None}
        body = msgspec.convert(fields, kind)
    except msgspec.ValidationError as e:
        # Names fields and types, never text; of what an object in a field lacks, the place first.
        place = re.search(r" - at `\$\.?(\w*)", str(e)) or re.search(
            r"required field `(\w+)", str(e)
        )
        raise FieldError(place[1] if place else "", str(e)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        detail = str(e) if isinstance(e, msgspec.DecodeError) else type(e).__name__
        raise FieldError("", f"the body is not JSON: {detail}") from None
    body.check()
    return body


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # one alone
    rb"|\\.",
    re.DOTALL,
)


def _whole_characters(raw: bytes) -> bytes:
    """Where text was cut within a character, as JavaScript cuts it, JSON has half a surrogate pair,
    which is no character: U+FFFD takes its place."""
    if _SURROGATE.search(raw) is None:
        return raw
    return _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], raw)


def shown(files: Iterable[tuple[str, str]]) -> tuple[Snippet, ...]:
    """What a client tells of other files, (name, text) each."""
    return tuple(
        Snippet("buffers", name, normalise(text).rstrip(), "sent by the client")
        for name, text in files
    )


def _end_of(text: str, n_chars: int) -> str:
    """At most so many characters, from where a definition may begin, if that is not far: within
    one, parsers would find errors, and each character typed would give another beginning."""
    start = len(text) - n_chars
    if start <= 0:
        return text
    place = _OUTERMOST.search(text, start, start + n_chars // 2)
    return text[place.end() if place else start :]


def _start_of(text: str, n_chars: int) -> str:
    """Likewise, up to the end of a definition."""
    if len(text) <= n_chars:
        return text
    places = [place.end() for place in _OUTERMOST.finditer(text, n_chars // 2, n_chars)]
    return text[: places[-1] if places else n_chars]
