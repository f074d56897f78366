"""Served models as generators: with their own vocabulary, or as text alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from codespec.backends.base import Model
from codespec.backends.byte_tokens import TextGenerator
from codespec.backends.generators import Generator, GeneratorPrompt, Stream
from codespec.backends.remote.connection import AbandonedError, ServerClient
from codespec.backends.remote.control_texts import PromptSpeller, known_controls
from codespec.backends.remote.failures import (
    CircuitBreaker,
    ServerError,
    ServerFailure,
    guarded,
)
from codespec.backends.remote.server_kind import Piece, Served, ServerKind, ServerRequest
from codespec.context.families import Family
from codespec.types import Tokens

DEFAULT_N_CTX = 2048


class _FromServer(Generator):
    """A generator whose output a server makes."""

    reads_ahead = True

    def _connect(self, client: ServerClient, kind: ServerKind, served: Served) -> None:
        self._client, self._kind, self._served = client, kind, served
        self._breaker = CircuitBreaker()

    def _prompt(self, prompt: GeneratorPrompt) -> str | list[int]:
        """The prompt as the server is sent it."""
        return prompt.text

    def _piece(self, piece: Piece) -> bytes | Sequence[int]:
        """A piece as the engine takes it. Raises: ServerError for ids that are none."""
        return piece.text.encode()

    @property
    def trouble(self) -> str:
        return self._breaker.trouble

    def stream(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        return guarded(
            lambda: self._asked(prompt, cancelled), self._breaker, cancelled, prompt.left_s
        )

    def _asked(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        asked = ServerRequest(
            self._served.model,
            self._prompt(prompt),
            prompt.max_tokens,
            prompt.sampling,
            prompt.only_reads,
        )
        route, body = self._kind.request(asked)
        try:
            for line in self._client.lines(route, body, cancelled):
                piece = self._kind.piece(line)
                if piece is None:
                    continue
                if said := self._piece(piece):
                    yield said
                if piece.finish is not None:
                    return piece.finish
        except AbandonedError:
            return "cancelled"
        raise ServerError(ServerFailure.CUT_OFF)

    def close(self) -> None:
        self._client.close()


class TextFromServer(_FromServer, TextGenerator):
    """A served model whose vocabulary is unknown: text both ways."""

    def __init__(
        self, client: ServerClient, kind: ServerKind, served: Served, family: Family | None
    ) -> None:
        n_ctx = served.n_ctx or DEFAULT_N_CTX
        super().__init__(served.model, kind.name, n_ctx, served.n_params, family)
        self._connect(client, kind, served)
        markers = {token: text for text, token in self._bytes.markers.items()}
        self._speller = PromptSpeller(self._bytes, markers, known_controls())

    def text(self, tokens: Tokens) -> str:
        return self._speller.text(tokens.tolist())


class TokensFromServer(_FromServer):
    """A served model whose vocabulary is known: ids where the server takes them, else text."""

    def __init__(
        self, client: ServerClient, kind: ServerKind, served: Served, vocabulary: Model
    ) -> None:
        self._connect(client, kind, served)
        self._vocabulary = vocabulary
        self.tokenizer = vocabulary.tokenizer
        known = vocabulary.info
        self.info = dataclasses.replace(
            known,
            name=served.model,
            path="",
            n_ctx=served.n_ctx or known.n_ctx or DEFAULT_N_CTX,
            n_params=served.n_params,
            file_bytes=0,
            backend=kind.name,
        )
        special = vocabulary.special_tokens
        markers = {token: text for text, token in special.items()}
        self._speller = PromptSpeller(self.tokenizer, markers, special)

    def text(self, tokens: Tokens) -> str:
        return self._speller.text(tokens.tolist())

    def _prompt(self, prompt: GeneratorPrompt) -> str | list[int]:
        return prompt.tokens.tolist() if self._served.takes_ids else prompt.text

    def _piece(self, piece: Piece) -> bytes | Sequence[int]:
        if not piece.ids:
            return piece.text.encode()
        if not all(0 <= token < self.info.n_vocab for token in piece.ids):
            raise ServerError(ServerFailure.NOT_UNDERSTOOD, "ids that its vocabulary lacks")
        return piece.ids

    def close(self) -> None:
        super().close()
        self._vocabulary.close()
