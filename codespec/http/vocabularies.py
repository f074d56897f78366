"""The vocabulary of the model that completes, opened in this process when it is first asked for: to
tokenize a text takes no time of the daemon's worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from codespec.backends import registry
from codespec.config import ModelSettings
from codespec.context.special_tokens import encoded, specials_in
from codespec.errors import InputError
from codespec.http.access import Refused
from codespec.requests import ChatMessage
from codespec.system.files import FileState, state_of

if TYPE_CHECKING:  # native code is imported when a vocabulary is opened
    from codespec.backends.base import Model

_T = TypeVar("_T")


class Vocabulary:
    """A model's tokens, and the form of its chats."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @cached_property
    def _special_tokens(self) -> dict[str, int]:
        return dict(self._model.special_tokens)

    @cached_property
    def _spellings(self) -> dict[int, bytes]:
        return {token: spelling.encode() for spelling, token in self._special_tokens.items()}

    @property
    def file_name(self) -> str:
        """Name of the model's file, without its folder."""
        return Path(self._model.info.path).name

    @property
    def chat_template(self) -> str:
        return self._model.chat_template

    def tokens(self, text: str, *, begins: bool, reads_special: bool) -> list[int]:
        """The tokens of a text. begins: True to put first the one that a text begins with, where
        the model has one. reads_special: True to read special tokens that the text spells."""
        special = self._special_tokens if reads_special else {}
        tokens = encoded(specials_in(text, special), special, self._model.tokenizer).tolist()
        first = self._model.info.bos
        if not begins or first is None or tokens[:1] == [first]:
            return tokens
        return [first, *tokens]

    def piece(self, token: int) -> bytes:
        """The bytes of a token, or the spelling of a special one."""
        return self._spellings.get(token) or self._model.tokenizer.piece(token)

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens. Raises: InputError for one that the vocabulary does not have."""
        n_vocab = self._model.info.n_vocab
        if tokens and max(tokens) >= n_vocab:
            why = f"{max(tokens)} is no token of this model; those go up to {n_vocab - 1}"
            raise InputError(why, "Send tokens of the model that completes.")
        return b"".join(map(self.piece, tokens)).decode("utf-8", "replace")

    def chat_prompt(self, messages: Sequence[ChatMessage]) -> str:
        """The prompt of a chat as text. Raises: InputError for a model without a chat template."""
        prompt = self._model.chat_prompt([(said.role, said.text) for said in messages])
        if prompt is None:
            why = f"{self._model.info.name} has no chat template that is known"
            raise InputError(why, "Choose a model that was trained on chats.")
        return prompt

    def close(self) -> None:
        self._model.close()


class Vocabularies:
    """Opens the vocabulary of the model in the settings, and asks it, on one thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "vocabulary")
        self._opened: tuple[str, FileState, Vocabulary] | None = None

    async def ask(self, settings: ModelSettings, question: Callable[[Vocabulary], _T]) -> _T:
        """The answer to a question about the vocabulary of this model. Raises: Refused for one that
        tells nothing of its vocabulary; ModelError."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._ask, settings, question)

    def _ask(self, settings: ModelSettings, question: Callable[[Vocabulary], _T]) -> _T:
        where = registry.target_of(settings)
        if registry.decodes_by_itself(where):
            raise Refused(501, "the model runs elsewhere, and tells nothing of its vocabulary")
        state = state_of(where)
        if self._opened is None or self._opened[:2] != (where, state):
            self._free()
            self._opened = where, state, Vocabulary(registry.open_vocabulary(where))
        return question(self._opened[2])

    def close(self) -> None:
        """Free the memory, once the last question is answered."""
        self._thread.shutdown(cancel_futures=True)
        self._free()

    def _free(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened[2].close()
