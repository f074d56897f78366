"""A backend in one file, as an installed package would bring it: a generator of text alone."""

from __future__ import annotations

import time
from collections.abc import Callable

from codespec.backends.byte_tokens import TextGenerator
from codespec.backends.generators import Generator, GeneratorBackend, GeneratorPrompt, Stream
from codespec.config import Settings
from codespec.context.families import FAMILIES
from codespec.errors import ModelError

TEXT = "first()\n    second()\nthird()\n"
WAYS = "slow", "short", "broken", "astray", "endless", "shown"


class Scribe(TextGenerator):
    """Writes `TEXT` a byte at a time. A comment in the document says in which way:

    slow:    never more than a byte, until it is cancelled.
    short:   three bytes.
    broken:  fails behind the first byte; astray: with an exception that is not ours.
    endless: goes on with `x = 1` until it is cancelled.
    shown:   writes its prompt.
    """

    def __init__(self) -> None:
        family = next(f for f in FAMILIES if f.prefix == "<|fim_prefix|>")
        super().__init__("scribe 1", "scribe", family=family)

    def stream(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        way = next((way for way in WAYS if f"# {way}\n" in prompt.before), "quick")
        text = prompt.text if way == "shown" else TEXT
        while way == "endless" and not cancelled():
            yield b"x = 1\n"
        for i, byte in enumerate(text.encode()):
            if i == 1 and way == "broken":
                raise ModelError("the scribe broke its pen", "Give it another one.")
            if i == 1 and way == "astray":
                raise ValueError(prompt.text)
            if i == 3 and way == "short":
                return "length"
            while i == 1 and way == "slow" and not cancelled():
                time.sleep(0.001)
            yield bytes([byte])
        return "stop"


class ScribeBackend(GeneratorBackend):
    name = "scribe"

    def open(self, where: str, settings: Settings) -> Generator:
        return Scribe()


BACKEND = ScribeBackend()
