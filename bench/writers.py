"""Writers at a place of a Git history: people, a model, or a record of what a model wrote.

A record holds ids, under a hash of each place: neither text of the repository nor the model itself
is in it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from codespec.context.healing import hold_back, vocabulary_of
from codespec.documents.live import LiveDocument
from codespec.engine.local import LocalEngine
from codespec.errors import InputError
from codespec.native import Boundary
from codespec.requests import CompletionRequest
from codespec.types import NO_TOKENS, Context, Tokenizer, Tokens

from .history import Hunk

WORKSPACE = "replay"

Bounds = Callable[[Context], Boundary]


class TextWriter(Protocol):
    """boundary: gives the cursor of a place, None where none is inside a token.

    tells_end: True if drafters are told where the text ends, as nothing in people's text says so.
    """

    boundary: Bounds | None
    tells_end: bool

    def write(self, hunk: Hunk, document: LiveDocument) -> tuple[Context, Tokens]:
        """(what is known of the place, the tokens written there, none where nothing is known).
        document: the text before and after the hunk."""
        ...


class People:
    """The text that stands in the history."""

    boundary: Bounds | None = None  # a hunk begins a line
    tells_end = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def write(self, hunk: Hunk, document: LiveDocument) -> tuple[Context, Tokens]:
        left = document.left
        prompt = left if len(left) else np.zeros(1, np.int32)
        context = Context(prompt, left, document.right, path=hunk.path, workspace=WORKSPACE)
        return context, self.tokenizer.encode(hunk.text)


class ModelWriter:
    """The text of a model in its place: greedy tokens, up to where a suggestion ends."""

    tells_end = False

    def __init__(self, engine: LocalEngine) -> None:
        self.tokenizer = engine.tokenizer
        self.boundary: Bounds | None = bounds_of(engine.tokenizer)
        self._engine = engine

    def write(self, hunk: Hunk, document: LiveDocument) -> tuple[Context, Tokens]:
        made = self._engine.generate(
            CompletionRequest(hunk.prefix, hunk.suffix, path=hunk.path, drafters=())
        )
        context = dataclasses.replace(made.context, workspace=WORKSPACE)
        return context, np.array(made.tokens, np.int32)


class Record(msgspec.Struct):
    """The text that a model wrote. texts: ids by `key_of` their place.

    tokenizer, n_params: see `ModelInfo`. reads_suffix: True if it saw the text after the place.
    """

    model: str
    tokenizer: str
    n_params: int
    reads_suffix: bool
    texts: dict[str, list[int]]

    def save(self, path: Path) -> None:
        path.write_bytes(msgspec.json.encode(self))


def record(engine: LocalEngine, hunks: list[Hunk], on_written: Callable[[int], None]) -> Record:
    """The model's texts at these places, those left out where it writes nothing. on_written: told
    how many are done."""
    info = engine.info
    made = Record(info.name, info.tokenizer_hash, info.n_params, info.fim is not None, {})
    for i, hunk in enumerate(hunks):
        on_written(i)
        request = CompletionRequest(hunk.prefix, hunk.suffix, path=hunk.path, drafters=())
        if tokens := engine.generate(request).tokens:
            made.texts[key_of(hunk)] = list(tokens)
    return made


def key_of(hunk: Hunk) -> str:
    text = "\0".join((hunk.path, hunk.prefix, hunk.suffix))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Recorded:
    """The texts of a record, in the tokens that it was written in.

    Raises: InputError for a file that is none, or in the tokens of another model.
    """

    tells_end = False

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        try:
            self.record = msgspec.json.decode(path.read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError) as e:
            why = e.strerror if isinstance(e, OSError) else e
            raise InputError(f"{path}: {why}", "Make one: codespec bench replay --record.") from e
        if self.record.tokenizer != tokenizer.hash:
            raise InputError(
                f"{path}: in the tokens of another model", f"Name {self.record.model}'s file."
            )
        self.tokenizer = tokenizer
        self.boundary: Bounds | None = bounds_of(tokenizer)

    def write(self, hunk: Hunk, document: LiveDocument) -> tuple[Context, Tokens]:
        left, healed = document.left, b""
        if len(left) > 1 or self.record.reads_suffix:
            left, healed = hold_back(left, self.tokenizer)
        context = Context(
            document.left if len(document.left) else np.zeros(1, np.int32),
            left,
            document.right if self.record.reads_suffix else NO_TOKENS,
            healed=healed,
            path=hunk.path,
            workspace=WORKSPACE,
        )
        return context, np.array(self.record.texts.get(key_of(hunk), ()), np.int32)


def bounds_of(tokenizer: Tokenizer) -> Bounds:
    vocabulary = vocabulary_of(tokenizer)
    return lambda c: Boundary(c.left, c.healed, vocabulary, tokenizer.encode)
