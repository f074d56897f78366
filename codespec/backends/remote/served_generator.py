"""Served models as generators: with their own vocabulary, or as text alone."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cached_property

from codespec.backends.base import Model
from codespec.backends.byte_tokens import TextGenerator
from codespec.backends.generators import (
    ChangedError,
    Generator,
    GeneratorFigures,
    GeneratorPrompt,
    Stream,
)
from codespec.backends.remote.beginnings import Beginnings
from codespec.backends.remote.connection import AbandonedError, ServerClient
from codespec.backends.remote.control_texts import PromptSpeller, known_controls
from codespec.backends.remote.failures import (
    CircuitBreaker,
    ServerError,
    ServerFailure,
    guarded,
)
from codespec.backends.remote.server_kind import Piece, Served, ServerKind, ServerRequest
from codespec.backends.remote.workspace_sharing import WorkspaceSharing
from codespec.context.families import Family
from codespec.types import Finish, Tokens

DEFAULT_N_CTX = 2048
LONG_S = 60.0
"""Seconds without a request after which a server may have got another model unnoticed."""
_OF_LOAD = (ServerFailure.SILENT, ServerFailure.BUSY, ServerFailure.REFUSED)
"""Failures of a server that goes on with the same model."""


class _FromServer(Generator):
    """A generator whose output a server makes."""

    reads_ahead = True

    def _connect(self, client: ServerClient, kind: ServerKind, served: Served) -> None:
        self._client, self._kind, self._served = client, kind, served
        self.has_same: Callable[[Callable[[], bool]], bool] = lambda cancelled: True
        """Asks the server whether it has the model still that this was opened for."""
        self._asked_s = time.monotonic()
        self._is_doubtful = False
        self._breaker = CircuitBreaker()
        self._sharing: WorkspaceSharing | None = None

    def _prompt(self, prompt: GeneratorPrompt) -> str | list[int]:
        """The prompt as the server is sent it."""
        return prompt.text

    def _piece(self, piece: Piece) -> bytes | Sequence[int]:
        """A piece as the engine takes it. Raises: ServerError for ids that are none."""
        return piece.text.encode()

    @property
    def trouble(self) -> str:
        return self._breaker.trouble

    def watch(self, sent: Callable[[str], None]) -> None:
        self._client.on_sent = sent

    def stream(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        return guarded(
            lambda: self._of_same(prompt, cancelled), self._breaker, cancelled, prompt.left_s
        )

    def _of_same(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        """The stream; of no other model, whose ids and markers are others, where the server was
        started again meanwhile. Raises: ServerError, ChangedError."""
        now = time.monotonic()
        try:
            if self._is_doubtful or now - self._asked_s > LONG_S:
                self._is_doubtful = True
                if not self.has_same(cancelled):
                    raise ChangedError("the server has another model by now", "Ask again.")
                self._is_doubtful = False
            self._asked_s = now
            return (yield from self._asked(prompt, cancelled))
        except AbandonedError as e:
            return _abandoned(e, prompt.left_s)
        except ServerError as e:
            self._is_doubtful |= e.failure not in _OF_LOAD
            raise

    def _request(self, prompt: GeneratorPrompt) -> ServerRequest:
        return ServerRequest(
            self._served,
            self._prompt(prompt),
            prompt.max_tokens,
            prompt.sampling,
            self.info.n_ctx // self.n_units,
            prompt.only_reads,
            path=prompt.path,
            workspace=prompt.workspace,
            left_s=prompt.left_s,
        )

    def _asked(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        return self._said(self._request(prompt), cancelled)

    def _said(self, asked: ServerRequest, cancelled: Callable[[], bool]) -> Stream:
        route, body = self._kind.request(asked)
        headers = self._kind.headers(asked)
        if self._sharing is not None:
            headers = {**headers, **self._sharing.headers(asked.workspace, asked.path)}
        try:
            with closing(self._client.lines(route, body, cancelled, headers)) as lines:
                for line in lines:
                    piece = self._kind.piece(line)
                    if piece is None:
                        continue
                    if piece.figures is not None:
                        yield piece.figures
                    if said := self._piece(piece):
                        yield said
                    if piece.finish is not None:
                        return piece.finish
        except AbandonedError as e:
            return _abandoned(e, asked.left_s)
        raise ServerError(ServerFailure.CUT_OFF)

    def disconnect(self) -> None:
        """Close the connections to the server; the tokenizer can still be used."""
        if self._sharing is not None:
            self._sharing.close()
        self._client.close()

    def close(self) -> None:
        self.disconnect()


def _abandoned(error: AbandonedError, left_s: Callable[[], float]) -> Finish:
    """The end of a stream that nobody waits for. Raises: ServerError where the server had not
    begun to answer by the deadline."""
    if not error.has_heard and left_s() <= 0:
        raise ServerError(ServerFailure.SILENT) from None
    return "cancelled"


class TextFromServer(_FromServer, TextGenerator):
    """A served model whose vocabulary is unknown: text both ways."""

    def __init__(
        self, client: ServerClient, kind: ServerKind, served: Served, family: Family | None
    ) -> None:
        n_ctx = served.n_ctx or DEFAULT_N_CTX
        super().__init__(served.title, kind.name, n_ctx, served.n_params, family)
        self._connect(client, kind, served)
        markers = {token: text for text, token in self._bytes.markers.items()}
        self._speller = PromptSpeller(self._bytes, markers, known_controls())

    def text(self, tokens: Tokens) -> str:
        return self._speller.text(tokens.tolist())


class TokensFromServer(_FromServer):
    """A served model whose vocabulary is known: ids where the server takes them, else text."""

    def __init__(
        self,
        client: ServerClient,
        kind: ServerKind,
        served: Served,
        vocabulary: Model,
        sharing: WorkspaceSharing | None = None,
    ) -> None:
        self._connect(client, kind, served)
        self._sharing = sharing
        self._vocabulary = vocabulary
        self.tokenizer = vocabulary.tokenizer
        known = vocabulary.info
        self.info = dataclasses.replace(
            known,
            name=served.title,
            path="",
            n_ctx=served.n_ctx or known.n_ctx or DEFAULT_N_CTX,
            n_params=served.n_params,
            file_bytes=0,
            backend=kind.name,
        )
        self.holds = served.takes_ids and (kind.hold_texts or kind.hold_tokens)
        special = vocabulary.special_tokens
        markers = {token: text for text, token in special.items()}
        self._speller = PromptSpeller(self.tokenizer, markers, special)

    def text(self, tokens: Tokens) -> str:
        ids = tokens.tolist()
        begins = self._kind.begins_texts and ids[:1] == [self.info.bos]
        return self._speller.text(ids[1:] if begins else ids)

    def _prompt(self, prompt: GeneratorPrompt) -> str | list[int]:
        return prompt.tokens.tolist() if self._served.takes_ids else prompt.text

    def _piece(self, piece: Piece) -> bytes | Sequence[int]:
        if not piece.ids:
            return piece.text.encode()
        if not all(0 <= token < self.info.n_vocab for token in piece.ids):
            raise ServerError(ServerFailure.NOT_UNDERSTOOD, "ids that its vocabulary lacks")
        return piece.ids

    def _asked(self, prompt: GeneratorPrompt, cancelled: Callable[[], bool]) -> Stream:
        asked = self._request(prompt)
        if not prompt.held:
            return self._said(asked, cancelled)
        if self._kind.hold_texts:
            # Bytes of a half character are no text: what follows them is compared by the engine.
            held = prompt.held.decode("utf-8", "ignore")
            return self._said(dataclasses.replace(asked, held=held), cancelled)
        return self._token_by_token(asked, prompt.held, cancelled)

    def _token_by_token(
        self, asked: ServerRequest, held: bytes, cancelled: Callable[[], bool]
    ) -> Stream:
        """The output that begins with `held`: each of its first tokens is chosen among those that
        fit, as `context.healing` does with a target's."""
        while held:
            allowed = self._beginnings.fitting(held)
            one = dataclasses.replace(asked, max_tokens=1, allowed=allowed)
            said = list[int]()
            for piece in self._said(one, cancelled):
                if isinstance(piece, bytes):
                    said += self.tokenizer.encode(piece).tolist()
                elif not isinstance(piece, GeneratorFigures):
                    said += piece
            if cancelled() or not said:
                return "stop"
            if said[0] not in allowed or len(said) != 1:  # it would be asked without end
                raise ServerError(ServerFailure.NOT_UNDERSTOOD, "ids that it was not given")
            yield said
            held = held[len(self.tokenizer.piece(said[0])) :]
            prompt = [*asked.prompt, *said]
            asked = dataclasses.replace(
                asked, prompt=prompt, max_tokens=max(1, asked.max_tokens - 1)
            )
        return (yield from self._said(asked, cancelled))

    @cached_property
    def _beginnings(self) -> Beginnings:
        return Beginnings(self.tokenizer, self.info.n_vocab)

    def close(self) -> None:
        super().close()
        self._vocabulary.close()
