"""The contract of drafters, which propose continuations for a target to verify.

A drafter is one file: a subclass of `Drafter` that says its name, its sources and what it can, and
overrides what it needs; the defaults of all other methods serve one that can do no more. It may be
wrong in any way: verification keeps the output exact (Leviathan et al. 2023), and `CombinedDrafter`
reaches it through a guard alone (`guard.py`).
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

    takes_time: a proposal takes as long as a part of a target pass, so one is requested only where
        `plan` expects more than the best draft so far, and never while the drafter rests
        (`n_rest`).
    cuts:      the drafter knows the cost curve, and cuts its own drafts to the width that pays.
    reads:     the drafter may have to prefill a prompt, which takes as long as many passes
        (`has_room`, `watch_interrupts`, `wants_prompt`, `read_ahead`).
    is_native: native code can draft in its place, see `native`.
    rewrites:  the drafter drafts from `Context.old`, and is left out of requests without one.
    """

    takes_time: bool = False
    cuts: bool = False
    reads: bool = False
    is_native: bool = False
    rewrites: bool = False


class Plan(NamedTuple):
    """A drafter's forecast of its next proposal.

    n_tokens: length of the draft, 0 for none. rate: expected emitted tokens per millisecond of the
    pass and the drafting together.
    """

    n_tokens: int
    rate: float


@dataclass(slots=True)
class Counters:
    """Totals of one drafter. by_source: tokens drafted and accepted."""

    by_source: dict[Source, SourceStats] = field(default_factory=dict[Source, SourceStats])

    @property
    def n_drafted(self) -> int:
        """Tokens drafted, of all sources."""
        return sum(stats.n_drafted for stats in self.by_source.values())

    @property
    def n_accepted(self) -> int:
        """Tokens accepted, of all sources."""
        return sum(stats.n_accepted for stats in self.by_source.values())

    def add(self, source: Source, n_drafted: int, n_accepted: int) -> None:
        """Add tokens of one source."""
        stats = self.by_source.get(source)
        if stats is None:
            stats = self.by_source[source] = SourceStats()
        stats.n_drafted += n_drafted
        stats.n_accepted += n_accepted

    def count(self, draft: Draft, path: Sequence[int]) -> None:
        """Count a draft; `path`: indices of its accepted nodes."""
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
        """Totals since the drafter was made; its caller counts (`Guarded`)."""
        return Counters()

    def begin(self, context: Context) -> None:
        """Start a request. Called before the first `propose` of that request."""

    def propose(self, state: PassState, n_max: int) -> Draft:
        """Draft at most `n_max` nodes that continue context.left + state.emitted; NO_DRAFT for
        none. The context is the one of the last `begin`."""
        return NO_DRAFT

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        """Learn from a verified pass, also where another drafter's proposal was verified.

        emitted: (m,) the whole output so far, the verdict's tokens included. draft: this drafter's
        own proposal for the pass, else the verified one.
        """

    def ended(self, n_emitted: int) -> None:
        """The output is complete after `n_emitted` tokens. Earlier verdicts may have held more,
        which are not part of it."""

    # ---- Traits.takes_time

    def is_due(self) -> bool:
        """True if the drafter may be asked before this pass. Called once a pass."""
        return True

    def n_rest(self) -> int:
        """Number of passes from now on before which `is_due` would be False."""
        return 0

    def rested(self, n_passes: int) -> None:
        """Count `n_passes` passes that were made without a call of `is_due`."""

    def plan(self, state: PassState, n_max: int) -> Plan:
        """Forecast of `propose` with the same arguments."""
        return Plan(0, 0.0)

    # ---- Traits.reads

    def watch_interrupts(self, interrupted: Callable[[], bool]) -> None:
        """Poll `interrupted` while a prompt is prefilled in `propose`: once it returns True, stop
        and raise CancelledError. What is in the KV cache by then stays."""

    def has_room(self, n_tokens: int) -> bool:
        """False if `n_tokens` do not fit the drafter's own context window; it is then left out of
        the rest of the request."""
        return True

    def wants_prompt(self, context: Context) -> bool:
        """True if a prefilled prompt would make the drafter worth asking at this place."""
        return False

    def read_ahead(self, context: Context, cancelled: Callable[[], bool]) -> None:
        """Prefill a prompt before anybody drafts from it. Raises: CancelledError once `cancelled`
        returns True; what is in the KV cache by then stays."""

    @property
    def n_cached(self) -> int:
        """Number of tokens in the drafter's KV cache."""
        return 0

    # ---- Traits.is_native

    def native(self, state: PassState, n_max: int) -> Drafting | None:
        """Inputs for native code to draft in this drafter's place, at most `n_max` tokens a pass,
        as `propose` would; None where `propose` has to be called."""
        return None
