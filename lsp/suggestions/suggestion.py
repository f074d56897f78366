"""A suggestion: the text that the model suggests at one place of a document."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.edit import Edit
from codespec.usage.suppression import PlaceKind

from ..documents import Snapshot


@dataclass(slots=True)
class Tally:
    """Counts of what became of one suggestion, in however many offers it was shown on the way.

    kind: kind of its place; None where the user asked for it.
    chance: probability that it is kept; 0 where none was computed.
    is_offered: True once it was in an answer.
    first: id of the offer that was shown first; "" before.
    n_accepted, n_retained: characters, over all offers.
    """

    kind: PlaceKind | None = None
    chance: float = 0.0
    is_offered: bool = False
    first: str = ""
    n_accepted: int = 0
    n_retained: int = 0


class Suggestion:
    """Insertions at one place, best first; while its generation runs, the text so far.

    base: the document's text and version that the edits belong to.
    text: all text so far, as the model generated it; compared with what is typed, not shown.
    lines: its finished lines, fit to be shown; None for none.
    done: True once `edits` is final.
    is_cut: True if the generation was ended before the model would have stopped.
    is_restrained: True if lines that are not likely enough were left out.
    has_alternatives: True if the model was asked for several candidates.
    begun_early_s: the event loop's time at which it was begun before any request; None without
        that, and from the first request on.
    """

    def __init__(self, base: Snapshot) -> None:
        self.base = base
        self.edits: tuple[Edit, ...] = ()
        self.text = ""
        self.lines: Edit | None = None
        self.reason = ""
        self.engine_ms = 0.0
        self.model_ms = 0.0
        self.done = False
        self.is_cut = False
        self.is_restrained = False
        self.has_alternatives = False
        self.begun_early_s: float | None = None
        self.tally = Tally()

    @property
    def is_asked_for(self) -> bool:
        """True if the user asked for it."""
        return self.tally.kind is None

    def serves(self, invoked: bool, wants_more: bool, is_manual: bool) -> bool:
        """True if it may answer a request. invoked: somebody asked, wants_more: and not only for
        what a mark said is ready. is_manual: nothing is suggested unasked."""
        if wants_more and self.is_restrained:
            return False
        return invoked or not is_manual or self.is_asked_for

    @property
    def is_complete(self) -> bool:
        """True if generating again would give the user no more to choose from."""
        return self.has_alternatives and not self.is_cut

    @property
    def is_below(self) -> bool:
        """True if it adds nothing to the cursor's line."""
        shown = self.edits[0] if self.edits else self.lines
        is_below = shown is not None and shown.text.startswith("\n")
        return is_below and bool(line_before(self.base.prefix).strip())


def line_before(prefix: str) -> str:
    """The cursor's line up to the cursor."""
    return prefix[prefix.rfind("\n") + 1 :]
