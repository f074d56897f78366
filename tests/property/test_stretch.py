"""Passes in a row in native code, against one pass after the other, on a model behind the same C
functions as llama.cpp's."""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.backends.fake import hashed_logits
from codespec.native import (
    ENDS_STRETCH,
    ENDS_TEXT,
    Drafting,
    Ends,
    LlamaContext,
    Planner,
    Sources,
    Stretch,
    SuffixAutomaton,
)

N_VOCAB, N_CELLS, ORDER = 6, 64, 2
PREFIX, REPOSITORY = 0, 2
POINTER = ctypes.c_void_p


class RawBatch(ctypes.Structure):
    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", POINTER),
        ("embd", POINTER),
        ("pos", POINTER),
        ("n_seq_id", POINTER),
        ("seq_id", POINTER),
        ("logits", POINTER),
    )


class Model:
    """A law of the last `ORDER` tokens, and a cache that may only be used as llama.cpp's may.

    fails_at: the pass that is refused, counted from 0. ms: that a pass takes, at least.
    """

    def __init__(
        self, cached: list[int], fails_at: int = -1, n_ctx: int = 1 << 20, ms: float = 0.0
    ) -> None:
        self.cached = list(cached)
        self.widths: list[int] = []
        self._fails_at = fails_at
        self._ms = ms
        self._law = hashed_logits(N_VOCAB)
        self._token = np.zeros(N_CELLS, np.int32)
        self._pos = np.zeros(N_CELLS, np.int32)
        self._want = np.zeros(N_CELLS, np.int8)
        self._rows = np.zeros((N_CELLS, N_VOCAB), np.float32)
        arrays = self._token, self._pos, self._want
        token, pos, want = (array.ctypes.data for array in arrays)
        self._batch = RawBatch(0, token, None, pos, None, None, want)
        self._functions = (
            ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, RawBatch)(self._decode),
            ctypes.CFUNCTYPE(POINTER, POINTER)(lambda context: self._rows.ctypes.data),
            ctypes.CFUNCTYPE(
                ctypes.c_bool, POINTER, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32
            )(self._remove),
        )
        decode, logits, remove = (ctypes.cast(f, POINTER).value or 0 for f in self._functions)
        self.context = LlamaContext(
            decode, logits, remove, 1, 2, ctypes.addressof(self._batch), N_VOCAB, n_ctx
        )

    def stretch(
        self,
        drafting: Drafting | None,
        emitted: list[int],
        last: int,
        ends: Sequence[int] = (0,) * N_VOCAB,
        n_tokens: int = 40,
        n_passes: int = 40,
        n_draft: int = 12,
        ms: float = 1e9,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> Stretch:
        at = emitted, last, len(self.cached), Ends(np.array(ends, np.uint8))
        return self.context.stretch(drafting, *at, n_tokens, n_passes, n_draft, ms, interrupted)

    def best(self, tokens: list[int]) -> int:
        return int(self._law(tuple(tokens[-ORDER:])).argmax())

    def _decode(self, context: int, batch: RawBatch) -> int:
        n = batch.n_tokens
        tokens, positions = self._token[:n].tolist(), self._pos[:n].tolist()
        if context != 1 or n > N_CELLS or not self._want[:n].all():
            return -3
        if positions != list(range(len(self.cached), len(self.cached) + n)):
            return -2
        if not all(0 <= token < N_VOCAB for token in tokens) or len(self.widths) == self._fails_at:
            return -1
        self.widths.append(n)
        time.sleep(self._ms / 1e3)
        for i, token in enumerate(tokens):
            self.cached.append(token)
            self._rows[i] = self._law(tuple(self.cached[-ORDER:]))
        return 0

    def _remove(self, memory: int, sequence: int, start: int, end: int) -> bool:
        assert (memory, sequence, end) == (2, 0, -1)
        del self.cached[start:]
        return True


def drafting(
    prompt: list[int],
    elsewhere: list[int],
    n_draft: int,
    width: int = 1,
    is_back: bool = True,
    wide_ms: float = 1.1,
) -> Drafting:
    """wide_ms: of the widest pass after one over one token, and 1.1 after a wide one."""
    sources = Sources(np.array(prompt, np.int32))
    before, other = SuffixAutomaton(), SuffixAutomaton()
    other.extend(np.array(elsewhere, np.int32))
    sources.add_before(PREFIX, before)
    sources.add_automata(REPOSITORY, [other])
    planner = Planner(np.zeros(N_VOCAB, np.uint8), 8)
    planner.begin(np.array(prompt, np.int32), np.zeros(0, np.int32))
    costs = np.stack([np.linspace(1.0, ms, n_draft + 1) for ms in (1.1, wide_ms)])
    made = Drafting(sources, None, planner, costs)
    made.is_back, made.width = is_back, width
    return made


def plain(prompt: list[int], ends: list[int], n: int) -> list[int]:
    model, said = Model([]), list(prompt)
    while len(said) - len(prompt) < n:
        said.append(model.best(said))
        if ends[said[-1]] == ENDS_TEXT:
            break
    return said[len(prompt) :]


MARKS = st.lists(st.sampled_from([0, 0, 0, ENDS_STRETCH, ENDS_TEXT]), min_size=6, max_size=6)
TOKEN = st.integers(0, N_VOCAB - 1)


@given(
    prompt=st.lists(TOKEN, min_size=1, max_size=8),
    # Some of it is no token of this model, and some is what the model would say.
    strange=st.lists(st.integers(0, N_VOCAB + 2), max_size=30),
    n_told=st.integers(0, 40),
    ends=MARKS,
    n_tokens=st.integers(0, 40),
    n_passes=st.integers(0, 20),
    n_draft=st.integers(0, 12),
    is_drafting=st.booleans(),
    width=st.integers(1, 9),
    n_ctx=st.integers(4, 80),
)
@settings(deadline=None)
def test_what_is_said_is_what_plain_decoding_says(
    prompt: list[int],
    strange: list[int],
    n_told: int,
    ends: list[int],
    n_tokens: int,
    n_passes: int,
    n_draft: int,
    is_drafting: bool,
    width: int,
    n_ctx: int,
) -> None:
    model = Model(prompt[:-1], n_ctx=n_ctx)
    told = [*prompt, *plain(prompt, [0] * N_VOCAB, n_told)]
    width = min(width, 1 + n_draft) if is_drafting else 1
    who = drafting(prompt, [*told, *strange], n_draft, width)
    limits = n_tokens, n_passes, n_draft
    done = model.stretch(who if is_drafting else None, [], prompt[-1], ends, *limits)
    assert (done.code, done.is_damaged) == (0, False)
    assert done.tokens == plain(prompt, ends, len(done.tokens))
    assert model.cached == [*prompt, *done.tokens][: len(prompt) - 1 + len(done.tokens)]
    check_counts(done, model, width, n_draft, len(prompt) - 1, n_ctx)
    assert len(done.tokens) <= n_tokens
    assert len(done.pass_ms) <= n_passes
    if not is_drafting:
        assert len(done.tokens) == len(done.pass_ms)
    # Why it is over.
    last_pass = done.tokens[len(done.tokens) - 1 - done.n_accepted[-1] :] if done.pass_ms else []
    is_ended = any(ends[token] for token in last_pass)
    assert is_ended or len(done.tokens) == n_tokens or len(done.pass_ms) == n_passes
    earlier = done.tokens[: len(done.tokens) - len(last_pass)]
    assert not any(ends[token] for token in earlier)


def check_counts(
    done: Stretch, model: Model, width: int, n_draft: int, n_cached: int, n_ctx: int
) -> None:
    widths: list[int] = []
    for drafted, accepted in zip(done.n_drafted, done.n_accepted, strict=True):
        widths.append(max(1 + drafted, width if n_cached + width <= n_ctx else 1))
        n_cached += 1 + accepted
    assert done.widths == model.widths == widths
    assert len(done.tokens) == sum(1 + n for n in done.n_accepted)
    for drafted, accepted in zip(done.n_drafted, done.n_accepted, strict=True):
        assert 0 <= accepted <= drafted <= n_draft
    assert len(done.pass_ms) == len(done.draft_ms) == len(done.n_drafted)
    sources, n_drafted, n_accepted = ([count[i] for count in done.by_source] for i in range(3))
    assert len(set(sources)) == len(sources)
    assert set(sources) <= {PREFIX, REPOSITORY}
    assert (sum(n_drafted), sum(n_accepted)) == (sum(done.n_drafted), sum(done.n_accepted))
    assert all(n > 0 for n in n_drafted)


def test_a_copy_takes_few_passes() -> None:
    prompt = [1, 2, 3]
    text = plain(prompt, [0] * N_VOCAB, 40)
    model = Model(prompt[:-1])
    who = drafting(prompt, [*prompt, *text], 12)
    done = model.stretch(who, [], 3)
    assert done.tokens == text
    assert len(done.pass_ms) < 20
    assert sum(done.n_accepted) == 40 - len(done.pass_ms)


def test_costs_are_those_after_the_last_pass() -> None:
    prompt = [1, 2, 3]
    text = plain(prompt, [0] * N_VOCAB, 40)

    def drafted(elsewhere: list[int], is_back: bool, wide_ms: float) -> list[bool]:
        who = drafting(prompt, elsewhere, 12, 1, is_back, wide_ms)
        done = Model(prompt[:-1]).stretch(who, [], 3)
        assert done.tokens == text
        return [n > 0 for n in done.n_drafted]

    copied = [*prompt, *text]
    assert not any(drafted(copied, True, 1e9))
    assert all(drafted(copied, False, 1e9)[:3])
    # What repeats itself can be drafted later, but the first pass has no draft.
    assert any(drafted([], False, 1.1))
    assert not any(drafted([], False, 1e9))


def test_no_pass_begins_too_late() -> None:
    model = Model([1, 2])
    done = model.stretch(None, [], 3, ms=0.0)
    assert (done.tokens, done.pass_ms, model.cached) == ([], [], [1, 2])


def test_who_interrupts_is_asked_now_and_then() -> None:
    model, asked = Model([1, 2], ms=4.0), []

    def interrupted() -> bool:
        asked.append(len(model.widths))
        return len(asked) == 3

    done = model.stretch(None, [], 3, interrupted=interrupted)
    assert len(done.tokens) == len(done.pass_ms) == asked[-1] < 40
    assert len(asked) == 3
    # Ten milliseconds apart: after three passes of four, if nothing else was at work.
    assert all(1 <= b - a <= 3 for a, b in itertools.pairwise([0, *asked]))
    assert model.cached == [1, 2, 3, *done.tokens[:-1]]


def test_what_the_interrupter_raises_is_raised() -> None:
    def interrupted() -> bool:
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        Model([1, 2], ms=11.0).stretch(None, [], 3, interrupted=interrupted)


@pytest.mark.parametrize("fails_at", [0, 3])
def test_a_pass_that_fails_ends_it(fails_at: int) -> None:
    model = Model([1, 2], fails_at)
    done = model.stretch(None, [], 3)
    assert done.code == -1
    assert len(done.tokens) == len(done.pass_ms) == fails_at
    assert done.tokens == plain([1, 2, 3], [0] * N_VOCAB, fails_at)


def test_wrong_arguments_are_refused() -> None:
    model = Model([1, 2])
    who = drafting([1], [], 4)
    marks = Ends(np.zeros(N_VOCAB, np.uint8))
    for args, words in (
        ((who, [], 3, 2, Ends(np.zeros(N_VOCAB - 1, np.uint8)), 9, 9, 4, 1.0), "each token"),
        ((who, [], 3, -1, marks, 9, 9, 4, 1.0), "n_cached"),
        ((who, [], 3, 2, marks, 9, 9, 5, 1.0), "n_draft"),
        ((drafting([1], [], 4, 5), [], 3, 2, marks, 9, 9, 3, 1.0), "width"),
    ):
        with pytest.raises(ValueError, match=words):
            model.context.stretch(*args, lambda: False)
    with pytest.raises(ValueError, match="address"):
        LlamaContext(0, 1, 1, 1, 1, 1, N_VOCAB, 64)
    sources, planner = Sources(np.zeros(0, np.int32)), Planner(np.zeros(2, np.uint8), 1)
    gaps = np.ones((2, 4))[:, ::2]
    bad = np.zeros((2, 0)), np.zeros((2, 1)), np.full((2, 1), np.inf), np.ones((1, 2)), gaps
    for costs in bad:
        with pytest.raises(ValueError, match="costs"):
            Drafting(sources, None, planner, costs)
