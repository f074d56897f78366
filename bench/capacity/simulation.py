"""A server that batches, simulated event by event: requests arrive, steps end, keys cancel.

Each step of the engine verifies a draft, or makes one token, in each row that writes, and reads
prompts with what is left of its token budget (continuous batching with chunked prefill, as in Yu et
al. 2022, "Orca", and Agrawal et al. 2024, "Sarathi-Serve"). It takes T(n) for all of its n tokens.
Prompts are read from the last whole block on that the person's previous prompt shares.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .arrivals import Ask

LATE_MS = 300.0


@dataclass(frozen=True, slots=True)
class Drafts:
    """Passes of a drafter as they were measured.

    passes: (drafted, accepted) of passes, from which each row of a step draws one.
    row_us: microseconds that drafting takes a row, while the engine waits.
    most_tokens: drafted tokens of a step at most; with more rows each drafts less.
    """

    passes: Sequence[tuple[int, int]]
    row_us: float = 15.0
    most_tokens: int = 256


@dataclass(frozen=True, slots=True)
class SimulatedEngine:
    """step_ms: T(n), milliseconds of a step over n tokens. row_ms: more for each row, whose context
    is read. budget: tokens of a step. max_rows: requests at once; others wait. block: tokens of a
    block of the prefix cache. outside_ms: a request's time outside of the engine."""

    step_ms: Callable[[int], float]
    row_ms: float = 0.0
    budget: int = 512
    max_rows: int = 256
    block: int = 16
    outside_ms: float = 22.0


@dataclass(slots=True)
class Outcome:
    """Outcome of a run. ms: of the answered requests. n_late: requests that a key cancelled when
    they were late already; n_cancelled: all that a key cancelled. busy_s: time in steps."""

    n_asked: int = 0
    ms: list[float] = field(default_factory=list[float])
    n_late: int = 0
    n_cancelled: int = 0
    n_steps: int = 0
    n_tokens: int = 0
    busy_s: float = 0.0

    def quantile_ms(self, share: float) -> float:
        """Quantile of the answers' times. Requests cancelled late count as slower than any answer;
        those cancelled sooner, of which nobody knows, do not count."""
        known = len(self.ms) + self.n_late
        at = int(share * (known - 1)) if known else 0
        times = sorted(self.ms)
        return times[at] if at < len(times) else (float("inf") if known else 0.0)

    @property
    def answered(self) -> float:
        """Share of the requests that were answered before the next key."""
        return len(self.ms) / max(1, self.n_asked)


@dataclass(slots=True)
class _Row:
    ask: Ask
    n_to_read: int
    n_left: int


def simulate(
    asks: Sequence[Ask], engine: SimulatedEngine, drafts: Drafts | None, seed: int
) -> Outcome:
    """Play requests, sorted by time, against an engine; until the last one is over."""
    chance = random.Random(seed)
    done = Outcome(n_asked=len(asks))
    coming, waiting, rows = deque(asks), deque[Ask](), list[_Row]()
    now = 0.0
    way_s = engine.outside_ms / 2e3
    while coming or waiting or rows:
        if not waiting and not rows:
            now = max(now, coming[0].at_s + way_s)
        while coming and coming[0].at_s + way_s <= now:
            waiting.append(coming.popleft())
        rows = [row for row in rows if not _is_cancelled(row.ask, now, engine, done)]
        while waiting and len(rows) < engine.max_rows:
            ask = waiting.popleft()
            if not _is_cancelled(ask, now, engine, done):
                n_cached = ask.n_common - ask.n_common % engine.block
                # The last token of a prompt is always read: its output is the first token.
                rows.append(_Row(ask, max(1, ask.n_prompt - n_cached), ask.n_out))
        if not rows:
            continue
        n, emitted, n_writing = _step(rows, engine, drafts, chance)
        ms = engine.step_ms(n) + engine.row_ms * len(rows)
        ms += drafts.row_us / 1e3 * n_writing if drafts else 0.0
        now += ms / 1e3
        done.busy_s += ms / 1e3
        done.n_steps += 1
        done.n_tokens += n
        for row, n_new in emitted:
            row.n_left -= n_new
            if row.n_left <= 0:
                done.ms.append((now + way_s - row.ask.at_s) * 1e3)
        rows = [row for row in rows if row.n_left > 0]
    return done


def _step(
    rows: Sequence[_Row], engine: SimulatedEngine, drafts: Drafts | None, chance: random.Random
) -> tuple[int, list[tuple[_Row, int]], int]:
    """(tokens of the step, rows with what they emit, rows that write)."""
    writing = [row for row in rows if not row.n_to_read]
    room = engine.budget
    most = min(drafts.most_tokens, room) // len(writing) if drafts and writing else 0
    emitted = list[tuple[_Row, int]]()
    for row in writing:
        n_drafted, n_right = chance.choice(drafts.passes) if drafts and most else (0, 0)
        n_drafted = min(n_drafted, most, row.n_left - 1)
        room -= 1 + n_drafted
        emitted.append((row, 1 + min(n_right, n_drafted)))
    for row in rows:
        if row.n_to_read and room > 0:
            n = min(row.n_to_read, room)
            room -= n
            row.n_to_read -= n
            if not row.n_to_read:
                emitted.append((row, 1))
    return engine.budget - room, emitted, len(writing)


def _is_cancelled(ask: Ask, now: float, engine: SimulatedEngine, done: Outcome) -> bool:
    """True if the next key came; that is counted."""
    if ask.until_s + engine.outside_ms / 2e3 > now:
        return False
    done.n_cancelled += 1
    done.n_late += (ask.until_s - ask.at_s) * 1e3 > LATE_MS
    return True
