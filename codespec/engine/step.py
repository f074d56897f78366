"""The step of speculative decoding: draft, verify, keep.

Source: Leviathan, Kalman, Matias 2023, "Fast inference from transformers via speculative decoding",
algorithm 1; for trees Miao et al. 2024, "SpecInfer".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from codespec.engine.output import Output
from codespec.system import pulse
from codespec.types import NO_DRAFT, Draft, Logits, LogitsRows, Tokens, Verdict
from codespec.verify.accept import accept
from codespec.verify.tree import depths


class Verifier(Protocol):
    """A model that reads tokens in a pass: a target, or its branches side by side."""

    def decode(self, tokens: Tokens, draft: Draft, /) -> LogitsRows: ...
    def keep(self, path: Sequence[int], /) -> None: ...


@dataclass(slots=True)
class StepResult:
    """One or more passes of a target, in order; lists have an element a pass.

    tokens:     tokens emitted by all of them.
    widths:     tokens a pass was over.
    n_drafted:  depth of the draft.
    n_accepted: accepted tokens of it.
    draft_ms:   time to draft.
    pass_ms:    time to verify and keep.
    cost_ms:    `pass_ms` without the sampling of tokens, which does not depend on the draft.
    """

    tokens: Sequence[int]
    widths: list[int]
    n_drafted: list[int]
    n_accepted: list[int]
    draft_ms: list[float]
    pass_ms: list[float]
    cost_ms: list[float] = field(default_factory=list[float])


def step(
    target: Verifier,
    tail: Tokens,
    outputs: Iterable[Output],
    propose: Callable[[], Draft] = lambda: NO_DRAFT,
    fill: Callable[[Draft], Draft] = lambda draft: draft,
    row: Callable[[int], int] = lambda i: 0,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[StepResult, Draft, Verdict]:
    """One pass: draft, verify, keep.

    The target reads the committed tokens that its KV cache lacks and a draft after them. Each
    output then draws its next tokens from the rows of logits as it would have drawn alone, and the
    draft is followed for as long as it holds what was drawn. The accepted part stays in the cache.

    tail:    the uncached committed tokens, at least one.
    outputs: several share the pass where there is no draft; asked for one after the other.
    fill:    widens the pass behind the draft, by tokens that are never accepted.
    row:     the row that an output's first token is drawn from.

    Returns: the pass in figures; the draft; the verdict of the first output, empty without one.
    """
    began = clock()
    draft = propose()
    drafted = clock()
    filled = fill(draft)
    rows = target.decode(tail, filled)
    pulse.step()
    first = Verdict((), ())
    drawing_s = 0.0
    try:
        for i, output in enumerate(outputs):
            drawing = clock()
            verdict = accept(draft, _from(rows, row(i)), output.sampler, output.tokens, output.eog)
            drawing_s += clock() - drawing
            first = verdict if i == 0 else first
            scored = output.log_probs is not None
            log_probs = output.log_probs_of(_from(rows, row(i)), verdict) if scored else ()
            output.take(verdict.emitted, log_probs)
    finally:
        # Whatever happened: the next pass has to find committed tokens alone in the cache.
        target.keep(first.path)
    pass_ms = (clock() - drafted) * 1e3
    done = StepResult(
        tokens=first.emitted,
        widths=[len(tail) + len(filled)],
        n_drafted=[_depth(draft)],
        n_accepted=[len(first.path)],
        draft_ms=[(drafted - began) * 1e3],
        pass_ms=[round(pass_ms, 4)],
        cost_ms=[pass_ms - drawing_s * 1e3],
    )
    return done, draft, first


def _depth(draft: Draft) -> int:
    return len(draft) if draft.is_chain else max(depths(draft))


def _from(rows: LogitsRows, first: int) -> LogitsRows:
    return rows if first == 0 else _Shifted(rows, first)


class _Shifted:
    """Logits rows from `first` on."""

    def __init__(self, rows: LogitsRows, first: int) -> None:
        self._rows = rows
        self._first = first

    def row(self, i: int) -> Logits:
        return self._rows.row(self._first + i)

    def argmax(self, i: int) -> int:
        return self._rows.argmax(self._first + i)
