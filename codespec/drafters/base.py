"""The contract of drafters: what proposes continuations for a target to verify.

A drafter is one file: a subclass of `Drafter` that says its name, its sources and what it can, and
overrides what it needs; the defaults of all other methods serve one that can do no more. It may be
wrong in any way: verification keeps the output exact (Leviathan et al. 2023), and a chain reaches
it through a guard alone (`guard.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from codespec.native import Drafting
from codespec.types import (
    NO_DRAFT,
    Context,
    Draft,
    PassState,
    Source,
    SourceStats,
    Tokens,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Traits:
    """Abilities of a drafter, and so which of its methods are called.

    takes_time: asking it takes as long as a part of a pass, so it is asked only where `plan`
        promises more than what is there already, and left alone while it `rests`.
    cuts:      it knows what passes cost, and cuts its own drafts to what pays.
    reads:     it may have to read a prompt, which takes as long as many passes (`heed`, `has_room`,
        `wants_prompt`, `read_ahead`).
    is_native: native code can draft in its place, see `native`.
    """

    takes_time: bool = False
    cuts: bool = False
    reads: bool = False
    is_native: bool = False


class Plan(NamedTuple):
    """n_tokens: what it would draft. rate: expected tokens per millisecond, its own time
    included."""

    n_tokens: int
    rate: float


@dataclass(slots=True)
class Counters:
    """Totals of one drafter. n_asked: proposals. by_source: tokens drafted and accepted."""

    n_asked: int = 0
    by_source: dict[Source, SourceStats] = field(default_factory=dict[Source, SourceStats])

    @property
    def n_drafted(self) -> int:
        return sum(stats.n_drafted for stats in self.by_source.values())

    @property
    def n_accepted(self) -> int:
        return sum(stats.n_accepted for stats in self.by_source.values())

    def add(self, source: Source, n_drafted: int, n_accepted: int) -> None:
        stats = self.by_source.get(source)
        if stats is None:
            stats = self.by_source[source] = SourceStats()
        stats.n_drafted += n_drafted
        stats.n_accepted += n_accepted

    def count(self, draft: Draft, path: Sequence[int]) -> None:
        """Count a draft of which the nodes of `path` were accepted."""
        sources = draft.sources.tolist()
        accepted = [sources[node] for node in path]
        for source in dict.fromkeys(sources):
            self.add(Source.of(source), sources.count(source), accepted.count(source))


class Drafter:
    """Proposes continuations of one target's output. One thread only."""

    name: str = "drafter"
    traits: Traits = Traits()

    @cached_property
    def counters(self) -> Counters:
        """Totals since it was made, kept by whoever asks it."""
        return Counters()

    def begin(self, context: Context) -> None:
        """A new request starts. Called when the drafter is first asked."""

    def propose(self, state: PassState, n_max: int) -> Draft:
        """Draft at most `n_max` nodes after context.left + state.emitted. May return NO_DRAFT."""
        return NO_DRAFT

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        """The outcome of a pass; drafters whose proposal was not verified learn from it, too.
        `emitted` is the whole output so far, the verdict's tokens included."""

    def ended(self, n_emitted: int) -> None:
        """The text ended of itself behind so many tokens. Verdicts may have told of more, which are
        not kept."""

    # ---- Traits.takes_time

    def is_due(self) -> bool:
        """Asked once before each pass: False to be asked nothing else."""
        return True

    def n_rest(self) -> int:
        """Passes to come before which it is not due."""
        return 0

    def rested(self, n_passes: int) -> None:
        """So many of them have passed, without asking."""

    def plan(self, state: PassState, n_max: int) -> Plan:
        """The draft to be expected of asking it."""
        return Plan(0, 0.0)

    # ---- Traits.reads

    def heed(self, interrupted: Callable[[], bool]) -> None:
        """Leave off reading and raise CancelledError as soon as this turns true; what was read by
        then is kept."""

    def has_room(self, n_tokens: int) -> bool:
        """False where so many do not fit its context: it is left alone for the rest of a request
        then."""
        return True

    def wants_prompt(self, context: Context) -> bool:
        """True if it would be asked for anything here, had it read the prompt."""
        return False

    def read_ahead(self, context: Context, cancelled: Callable[[], bool]) -> None:
        """Have a prompt in the cache before anybody drafts from it. Raises: CancelledError; what is
        read by then is kept."""

    @property
    def n_cached(self) -> int:
        """Tokens in its cache."""
        return 0

    # ---- Traits.is_native

    def native(self, state: PassState, n_max: int) -> Drafting | None:
        """The texts that native code drafts at most `n_max` tokens a pass from in its place, as
        `propose` would; None where it has to be asked itself."""
        return None
