"""Prediction of an editor's next request, from the key before it.

Editors wait a moment after a key before they ask, some tens of milliseconds. Those that ask by
themselves do so after each key, about the text that the key left.
"""

from __future__ import annotations

from ..changes import CLOSED
from ..documents import Snapshot


class NextRequest:
    """The next request of one document."""

    def __init__(self) -> None:
        self._predicted: Snapshot | None = None  # since the last key, until something is asked
        self._was_right = False

    def after_key(self, now: Snapshot) -> Snapshot | None:
        """The text that is likely asked about, after a key left the text `now`; None where no
        request is likely: the last key's prediction was wrong, or was not asked about."""
        if self._predicted is not None and _closes(self._predicted, now):
            now = now.back(1)
        else:
            self._was_right = self._was_right and self._predicted is None
        self._predicted = now
        return now if self._was_right else None

    def asked(self, now: Snapshot, *, invoked: bool) -> None:
        """A request came. `invoked`: by the user, not by the editor itself."""
        predicted, self._predicted = self._predicted, None
        self._was_right = not invoked and predicted is not None and _is_same(predicted, now)


def _closes(before: Snapshot, now: Snapshot) -> bool:
    """True if the editor closed the bracket or quote that was just typed, by a second change."""
    is_next = now.prefix[:-1] == before.prefix and now.suffix == before.suffix
    return is_next and now.prefix[-2:] in CLOSED


def _is_same(a: Snapshot, b: Snapshot) -> bool:
    return (a.prefix, a.suffix, a.selected) == (b.prefix, b.suffix, b.selected)
