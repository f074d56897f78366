"""The maker of an output: passes over a target (`passes.py`), or a model that decodes by itself
(`generator.py`). All that comes before and after is the same code for both, see `local.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

import msgspec

from codespec.backends.model_figures import figures_of_info
from codespec.documents.open_documents import OpenDocuments
from codespec.drafters.lookup import Repository
from codespec.edit import Edit
from codespec.engine.generation import Due, Generation
from codespec.engine.output import Stop
from codespec.engine.reading import Reading
from codespec.engine.turns import Turns
from codespec.models.figures import ModelFigures
from codespec.requests import CompletionRequest, Paused
from codespec.types import Context, Finish, ModelInfo, Tokenizer

Decoded: TypeAlias = tuple[list[int], Finish]
"""Emitted tokens, without an end-of-generation token, and why there are no more."""


class Decoder:
    """One model in use. One thread only. A subclass needs the attributes and `decoding`; the
    defaults serve a model that does nothing between requests.

    n_units: tokens of `tokenizer` for one token of the model, which settings and requests count.
    has_log_probs: True if it knows the probabilities of its tokens.
    is_elsewhere: True if prompts may leave this process: they hold no secrets then.
    heals:   True to hold back a half-typed word from the prompt, see `context.healing`.
    """

    info: ModelInfo
    tokenizer: Tokenizer
    reading: Reading
    n_units: int = 1
    heals: bool = True
    has_log_probs: bool = True
    is_elsewhere: bool = False

    @property
    def trouble(self) -> str:
        """See `Generator.trouble`."""
        return ""

    @property
    def busy_s(self) -> float:
        """Seconds that the model has computed so far."""
        return 0.0

    @property
    def saved_bytes(self) -> int:
        """Most bytes for KV caches that are put aside."""
        return 0

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """See `Model.special_tokens`."""
        return {}

    @property
    def figures(self) -> ModelFigures:
        """Figures of the model."""
        n_ctx = self.info.n_ctx // self.n_units
        return msgspec.structs.replace(figures_of_info(self.info, n_ctx), n_ctx_trained=n_ctx)

    def chat_prompt(self, messages: Sequence[tuple[str, str]]) -> str | None:
        """See `Model.chat_prompt`."""
        return None

    def serve(
        self, documents: OpenDocuments, repository: Callable[[str], Repository | None]
    ) -> None:
        """Connect the drafters to their sources; called once, before the first request.
        repository: gives the index of a workspace."""

    def watch(self, shown: Callable[[str], None], sent: Callable[[str], None]) -> None:
        """Tell `shown` the text of every prompt that leaves this process, and `sent` the requests;
        see `Generator.watch`."""

    def begin(self) -> None:
        """Prepare for a turn of a request."""

    def decoding(
        self,
        made: Generation,
        due: Due,
        ends: Stop,
        is_in_line: Callable[[], bool],
        paused: Paused,
    ) -> Turns[Decoded]:
        """Decode until `ends`, the model, a limit of the request, its deadline or its cancellation
        ends the output, which repeats the bytes of `made.context.healed` first. Yields where others
        may take their turn.

        ends: True if the output is complete; asked after every token with all tokens so far.
        is_in_line: True while the output cannot be complete before a line ends.

        Raises: ModelError, InputError.
        """
        raise NotImplementedError

    def left_off(self) -> AbstractContextManager[None]:
        """A context in which other requests run; afterwards the model's state is as before."""
        return nullcontext()

    def alternatives(self, best: Generation, edit: Edit | None, due: Due) -> tuple[Edit, ...]:
        """Further suggestions beside `edit`, the best one, as time permits."""
        return ()

    def reading_ahead(
        self,
        context: Context,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[None]:
        """Prefill the prompt of a request at this place."""
        yield from ()

    def idle(self, interrupted: Callable[[], bool]) -> bool:
        """Do one piece of work that no request waits for. Returns True while there is more."""
        return False

    def close(self) -> None:
        """Save learned state and free the memory."""
