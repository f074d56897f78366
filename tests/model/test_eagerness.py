"""Real log-probabilities, and suggestions that are held back or cut by them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from codespec.engine.likely_lines import suggested
from codespec.engine.local import LocalEngine
from codespec.reasons import NoSuggestion, Trimming
from codespec.requests import Completion, CompletionRequest, Eagerness, Progress
from codespec.types import NO_DRAFT, SamplingParams

PREFIX = '''def mean(values):
    """The mean of some numbers."""
    total = 0
    for value in values:
        total += value
    return total / len(values)


def variance(values):
    """The variance of some numbers."""
'''
REQUEST = CompletionRequest(PREFIX, "\n\n\nprint(mean([1, 2]))\n", path="/a.py", max_tokens=48)
UNASKED = replace(REQUEST, eagerness=Eagerness())


def told(engine: LocalEngine, request: CompletionRequest) -> tuple[Completion, list[Progress]]:
    progress: list[Progress] = []
    return engine.complete(request, on_progress=progress.append), progress


def test_asking_for_probabilities_changes_no_text(engine: LocalEngine) -> None:
    plain, scored = engine.complete(REQUEST), engine.complete(UNASKED)
    assert scored.edit == plain.edit
    assert plain.trace.chances == ()
    assert scored.text.count("\n") >= 1
    assert len(scored.trace.chances) == scored.text.count("\n") + 1 == scored.trace.n_likely
    assert scored.trace.has_log_probs
    assert all(0 < chance < 1 for chance in scored.trace.chances)


@pytest.mark.parametrize("drafters", [(), ("lookup",), ("lookup", "model")])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_they_are_the_targets_own_whatever_drafts(
    engine: LocalEngine, drafters: tuple[str, ...], temperature: float
) -> None:
    """Plain passes, one a token, give the same up to what passes of other widths differ by."""
    sampling = SamplingParams(temperature=temperature, seed=3)
    request = replace(UNASKED, drafters=drafters, sampling=sampling)
    made = engine.generate(request)
    assert made.log_probs is not None
    target = engine.target
    target.prefill(made.context.prompt, lambda: False)
    tail, expected = made.context.prompt[target.n_cached :], list[float]()
    assert not made.context.healed
    for token in made.tokens:
        row = target.decode(tail, NO_DRAFT).row(0).astype(np.float64)
        target.keep(())
        expected.append(row[token] - row.max() - np.log(np.exp(row - row.max()).sum()))
        tail = np.array([token], np.int32)
    assert made.log_probs[: len(expected)] == pytest.approx(expected, abs=1e-3)


def test_a_half_typed_word_is_judged_among_what_may_stand_there(engine: LocalEngine) -> None:
    """A held-back "val" can only go on as a word with these letters: that costs nothing."""
    request = replace(UNASKED, prefix=f"{PREFIX}    return mean(val")
    made = engine.generate(request)
    assert made.context.healed
    assert made.log_probs is not None
    assert made.log_probs[0] > -1.0


@pytest.mark.parametrize("level", [0.02, 0.2, 0.5, 0.9])
def test_what_is_shown_stays_and_grows_to_what_is_suggested(
    engine: LocalEngine, level: float
) -> None:
    request = replace(UNASKED, eagerness=Eagerness(level))
    done, progress = told(engine, request)
    whole = engine.complete(UNASKED)
    shown = [p.lines.text for p in progress if p.lines is not None]
    for before, after in pairwise([*shown, done.text]):
        assert after.startswith(before)
    assert whole.text.startswith(done.text)
    n = done.trace.n_likely
    assert done.trace.chances[:n] == whole.trace.chances[:n]
    assert all(chance < level for chance in done.trace.chances[n:])
    assert done.text.count("\n") + 1 == done.trace.n_likely or not done.text
    assert all(chance >= level for chance in done.trace.chances[: done.trace.n_likely])
    assert (Trimming.UNLIKELY in done.trace.trimmed) == (done.text != whole.text)


PLACES = [
    (PREFIX, REQUEST.suffix),
    (f"{PREFIX}    middle = mean(", ")\n    return middle\n"),
    (f"{PREFIX}    middle = mean(values)", "\n"),
    (f"{PREFIX}    middle = mean(values)\n    for value in val", "\n"),
    (f"{PREFIX}    middle = mean(values)\n    ", ""),
    ("import os\n\n\nclass Folder:\n    def __init__(self", "\n"),
    ("def quick(", "\n"),
    ("# Sorts the numbers", "\nnumbers.sort()\n"),
]


@pytest.mark.parametrize("level", [0.02, 0.08, 0.2, 0.5])
@pytest.mark.parametrize("drafters", [(), ("lookup", "model")])
@pytest.mark.parametrize("n_shown", [0, 1])
def test_ended_at_an_unlikely_line_the_suggestion_is_as_cut_afterwards(
    engine: LocalEngine, level: float, drafters: tuple[str, ...], n_shown: int
) -> None:
    n_tokens: list[int] = []
    for prefix, suffix in PLACES:
        request = replace(UNASKED, prefix=prefix, suffix=suffix, drafters=drafters)
        asked = replace(request, eagerness=Eagerness(level, n_shown=n_shown))
        whole = engine.generate(request)
        ended = engine.generate(asked)
        assert whole.tokens[: len(ended.tokens)] == ended.tokens
        n_tokens += [len(whole.tokens) - len(ended.tokens)]
        afterwards = replace(whole, request=asked)
        cut = suggested(afterwards, whole.tokens, engine.tokenizer, whole.finish)
        early = suggested(ended, ended.tokens, engine.tokenizer, ended.finish)
        assert early.edit == cut.edit
        assert early.n_likely == cut.n_likely
    assert max(n_tokens) > 0


def test_a_line_that_cannot_become_likely_ends_before_its_end(engine: LocalEngine) -> None:
    """At its first token where any probability is too little."""
    ended = engine.generate(replace(UNASKED, eagerness=Eagerness(1.0)))
    assert b"\n" not in engine.tokenizer.decode(ended.tokens)
    assert ended.finish == "stop"


def test_what_is_held_back_says_so(engine: LocalEngine) -> None:
    none = engine.complete(replace(UNASKED, eagerness=Eagerness(1.0)))
    assert (none.edit, none.why) == (None, NoSuggestion.HELD_BACK)
    first = engine.complete(replace(UNASKED, eagerness=Eagerness(1.0, n_shown=1)))
    assert first.text == engine.complete(UNASKED).text.split("\n")[0]


def test_verbatim_text_is_not_judged(engine: LocalEngine) -> None:
    request = replace(REQUEST, verbatim=True)
    plain = engine.complete(request)
    assert engine.complete(replace(request, eagerness=Eagerness(1.0))).text == plain.text
