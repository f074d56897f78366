"""A served model as a generator."""

from __future__ import annotations

from collections.abc import Callable

from codespec.backends.byte_tokens import TextGenerator
from codespec.backends.generators import GeneratorPrompt, Stream
from codespec.backends.remote.connection import AbandonedError, ServerClient
from codespec.backends.remote.failures import (
    CircuitBreaker,
    ServerError,
    ServerFailure,
    guarded,
)
from codespec.backends.remote.server_kind import Served, ServerKind, ServerRequest
from codespec.context.families import Family

DEFAULT_N_CTX = 2048


class TextFromServer(TextGenerator):
    """A served model whose vocabulary is unknown: text both ways."""

    def __init__(
        self, client: ServerClient, kind: ServerKind, served: Served, family: Family | None
    ) -> None:
        n_ctx = served.n_ctx or DEFAULT_N_CTX
        super().__init__(served.model, kind.name, n_ctx, served.n_params, family)
        self._client, self._kind, self._served = client, kind, served
        self._breaker = CircuitBreaker()

    @property
    def trouble(self) -> str:
        return self._breaker.trouble

    def stream(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        return guarded(
            lambda: self._asked(prompt, cancelled), self._breaker, cancelled, prompt.left_s
        )

    def _asked(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        asked = ServerRequest(self._served.model, prompt.text, prompt.max_tokens, prompt.sampling)
        route, body = self._kind.request(asked)
        try:
            for line in self._client.lines(route, body, cancelled):
                piece = self._kind.piece(line)
                if piece is None:
                    continue
                if piece.text:
                    yield piece.text.encode()
                if piece.finish is not None:
                    return piece.finish
        except AbandonedError:
            return "cancelled"
        raise ServerError(ServerFailure.CUT_OFF)

    def close(self) -> None:
        self._client.close()
