"""Drafts from an old text that the output rewrites, aligned with the output.

A text that is rewritten is mostly copied. `OldText` keeps the places of the old text at which the
output may stand: one as long as both agree, several behind a difference, where the output may have
inserted, replaced or left out tokens. They are weighed as by the forward algorithm of a pair hidden
Markov model (Durbin et al. 1998, Biological sequence analysis, chapter 4). What stands at the
likeliest places is drafted, from the output's first token on; `Planner` decides how much of it.

Completions have no old text, so this drafter is left out of them.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from codespec.cost.cost_curve import CostCurve
from codespec.drafters.base import Drafter, Traits
from codespec.drafters.planners import Planners, prior
from codespec.drafters.registry import TargetFacts, register
from codespec.drafters.token_kinds import token_kinds
from codespec.native import Sources, SuffixAutomaton, common_prefix
from codespec.system import folders
from codespec.types import (
    NO_DRAFT,
    NO_TOKENS,
    Context,
    Draft,
    PassState,
    Source,
    Tokens,
    Verdict,
)

ALIGNED = Source.register("aligned")

# Probabilities of the next token: a copy, another in its place, another before it. They differ
# behind a copy and behind a difference, as differences are longer than a token. The rest is for
# tokens left out, and repeated ones. Speed depends little on any of these numbers.
_BEHIND_COPY, _BEHIND_DIFFERENCE = (0.9, 0.04, 0.04), (0.3, 0.2, 0.48)
_SKIPS, _GOES_BACK = 0.02, 0.002
# Least probability of a token that is not copied; more for one that the old text has often.
_NOVEL = 0.01
# Lengths of what is left out: the means of two geometric distributions, mixed evenly.
_FEW, _MANY = 6.0, 60.0
# Places that are kept, those of them that are drafted from, and the least probability of one.
_MOST_PLACES, _MOST_DRAFTED, _LEAST = 8, 4, 0.01
# Occurrences of a token, before a place and from it on, at which the output may have resumed.
_MOST_BEFORE, _MOST_AFTER = 4, 16

# How sure an alignment is, in place of the occurrences that vote: `Planner` keeps weights for each.
_UNDISTURBED, _CERTAIN, _LIKELY, _LOST = 1, 2, 16, 32


class OldText:
    """An old text, and the places in it at which the output may stand.

    A place is the index of the next token to be copied.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._ids: list[int] = tokens.tolist()
        self._columns = np.full((6, len(tokens)), -1, np.int32)
        self._columns[0], self._columns[5] = tokens, 0
        self._where: dict[int, list[int]] = {}
        for at, token in enumerate(self._ids):
            self._where.setdefault(token, []).append(at)
        self._n_read = 0
        self._n_differences = 0
        # Place -> (probability, tokens copied up to there without a difference, all tokens copied).
        self._places: dict[int, tuple[float, int, int]] = {0: (1.0, 0, 0)}

    @property
    def places(self) -> dict[int, float]:
        """Place -> its probability; these sum to 1."""
        return {at: share for at, (share, *_) in self._places.items()}

    @property
    def n_copied(self) -> int:
        """Tokens of the old text that the output has so far, by its likeliest place."""
        _, _, n_copied = max(self._places.values())
        return min(n_copied, len(self._ids))

    def follow(self, emitted: Tokens) -> None:
        """Read what is new of an output, which only grows."""
        said = emitted[self._n_read :]
        self._n_read = len(emitted)
        while len(said):
            said = said[self._copied(said) :]
            if len(said):
                self._read(int(said[0]))
                said = said[1:]

    def proposals(self, n_max: int) -> list[npt.NDArray[np.int32]]:
        """At most `n_max` tokens from each of the likeliest places on: (6, k) columns as of a
        `Proposal`, likeliest first. The matched length is that of the copied run."""
        found: list[npt.NDArray[np.int32]] = []
        likeliest = sorted(self._places.items(), key=lambda place: -place[1][0])
        for at, (share, run, _) in likeliest[:_MOST_DRAFTED]:
            columns = self._columns[:, at : at + n_max].copy()
            k = columns.shape[1]
            if len(likeliest) == 1:
                columns[1:3] = _CERTAIN if self._n_differences else _UNDISTURBED
            else:
                columns[2] = _LIKELY if run else _LOST
                columns[1] = max(1, round(share * columns[2, 0])) if k else 0
            columns[3] = np.arange(run + 1, run + 1 + k)
            if k:
                found.append(columns)
        return found

    def _copied(self, said: Tokens) -> int:
        """Read the tokens of an output that go on at the only place, if there is one. Returns:
        their number."""
        if len(self._places) > 1:
            return 0
        [(at, (_, run, n_copied))] = self._places.items()
        n = common_prefix(said, self._columns[0, at:])
        self._places = {at + n: (1.0, run + n, n_copied + n)}
        return n

    def _read(self, token: int) -> None:
        self._n_differences += len(self._places) == 1
        steps = [*self._steps(token), *self._resumed(token)]
        found: dict[int, tuple[float, int, int]] = {}
        for at, p, run, n_copied in steps:
            known_p, known_run, known_n = found.get(at, (0.0, 0, 0))
            found[at] = known_p + p, max(known_run, run), n_copied if p > known_p else known_n
        kept = sorted(found.items(), key=lambda place: -place[1][0])[:_MOST_PLACES]
        total = sum(p for _, (p, *_) in kept)
        kept = [(at, place) for at, place in kept if place[0] >= _LEAST * total]
        total = sum(p for _, (p, *_) in kept)
        self._places = {at: (p / total, run, n) for at, (p, run, n) in kept}

    def _steps(self, token: int) -> list[tuple[int, float, int, int]]:
        """(place, probability, copied run, all copied) after a token, by one step from each
        place."""
        n_known = len(self._where.get(token, ()))
        novel = _NOVEL + n_known / max(1, len(self._ids))
        found: list[tuple[int, float, int, int]] = []
        for at, (share, run, n_copied) in self._places.items():
            copies, replaces, inserts = _BEHIND_COPY if run else _BEHIND_DIFFERENCE
            found.append((at, share * inserts * novel, 0, n_copied))
            if at < len(self._ids):
                found.append((at + 1, share * replaces * novel, 0, n_copied))
                if self._ids[at] == token:
                    found.append((at + 1, share * copies, run + 1, n_copied + 1))
        return found

    def _resumed(self, token: int) -> list[tuple[int, float, int, int]]:
        """The same where the output resumed elsewhere, with this token: it left tokens out, or
        repeats some."""
        at = max(self._places, key=lambda at: self._places[at][0])
        n_copied = self._places[at][2] + 1
        where = self._where.get(token, [])
        middle = bisect_left(where, at)
        found: list[tuple[int, float, int, int]] = []
        for there in where[max(0, middle - _MOST_BEFORE) : middle + _MOST_AFTER]:
            n = there - at
            if n > 0:
                few, many = (math.exp(-n / mean) / mean for mean in (_FEW, _MANY))
                found.append((there + 1, _SKIPS * (few + many) / 2, 1, n_copied))
            elif n < 0:
                found.append((there + 1, _GOES_BACK * math.exp(n / _MANY) / _MANY, 1, n_copied))
        return found


