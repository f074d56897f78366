"""A server's copy of a workspace, brought to the state of the index here.

What is sent: the tokens that the index has, after its rules of what to leave out; for each file an
opaque id. No path, and no text of a file that is not indexed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from codespec.backends.remote.connection import ServerAnswer, ServerClient
from codespec.backends.remote.failures import ServerError, ServerFailure, of_status
from codespec.backends.remote.server_session import HEADER, files_of
from codespec.backends.remote.token_batches import (
    PROTOCOL,
    batches,
    is_sendable,
    key_of,
    packed,
    state_of,
)
from codespec.index.reader import WorkspaceIndex
from codespec.types import Tokens

_ASK_S = 30.0
_MOST_KEYS = 50_000
"""Most keys of a question, and files of a change."""
_MOST_TRIES = 4

T = TypeVar("T")


class WorkspaceRefusedError(Exception):
    """The server does not take the workspace, which asking again does not change. The argument
    says why, for people."""


class UploadReport(NamedTuple):
    """Count of what a server was sent. n_contents, n_tokens: of batches; n_bytes: of all bodies;
    n_asked: requests."""

    n_contents: int = 0
    n_tokens: int = 0
    n_bytes: int = 0
    n_asked: int = 0

    def and_asked(self, n_bytes: int) -> UploadReport:
        return self._replace(n_bytes=self.n_bytes + n_bytes, n_asked=self.n_asked + 1)


class _Version(msgspec.Struct):
    protocol: int
    vocabularies: list[str]
    max_files: int


class _State(msgspec.Struct):
    state: str


class _Missing(msgspec.Struct):
    missing: list[str]


class _Conflict(msgspec.Struct):
    state: str | None = None
    missing: list[str] | None = None


class WorkspaceUpload:
    """One workspace on one server. One thread only.

    name:      opaque id of the workspace, see `session_of`.
    on_batch:  called with the bytes of each batch that was sent, before the next one.
    cancelled: once it returns True, AbandonedError is raised.
    """

    def __init__(
        self,
        client: ServerClient,
        name: str,
        on_batch: Callable[[int], None] = lambda n_bytes: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client = client
        self._name = name
        self._route = f"/codespec/workspaces/{name}"
        self._on_batch = on_batch
        self._cancelled = cancelled
        self._there: dict[str, str] = {}
        self._keys: dict[str, str] = {}  # of contents, by the index's own
        self._report = UploadReport()

    def is_taken(self, vocabulary: str) -> bool:
        """True if the server takes workspaces in this vocabulary. Raises: as `bring`."""
        answer = self._ask("/codespec/version")
        if answer.status in (404, 405):
            return False
        self._checked(answer)
        try:
            version = msgspec.json.decode(answer.body, type=_Version)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        return version.protocol == PROTOCOL and vocabulary in version.vocabularies

    def is_there(self) -> bool:
        """True if the server is in the state that it was brought to last. Raises: as `bring`."""
        return self._decoded(self._ask(self._route), _State).state == state_of(self._there)

    def bring(self, index: WorkspaceIndex) -> UploadReport:
        """Bring the server to the state of the index, by what it lacks.

        Raises: ServerError, AbandonedError; WorkspaceRefusedError.
        """
        self._report = UploadReport()
        files = dict(self._files(index))
        for _ in range(_MOST_TRIES):
            if not self.is_there():
                self._there = {}
            if files == self._there:
                break
            wanted = set(files.values()) - set(self._there.values())
            self._send(index, self._missing(wanted))
            if self._change(index, files):
                break
        else:
            raise ServerError(ServerFailure.BROKEN, "it does not keep the workspace")
        return self._report

    def _files(self, index: WorkspaceIndex) -> Iterator[tuple[str, str]]:
        """(opaque id, key of its content) of each file that can be sent."""
        of_index = index.contents
        self._keys = {own: self._keys[own] for own in of_index.values() if own in self._keys}
        names = files_of(index.root, of_index)
        for path, own in of_index.items():
            if own not in self._keys:
                parts = index.content(own)
                self._keys[own] = key_of(parts) if is_sendable(parts) else ""
            if path in names and self._keys[own]:
                yield names[path], self._keys[own]

    def _missing(self, keys: Iterable[str]) -> list[str]:
        """Those of these contents that the server lacks."""
        found: list[str] = []
        for some in _in_pieces(sorted(keys)):
            answer = self._ask("/codespec/contents/known", {"keys": some})
            found += self._decoded(answer, _Missing).missing
        return found

    def _send(self, index: WorkspaceIndex, keys: Iterable[str]) -> None:
        own = {key: own for own, key in self._keys.items()}
        contents: Iterator[tuple[str, list[Tokens]]] = (
            (key, index.content(own[key])) for key in keys if key in own
        )
        for batch in batches(contents):
            body = packed(batch)
            self._checked(self._ask("/codespec/contents", body))
            n_tokens = sum(len(part) for parts in batch.values() for part in parts)
            self._report = self._report._replace(
                n_contents=self._report.n_contents + len(batch),
                n_tokens=self._report.n_tokens + n_tokens,
            )
            self._on_batch(len(body))

    def _change(self, index: WorkspaceIndex, files: Mapping[str, str]) -> bool:
        """Tell the server what changed. Returns: False where it is in another state than was
        thought, or lacks a content: to be tried again."""
        changed = {file: key for file, key in files.items() if self._there.get(file) != key}
        left = [file for file in self._there if file not in files]
        for some in _in_pieces([*left, *changed]) or [[]]:
            new = {file: changed[file] for file in some if file in changed}
            gone = [file for file in some if file not in changed]
            body = {"base": state_of(self._there), "files": new, "gone": gone}
            answer = self._ask(self._route, body)
            if answer.status == 409:
                self._send(index, self._decoded(answer, _Conflict).missing or [])
                return False
            state = self._decoded(answer, _State).state
            self._there.update(new)
            for file in gone:
                del self._there[file]
            if state != state_of(self._there):
                return False
        return True

    def _ask(self, route: str, body: object = None) -> ServerAnswer:
        n_bytes = len(body if isinstance(body, bytes) else msgspec.json.encode(body))
        self._report = self._report.and_asked(n_bytes if body is not None else 0)
        return self._client.ask(
            route,
            body,
            timeout_s=_ASK_S,
            cancelled=self._cancelled,
            headers={HEADER: self._name},
        )

    def _checked(self, answer: ServerAnswer) -> ServerAnswer:
        """Raises: ServerError, WorkspaceRefusedError for an answer that is an error."""
        if answer.status == 413:
            raise WorkspaceRefusedError("it is larger than the server takes")
        if answer.status == 422:
            raise WorkspaceRefusedError("the server does not take its form")
        if answer.status not in (200, 409):
            raise of_status(answer.status, answer.headers.get("retry-after", ""))
        return answer

    def _decoded(self, answer: ServerAnswer, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self._checked(answer).body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ServerError(ServerFailure.NOT_UNDERSTOOD, "no state of a workspace") from None


def _in_pieces(rows: list[str]) -> list[list[str]]:
    return [rows[i : i + _MOST_KEYS] for i in range(0, len(rows), _MOST_KEYS)]
