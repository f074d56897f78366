"""People whom the user's own texts name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from codespec.index.known_text import stands_in_index
from codespec.index.reader import WorkspaceIndex
from codespec.requests import CompletionRequest
from codespec.rules.gitfiles import git_users
from codespec.rules.person_names import stands_in
from codespec.types import Tokenizer


class KnownPeople:
    """`suggest.Knows` of one request: asks git, open documents and the index, in this order, and
    each name once. Nothing is read until a name is asked for."""

    def __init__(
        self,
        request: CompletionRequest,
        tokenizer: Tokenizer,
        texts: Callable[[], Iterable[str]] = tuple,
        index: Callable[[], WorkspaceIndex | None] = lambda: None,
    ) -> None:
        """texts: other documents. index: of the workspace, None where there is none."""
        self._request = request
        self._tokenizer = tokenizer
        self._texts = texts
        self._index = index
        self._found: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        if name not in self._found:
            self._found[name] = self._is_known(name)
        return self._found[name]

    def _is_known(self, name: str) -> bool:
        request = self._request
        folder = os.path.dirname(request.path) if request.path else request.workspace
        if any(_is_part(name, user) for user in git_users(folder)):
            return True
        # The rules may look at a part of the document alone.
        own = (request.prefix, request.suffix, *(snippet.text for snippet in request.extra))
        if any(stands_in(name, text) for texts in (own, self._texts()) for text in texts):
            return True
        index = self._index()
        return index is not None and stands_in_index(name, index, self._tokenizer, request.path)


def _is_part(name: str, user: str) -> bool:
    return stands_in(name.lower(), user.lower())
