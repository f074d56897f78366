"""What an editor asks next, known from the key before it.

Editors wait a moment after a key before they ask, some tens of milliseconds. Those that ask by
themselves do so after each key, about the text that the key left.
"""

from __future__ import annotations

from .changes import CLOSED
from .documents import Snapshot


class Foresight:
    """Of one document."""

    def __init__(self) -> None:
        self._foreseen: Snapshot | None = None  # since the last key, until something is asked
        self._was_right = False

    def typed(self, now: Snapshot) -> Snapshot | None:
        """A key left this text. What is likely to be asked about; None where nothing is: what the
        last key left was not, or something else."""
        if self._foreseen is not None and _closes(self._foreseen, now):
            now = now.back(1)
        else:
            self._was_right = self._was_right and self._foreseen is None
        self._foreseen = now
        return now if self._was_right else None

    def asked(self, now: Snapshot, *, invoked: bool) -> None:
        """invoked: not by the editor itself."""
        foreseen, self._foreseen = self._foreseen, None
        self._was_right = not invoked and foreseen is not None and _is_same(foreseen, now)


def _closes(before: Snapshot, now: Snapshot) -> bool:
    """Whether an editor has closed what was just typed, with a change of its own."""
    is_next = now.prefix[:-1] == before.prefix and now.suffix == before.suffix
    return is_next and now.prefix[-2:] in CLOSED


def _is_same(a: Snapshot, b: Snapshot) -> bool:
    return (a.prefix, a.suffix, a.selected) == (b.prefix, b.suffix, b.selected)
