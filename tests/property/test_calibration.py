"""The calibration of a workspace does not depend on how its requests overlap."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.fake import ByteTokenizer
from codespec.documents.sources import PREFIX, REPOSITORY
from codespec.drafters.planner_weights import source_names
from codespec.drafters.planners import prior
from codespec.drafters.token_kinds import token_kinds
from codespec.native import (
    Calibration,
    DraftedRequest,
    Planner,
    RowThreads,
    Segment,
    Sources,
    SuffixAutomaton,
)
from codespec.types import NO_TOKENS
from codespec_bench.replay_trees import segment_of

TOKENIZER = ByteTokenizer()
KINDS = token_kinds(TOKENIZER)
COSTS = np.linspace(1.0, 1.4, 9)
N_REQUESTS, N_TOKENS = 24, 60
THREADS = RowThreads(1)


def lines(seed: int, n: int) -> str:
    """Code-like lines that share names with those of other seeds."""
    rng = random.Random(seed)
    names = ["client", "request", "response", "value", "index", "send", "close", "items"]
    calls = (
        f"    {rng.choice(names)}.{rng.choice(names)}({rng.choice(names)}, {rng.randrange(30)})\n"
        for _ in range(n)
    )
    return "".join(calls)


SEGMENT = segment_of([TOKENIZER.encode(lines(seed, 40)) for seed in range(100, 112)])
TEXTS = [(lines(i, 12), TOKENIZER.encode(lines(i + 50, 6))[:N_TOKENS]) for i in range(N_REQUESTS)]


class Replay:
    """A request whose output is known; each step verifies a draft against it."""

    def __init__(self, known: Calibration, number: int) -> None:
        before, self.output = TEXTS[number]
        left = TOKENIZER.encode(before)
        sources = sources_over(left, SEGMENT)
        self.request = DraftedRequest(known, sources, left, NO_TOKENS)
        self.n_said, self.n_new = 1, 1

    def step(self) -> bool:
        """False once the text is complete."""
        if self.n_said == len(self.output):
            self.request.end()
            return False
        fresh = self.output[self.n_said - self.n_new : self.n_said].tolist()
        (draft,), _, _ = THREADS.draft([self.request], [fresh], [8], COSTS, 1e6)
        rest = self.output[self.n_said :].tolist()
        n_right = next(
            (i for i, (a, b) in enumerate(zip(draft, rest, strict=False)) if a != b),
            min(len(draft), len(rest)),
        )
        self.n_new = min(n_right + 1, len(rest))
        self.n_said += self.n_new
        return True


def sources_over(left: np.ndarray, segment: Segment) -> Sources:
    sources = Sources(left)
    sources.add_before(PREFIX, SuffixAutomaton())
    sources.add_segments(REPOSITORY, [(segment, None)])
    return sources


def new_calibration() -> Calibration:
    return Calibration(KINDS, len(source_names()), prior().state(source_names()))


def weights_after(begins: Iterable[int], order: Iterator[int], most: int) -> np.ndarray:
    """Weights after all requests, begun in the order `begins`, at most `most` open at a time;
    `order` says which of them goes on."""
    known, waiting, live = new_calibration(), list(begins), list[Replay]()
    while waiting or live:
        pick = next(order)
        if waiting and (not live or (len(live) < most and pick % 3 == 0)):
            live.append(Replay(known, waiting.pop(0)))
            continue
        at = pick % len(live)
        if not live[at].step():
            del live[at]
    assert known.n_open == 0
    return known.weights()


def probabilities(weights: np.ndarray) -> np.ndarray:
    """Probabilities that a planner with these weights gives to every offer in a text nobody has
    replayed."""
    planner = Planner(KINDS, len(source_names()))
    planner.load(weights)
    left, text = TOKENIZER.encode(lines(900, 12)), TOKENIZER.encode(lines(901, 12))
    sources = sources_over(left, SEGMENT)
    planner.begin(left, NO_TOKENS)
    found: list[np.ndarray] = []
    for i in range(1, len(text)):
        sources.clear()
        sources.ask(text[:i], NO_TOKENS, 4)
        planner.plan(sources, 4, 1, np.ones(5))
        planner.learn([int(text[i])], 1)
        found.append(planner.outcomes()[2])
    return np.concatenate(found)


IN_TURN = weights_after(range(N_REQUESTS), iter(lambda: 0, 1), 1)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(2, N_REQUESTS))
def test_any_interleaving_gives_what_one_after_the_other_gives(seed: int, most: int) -> None:
    """Within 1 %, of each probability on average and of all together."""
    rng = random.Random(seed)
    order = iter(lambda: rng.randrange(1000), -1)
    expected = probabilities(IN_TURN)
    found = probabilities(weights_after(range(N_REQUESTS), order, most))
    assert np.abs(found - expected).mean() <= 0.01
    assert abs(found.mean() / expected.mean() - 1) <= 0.01


def test_requests_teach_their_workspace() -> None:
    """Else the test above would hold for one that learns nothing."""
    start = probabilities(new_calibration().weights())
    assert np.abs(probabilities(IN_TURN) - start).mean() > 0.03


def test_a_request_that_never_ends_is_not_waited_for_for_ever() -> None:
    known = new_calibration()
    start = known.weights()
    forgotten = Replay(known, 0)
    forgotten.step()
    for i in range(70):
        later = Replay(known, i % N_REQUESTS)
        for _ in range(6):
            later.step()
        later.request.end()
    assert known.n_open == 1
    assert not np.array_equal(known.weights(), start)
    forgotten.request.end()
    assert known.n_open == 0


def test_a_request_that_is_dropped_ends() -> None:
    known = new_calibration()
    replay = Replay(known, 1)
    replay.step()
    assert known.n_open == 1
    del replay
    assert known.n_open == 0
