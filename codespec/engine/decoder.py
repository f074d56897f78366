"""The maker of an output: passes over a target (`passes.py`), or a model that decodes by itself
(`generator.py`). All that comes before and after is the same code for both, see `local.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from codespec.drafters.lookup import Repository
from codespec.edit import Edit
from codespec.engine.documents import OpenDocuments
from codespec.engine.generation import Generation
from codespec.engine.output import Stop
from codespec.engine.reading import Reading
from codespec.engine.turns import Turns
from codespec.requests import CompletionRequest, Paused
from codespec.types import Context, Finish, ModelInfo, Tokenizer


class Decoder:
    """One model at work. One thread only. A subclass needs the attributes and `decoding`; the
    defaults serve a model that does nothing before it is asked.

    n_units: tokens of `tokenizer` for one of the model's, which settings and requests count.
    heals:   True to hold back a half-typed word from the prompt, see `context.healing`.
    """

    info: ModelInfo
    tokenizer: Tokenizer
    reading: Reading
    n_units: int = 1
    heals: bool = True

    @property
    def busy_s(self) -> float:
        """Time that the model was at work up to now, seconds."""
        return 0.0

    @property
    def saved_bytes(self) -> int:
        """Most memory for states that are put aside."""
        return 0

    def serve(
        self, documents: OpenDocuments, repository: Callable[[str], Repository | None]
    ) -> None:
        """Told once, before the first request. repository: gives the index of a workspace."""

    def begin(self) -> None:
        """Told that a turn of a request follows."""

    def decoding(
        self,
        made: Generation,
        request: CompletionRequest,
        deadline: float,
        ends: Stop,
        is_in_line: Callable[[], bool],
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[tuple[list[int], Finish]]:
        """(emitted tokens, without an end-of-generation token; why there are no more). They repeat
        the bytes of `made.context.healed` first. Yields where others may take their turn.

        deadline: on the decoder's clock, in seconds.
        ends: True if the output is complete, asked after every token with all tokens so far.
        is_in_line: True while that cannot be before a line ends.

        Raises: ModelError, InputError.
        """
        raise NotImplementedError

    def left_off(self) -> AbstractContextManager[None]:
        """Others are at work within it; afterwards the model goes on as if they had not been."""
        return nullcontext()

    def alternatives(
        self,
        request: CompletionRequest,
        best: Generation,
        edit: Edit | None,
        late: Callable[[], bool],
    ) -> tuple[Edit, ...]:
        """Further suggestions beside `edit`, the best one, as time permits."""
        return ()

    def reading_ahead(
        self,
        context: Context,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[None]:
        """Read what a request at this place would read first."""
        yield from ()

    def idle(self, interrupted: Callable[[], bool]) -> bool:
        """Do one piece of work that no request waits for; True while there is more."""
        return False

    def close(self) -> None:
        """Keep what was learned, give back memory."""
