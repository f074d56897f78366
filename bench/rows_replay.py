"""Drafts for an engine's rows without an engine: the true text of places that were cut out is
verified against them, row by row, as an engine of many requests would.

    python -m codespec_bench.rows_replay ROOT ... [--record FILE]

Prints tokens a pass, with the index and without, beside the n-gram lookup that engines have; and
the time of a native call by rows and threads.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from codespec.backends.registry import open_vocabulary, target_of
from codespec.config import load_settings
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.token_kinds import token_kinds
from codespec.serving.batch_cost import WIDE, BatchCost
from codespec.serving.counters import RowCounters
from codespec.serving.lookup_rows import LookupRows
from codespec.serving.rows import RequestPlace, RowFeed, RowState
from codespec.serving.served_workspaces import ServedWorkspaces

from .served_places import ServedPlace, served_places

N_MAX = 8
_MOST_TOKENS = 2048
_N_SCALING = 64


@dataclass(slots=True)
class RowsReplay:
    """Counts of a replay: a pass verifies one row's draft. passes: number of passes by (drafted,
    accepted)."""

    n_tokens: int = 0
    n_passes: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    passes: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])

    def verify(self, draft: Sequence[int], truth: Sequence[int]) -> int:
        """Tokens of the truth that a pass emits."""
        right = 0
        for drafted, true in zip(draft, truth, strict=False):
            if drafted != true:
                break
            right += 1
        n = min(right + 1, len(truth))
        self.n_passes += 1
        self.passes[min(len(draft), len(truth)), min(right, len(truth))] += 1
        self.n_tokens += n
        self.n_drafted += min(len(draft), len(truth))
        self.n_accepted += min(right, len(truth))
        return n


class _Live:
    """A request of the replay: a row that grows."""

    def __init__(self, key: int, place: ServedPlace) -> None:
        self.key, self.place = key, place
        self.ids = np.zeros(_MOST_TOKENS, np.int32)
        text = [*place.prompt, place.truth[0]]
        self.ids[: len(text)] = text
        self.n_said = 1

    @property
    def rest(self) -> list[int]:
        return self.place.truth[self.n_said :]

    def state(self, request: RequestPlace) -> RowState:
        n_prompt = len(self.place.prompt)
        return RowState(self.key, self.ids, n_prompt + self.n_said, n_prompt, N_MAX, request)

    def emit(self, n: int) -> None:
        start = len(self.place.prompt) + self.n_said
        self.ids[start : start + n] = self.rest[:n]
        self.n_said += n


class RowsBench:
    """Replays of places, with a drafter of its own each time."""

    def __init__(self, root: Path) -> None:
        model = open_vocabulary(target_of(load_settings().model))
        self._root = root
        self._kinds = token_kinds(model.tokenizer)
        self._hash = model.tokenizer.hash
        self._fim = model.info.fim

    def drafter(self, n_threads: int = 1) -> tuple[LookupRows, RowCounters]:
        workspaces = ServedWorkspaces({"w": str(self._root)}, self._kinds, self._hash, 18_000_000)
        counters = RowCounters()
        cost = BatchCost(CostCurve(WIDE), learns=False)
        return LookupRows(self._fim, workspaces, cost, counters, n_threads), counters

    def replay(self, places: Sequence[ServedPlace], batch: int, workspace: str) -> RowsReplay:
        """Replay the places in groups of `batch` rows."""
        done = RowsReplay()
        drafter, _ = self.drafter()
        feed = RowFeed()
        for first in range(0, len(places), batch):
            group = enumerate(places[first : first + batch], first)
            live = [_Live(i, place) for i, place in group if len(place.truth) > 1]
            while live:
                states = [q.state(RequestPlace(workspace, q.place.path)) for q in live]
                steps, ended = feed.steps(states, ())
                drafts = drafter.draft(steps, ended, 1e4)
                for request, draft in zip(live, drafts, strict=True):
                    request.emit(done.verify(draft, request.rest))
                live = [q for q in live if q.rest]
        return done

    def step_us(self, places: Sequence[ServedPlace], n_rows: int, n_threads: int) -> list[float]:
        """Microseconds a row of each step of `n_rows` requests that go on side by side."""
        drafter, _ = self.drafter(n_threads)
        feed, times = RowFeed(), list[float]()
        long = sorted(places, key=lambda p: -len(p.truth))[: max(1, len(places) // 2)]
        live = [_Live(i, long[i % len(long)]) for i in range(n_rows)]
        for _ in range(min(len(q.rest) for q in live)):
            states = [q.state(RequestPlace("w", q.place.path)) for q in live]
            steps, ended = feed.steps(states, ())
            start = time.perf_counter()
            drafter.draft(steps, ended, 1e4)
            times.append((time.perf_counter() - start) * 1e6 / n_rows)
            for request in live:
                request.emit(1)
        return times[1:]  # in the first one requests begin


def ngram_tokens(places: Sequence[ServedPlace]) -> RowsReplay:
    """The lookup that engines have: what followed the first occurrence of the longest suffix of 2
    to 8 tokens in the request's own text."""
    done = RowsReplay()
    for place in places:
        said = 1
        while said < len(place.truth):
            text = [*place.prompt, *place.truth[:said]]
            said += done.verify(ngram_draft(text), place.truth[said:])
    return done


