"""The suggestions that were made, for the requests that they still answer."""

from __future__ import annotations

from collections import OrderedDict, deque

from ..documents import Snapshot
from .suggestion import Suggestion
from .typed_along import Rest, rest_of

MAX_DOCUMENTS = 32
MAX_SUGGESTIONS = 24
"""Upper bound on the suggestions of one document; the oldest goes."""
MAX_CHARS = 1 << 20
"""Upper bound on the texts around all suggestions of a document, unless that leaves under four."""


class KeptSuggestions:
    """The suggestions of all documents. No clock, no tasks."""

    def __init__(self) -> None:
        self._by_uri: OrderedDict[str, deque[Suggestion]] = OrderedDict()

    def add(self, suggestion: Suggestion) -> None:
        """Keep a suggestion, as the newest of its document."""
        uri = suggestion.base.uri
        known = self._by_uri.pop(uri, None)
        self._by_uri[uri] = suggestions = deque() if known is None else known
        suggestions.appendleft(suggestion)
        n_chars = len(suggestion.base.prefix) + len(suggestion.base.suffix)
        while len(suggestions) > max(4, min(MAX_SUGGESTIONS, MAX_CHARS // (n_chars + 1))):
            suggestions.pop()
        if len(self._by_uri) > MAX_DOCUMENTS:
            self._by_uri.popitem(last=False)

    def remove(self, suggestion: Suggestion) -> None:
        known = self._by_uri.get(suggestion.base.uri)
        if known is not None and suggestion in known:
            known.remove(suggestion)

    def forget(self, uri: str) -> None:
        """Drop the suggestions of a document."""
        self._by_uri.pop(uri, None)

    def clear(self) -> None:
        self._by_uri.clear()

    def find(self, now: Snapshot) -> Rest | None:
        """The rest of the newest suggestion that `now` fits; None where it fits none. An empty
        suggestion fits only its own place."""
        for suggestion in self._by_uri.get(now.uri, ()):
            rest = rest_of(suggestion, now)
            if rest is not None:
                return rest
        return None