def n_copied(old: Tokens, output: Tokens) -> int:
    """Tokens of an old text that an output has, in the order in which they stand there, whoever
    drafted them. Linear in the output's length."""
    text = OldText(old)
    text.follow(output)
    return text.n_copied


class AlignedDrafter(Drafter):
    """Drafts from `Context.old`.

    curve, max_leaves: cost of the target's passes, most branches of a draft tree.
    planners: planners of this drafter's own: how much of an old text is accepted says nothing of
        completions.
    """

    name = "aligned"
    traits = Traits(cuts=True, rewrites=True)

    def __init__(self, curve: CostCurve, max_leaves: int, planners: Planners) -> None:
        self._curve = curve
        self._max_leaves = max_leaves
        self._planners = planners
        self._planner = planners.of("")
        self._old = OldText(NO_TOKENS)
        self._sources = Sources(NO_TOKENS)

    def begin(self, context: Context) -> None:
        self._old = OldText(context.old)
        self._planner = self._planners.of(context.workspace)
        self._planner.begin(context.left, context.right)
        self._sources = Sources(NO_TOKENS)
        self._sources.add_automata(ALIGNED, [SuffixAutomaton()])  # offers are made here

    def propose(self, state: PassState, n_max: int) -> Draft:
        self._old.follow(state.emitted)
        self._sources.clear()
        for columns in self._old.proposals(n_max):
            self._sources.offer(0, -1, columns, NO_TOKENS)
        found = self._planner.plan(
            self._sources,
            n_max,
            self._max_leaves if state.width == 1 else 1,
            self._curve.first(state, n_max + 1),
            self._curve.again_ms,
            self._curve.n_tail(state),
        )
        if found is None:
            return NO_DRAFT
        tokens, parents, likely, sources, _ = found
        return Draft(tokens, parents, likely, sources)

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        self._planner.learn(verdict.emitted, len(verdict.emitted))

    def ended(self, n_emitted: int) -> None:
        self._planner.ended(n_emitted)


def aligned_drafter(facts: TargetFacts) -> AlignedDrafter:
    """The drafter for a target; its weights are kept in the cache folder."""
    info = facts.info
    planners = Planners(
        token_kinds(facts.tokenizer),
        f"{info.name}:{info.file_bytes}:{AlignedDrafter.name}",
        folders.cache_path() / "acceptance",
        prior(info.n_params),
    )
    return AlignedDrafter(facts.curve, facts.max_leaves, planners)


register(AlignedDrafter.name, aligned_drafter)