def ngram_draft(text: Sequence[int]) -> Sequence[int]:
    for n in range(min(8, len(text) - 1), 1, -1):
        tail = text[-n:]
        for i in range(len(text) - n):
            if text[i : i + n] == tail:
                return text[i + n : i + n + N_MAX]
    return []


def passes_of(root: Path) -> Counter[tuple[int, int]]:
    """Number of passes by (drafted, accepted), with the index of a repository."""
    places = true_places(root)
    return RowsBench(root).replay(places, 1, "w").passes


def record(roots: Sequence[Path], file: Path) -> None:
    """Keep the passes of replays for `codespec_bench.capacity`: [drafted, accepted, number]."""
    passes = sum(map(passes_of, roots), Counter[tuple[int, int]]())
    rows = [[*key, n] for key, n in sorted(passes.items())]
    about = {"repositories": [root.resolve().name for root in roots], "passes": rows}
    file.write_text(json.dumps(about) + "\n", "utf-8")


def true_places(root: Path) -> list[ServedPlace]:
    """Places of three kinds whose true text is known in ids."""
    return [p for p in served_places(root, 60, ("block", "statement", "line"), 2) if p.truth]


def lines(root: Path) -> Iterator[str]:
    places = true_places(root)
    bench = RowsBench(root)
    yield f"{len(places)} places, {sum(len(p.truth) for p in places)} tokens of the true text"
    ways = [
        ("n-gram", ngram_tokens(places)),
        ("own text", bench.replay(places, 1, "")),
        ("own text and index", bench.replay(places, 1, "w")),
        ("eight at once", bench.replay(places, 8, "w")),
    ]
    for name, done in ways:
        share = done.n_accepted / max(1, done.n_drafted)
        yield f"{name}: {done.n_tokens / done.n_passes:.2f} tokens a pass, {share:.2f} right"
    for n_rows in (1, 8, _N_SCALING):
        for n_threads in (1, 2):
            us = bench.step_us(places, n_rows, n_threads)
            best = sorted(us)[len(us) // 10]
            yield f"{n_rows} rows, {n_threads} threads: {median(us):.1f} us a row, best {best:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Drafts for rows, without an engine.")
    parser.add_argument("roots", type=Path, nargs="+", help="repositories with an index")
    parser.add_argument("--record", type=Path, help="only keep the passes, for `capacity`")
    given = parser.parse_args()
    if given.record is not None:
        record(given.roots, given.record)
        return
    for root in given.roots:
        for line in lines(root):
            print(line, flush=True)


if __name__ == "__main__":
    main()
