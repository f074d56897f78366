"""The contract of generators: models that decode by themselves, here or on another machine.

A generator streams ids or text. It has no passes to verify drafts in, no rollback and no
log-probabilities; prompt, healing, stopping, finishing and deadlines are the engine's, as for a
target.
"""

from __future__ import annotations

import math
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from codespec.backends.base import Backend
from codespec.config import Settings
from codespec.errors import ModelError
from codespec.types import Finish, ModelInfo, SamplingParams, SourceStats, Tokenizer, Tokens


class UnavailableError(ModelError):
    """A generator that does not answer now, through no fault of the request: it may answer later,
    and another model at once. words: see `Generator.trouble`."""

    def __init__(self, message: str, hint: str = "", words: str = "") -> None:
        super().__init__(message, hint)
        self.words = words or message


class ChangedError(ModelError):
    """A generator that is of another model by now than the one that it was opened for: open it
    again."""


@dataclass(frozen=True, slots=True)
class GeneratorPrompt:
    """A prompt for a generator, and the limits of its output.

    tokens:     (n,) the prompt in ids of the generator's tokenizer, its markers included.
    text:       the same as text, markers spelled as `Generator.text` does.
    before, after: the document's text around the cursor, as much as the prompt holds of it.
    max_tokens: most tokens of the model that the engine will use, 1 or more.
    sampling:   temperature, top-k and the like.
    stop:       stop strings: the engine ends the output before the first of them, and a generator
                may, too.
    left_s:     seconds until the deadline.
    held:       bytes that the output has to begin with; only where the generator `holds`.
    path, workspace: of the document, absolute; "" for none.
    only_reads: True where the prompt is to be prefilled ahead of a request: no output is used.
    """

    tokens: Tokens
    text: str
    before: str
    after: str
    max_tokens: int
    sampling: SamplingParams
    stop: tuple[str, ...] = ()
    left_s: Callable[[], float] = lambda: math.inf
    only_reads: bool = False
    held: bytes = b""
    path: str = ""
    workspace: str = ""


@dataclass(frozen=True, slots=True)
class GeneratorFigures:
    """Figures of a generator that drafts for itself: its passes, and its drafted tokens by
    source."""

    n_passes: int
    by_source: Mapping[str, SourceStats]


Made: TypeAlias = bytes | Sequence[int] | GeneratorFigures
Stream: TypeAlias = abc.Generator[Made, None, Finish]
"""Pieces of an output, as bytes of text or as ids, in order, and figures of it. Its return value is
the finish reason: "stop" where the text is complete, "deadline" where it was cut off and its
finished lines count, else "length"."""


class Generator:
    """A model that decodes by itself. A subclass needs `info`, `tokenizer` and `stream`.

    n_units: tokens of `tokenizer` for one token of the model, the unit of settings and requests.
    heals:   True if ids are the model's own, so that token healing pays: the engine holds back a
             half-typed word's last token, and asks once more with it where the output does not
             begin with its bytes.
    holds:   True if it can hold an output to the bytes that it has to begin with.
    reads_ahead: True if it keeps a prompt that it has read, so that `only_reads` pays.
    is_elsewhere: False if no prompt leaves this process. Else what looks like a secret is masked in
             them, and nothing is asked while one is typed.
    """

    info: ModelInfo
    tokenizer: Tokenizer
    n_units: int = 1
    heals: bool = True
    holds: bool = False
    reads_ahead: bool = False
    is_elsewhere: bool = True

    @property
    def trouble(self) -> str:
        """The reason why it is not asked at present, for people: "the server does not answer"; ""
        where it is."""
        return ""

    def watch(self, sent: Callable[[str], None]) -> None:
        """Tell `sent` every request that leaves this process from now on, as it is sent, but for
        its key."""

    def stream(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        """Stream the continuation of a prompt. Runs on a thread of its own, which may block: the
        engine closes it at the next piece after `cancelled` returns True, and it may end by itself
        then. An earlier stream may not have ended yet.

        Raises: UnavailableError; ChangedError; ModelError, with the cause and the next step.
        """
        raise NotImplementedError

    def text(self, tokens: Tokens) -> str:
        """Text of a prompt (n,), with its markers spelled out."""
        return self.tokenizer.decode(tokens).decode("utf-8", "replace")

    def close(self) -> None:
        """Free what the generator holds. No other call may follow."""


class GeneratorBackend(Backend):
    """A backend of generators. A subclass needs `open`."""

    def open(self, where: str, settings: Settings) -> Generator:
        """Open a generator, to be closed; fast, without any text from the model. settings: the
        user's. Raises: ModelError."""
        raise NotImplementedError

    def trouble(self, where: str, settings: Settings) -> str | None:
        """The reason why a generator does not answer now, for people, as one question without text
        tells it within seconds; "" where it answers; None where that cannot be asked."""
        return None

    def tokenizer(self, where: str, settings: Settings) -> Tokenizer:
        """Open a generator's tokenizer alone: nothing else of it stays open. Raises: as `open`."""
        return self.open(where, settings).tokenizer
