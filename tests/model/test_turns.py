"""A completion that others interrupt is the one it would have been: a real model, real files."""

from __future__ import annotations

import sysconfig
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codespec.backends.checkpoints import LEAST_HELD, Checkpoints
from codespec.backends.llama.chunk_size import ChunkSize
from codespec.cost.cost_curve import CostCurve
from codespec.requests import CompletionRequest
from codespec.types import Context, SamplingParams
from tests.drafters import assume, draft_much, model_drafter_of

FILES = ("argparse.py", "tarfile.py", "json/decoder.py", "statistics.py")
LAWS = {
    "greedy": SamplingParams(),
    "sampled": SamplingParams(temperature=0.8, top_p=0.95, seed=7),
    "penalties": SamplingParams(repetition_penalty=1.2),
    "grammar": SamplingParams(grammar='root ::= "x = [" [0-9, ]+ "]\\n"'),
}


@pytest.fixture
def engine(engine):
    draft_much(engine)
    return engine


def places(n):
    rng = np.random.default_rng(5)
    library = Path(sysconfig.get_paths()["stdlib"])
    for i in range(n):
        text = (library / FILES[i % len(FILES)]).read_text()
        at = int(rng.integers(2000, len(text) - 500))
        yield CompletionRequest(
            text[at - 2000 : at], text[at : at + 500], path=f"/{FILES[i % len(FILES)]}"
        )


def after_passes(engine, every, within_prompt=()):
    """Says "leave off" after each so many passes, and when asked for the so-manieth time."""
    n_asked = n_passes = n_cached = 0

    def paused(has_progressed):
        nonlocal n_asked, n_passes, n_cached
        n_asked += 1
        moved, n_cached = engine.target.n_cached != n_cached, engine.target.n_cached
        n_passes += moved
        return (moved and n_passes % every == 0) or n_asked in within_prompt

    return paused


def interrupted(engine, request, others, every, within_prompt=()):
    """(the completion, how often it was left off): each time another request is completed."""
    n_turns = 0
    work = engine.completing(request, paused=after_passes(engine, every, within_prompt))
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, n_turns
        engine.complete(others[n_turns % len(others)])
        n_turns += 1


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("drafters", [(), ("lookup",), ("lookup", "model")], ids=str)
def test_interrupted_completions_are_the_undisturbed_ones(engine, law, drafters):
    n_told = n_turns = n_accepted = 0
    for i, place in enumerate(places(5)):
        request = replace(
            place, max_tokens=120, sampling=LAWS[law], drafters=drafters, verbatim=True
        )
        # Among the others: the same document, typed on and begun anew.
        same = replace(place, prefix=place.prefix + "x = ", max_tokens=8)
        others = [*(replace(other, max_tokens=8) for other in places(8)), same]
        expected = engine.complete(request)
        if engine.complete(replace(request, drafters=())).text != expected.text:
            continue  # floating point: how wide the passes are makes a difference here
        n_told += 1
        found, n = interrupted(engine, request, others, every=2 + i)
        assert found.text == expected.text
        assert found.finish == expected.finish
        assert (found.trace.paused_ms > 0) == (n > 0)
        assert found.trace.paused_ms < found.trace.ms
        assert 0 < found.trace.model_ms < found.trace.ms - found.trace.paused_ms
        n_turns += n
        n_accepted += found.trace.n_accepted
    assert n_told >= 2
    assert n_turns > 4
    assert bool(drafters) == (n_accepted > 0)


BEFORE = (
    "import os\n\n\ndef area(width, height):\n    if width < 0:\n"
    '        raise ValueError("width")\n    '
)
BELOW = "\n\n\ndef main():\n    print(area(1, 2))\n"


def test_what_was_left_off_is_judged_in_its_own_text(engine, monkeypatch):
    """Not in what another request says of the same document meanwhile."""
    monkeypatch.setattr(engine, "remembers", False)  # or one pass is enough the second time
    request = CompletionRequest(BEFORE, BELOW, path="/area.py", max_tokens=48)
    other = replace(request, prefix=f"def g(a):\n    b = {{'k': [{BEFORE}", max_tokens=2)
    expected = engine.complete(request)
    found, n = interrupted(engine, request, [other], every=2)
    assert n > 1
    assert expected.text
    assert (found.text, found.trace.trimmed) == (expected.text, expected.trace.trimmed)


def test_what_is_left_off_while_its_prompt_is_read_loses_nothing_but_time(engine):
    first, *others = (replace(place, max_tokens=24, verbatim=True) for place in places(4))
    assert len(engine.context(first).prompt) > 200
    engine.complete(others[0])
    expected = engine.complete(first)
    for at in ((1,), (2, 3, 4), (1, 10, 20)):
        engine.target.prefill(np.array([1, 1], np.int32), lambda: False)
        engine.target._saved = Checkpoints(0, can_truncate=True)
        found, n = interrupted(engine, first, others, every=1000, within_prompt=at)
        assert n == len(at)
        assert found.text == expected.text
        assert found.trace.n_target_passes > 0


def test_what_is_left_off_can_be_cancelled_or_forgotten(engine):
    first, other = (replace(place, max_tokens=60, verbatim=True) for place in places(2))
    expected = [engine.complete(request).text for request in (first, other)]
    is_cancelled = False
    work = engine.completing(first, lambda: is_cancelled, paused=lambda _: True)
    next(work)
    assert engine.complete(other).text == expected[1]
    is_cancelled = True
    with pytest.raises(StopIteration) as end:
        next(work)
    assert end.value.value.finish == "cancelled"
    work = engine.completing(first, paused=lambda _: True)
    next(work)
    work.close()
    assert not engine.target._saved._held
    assert [engine.complete(request).text for request in (first, other)] == expected


def test_several_take_turns(engine):
    requests = [replace(place, max_tokens=40, verbatim=True) for place in places(3)]
    expected = [engine.complete(request).text for request in requests]
    found = {}
    works = {
        i: engine.completing(request, paused=after_passes(engine, 2 + i))
        for i, request in enumerate(requests)
    }
    while works:
        for i, work in list(works.items()):
            try:
                next(work)
            except StopIteration as end:
                found[i] = end.value.text
                del works[i]
    assert [found[i] for i in range(3)] == expected
    assert not engine.target._saved._held


def test_what_is_left_off_and_not_lent_drafts_from_its_own_text(engine, tmp_path):
    """Though others of its path came in between, one of them so like it that it takes its place."""
    (tmp_path / "a.py").write_text("saved = 1\n")
    text = "".join(
        f"    def method_{i}(self):\n        return self._items[{i}]\n\n" for i in range(9)
    )
    request = CompletionRequest(
        "class Items:\n" + text,
        path=str(tmp_path / "a.py"),
        workspace=str(tmp_path),
        max_tokens=60,
        verbatim=True,
        lends=False,
    )
    like = replace(request, prefix=request.prefix + "    # theirs\n", max_tokens=2)
    others = [like, *(replace(like, prefix=place.prefix) for place in places(5))]
    engine.open(replace(request, prefix="mine = 2\n", lends=True))
    work = engine.completing(request, paused=after_passes(engine, 2))
    next(work)
    for other in others:
        engine.complete(other)
    found = finish(work)
    documents = engine._documents
    assert documents.get(documents.name_of(request)).text == request.prefix
    assert found.trace.by_source["prefix"].n_accepted
    assert found.text == engine.complete(request).text
    assert documents.get(request.path).text == "mine = 2\n"


def test_what_is_left_off_drafts_from_its_text_though_it_was_closed_or_made_room(engine):
    text = "".join(
        f"    def method_{i}(self):\n        return self._items[{i}]\n\n" for i in range(9)
    )
    request = CompletionRequest("class Items:\n" + text, path="/a.py", max_tokens=60, verbatim=True)
    others = [replace(place, path=f"/{i}.py", max_tokens=1) for i, place in enumerate(places(9))]
    expected = engine.complete(request)

    def reopened():
        engine.closed("/a.py")
        engine.complete(replace(others[0], path="/a.py"))
        engine.closed("/a.py")

    ends = lambda: engine.closed("/a.py"), lambda: [*map(engine.complete, others)], reopened
    for end in ends:
        work = engine.completing(request, paused=after_passes(engine, 2))
        next(work)
        end()
        found = finish(work)
        assert found.text == expected.text
        assert found.trace.by_source["prefix"].n_accepted > expected.trace.n_accepted // 2


@pytest.mark.parametrize("in_stretches", [False, True])
def test_every_turn_that_is_not_cut_short_gets_somewhere(engine, monkeypatch, in_stretches):
    """Also while a prompt is read that takes longer than a turn."""
    if not in_stretches:
        monkeypatch.setattr(engine.passes, "stretches", None)
    first, other = (
        replace(place, max_tokens=24, verbatim=True, drafters=()) for place in places(2)
    )
    engine.complete(other)
    expected = engine.complete(first)
    engine.target.prefill(np.array([1, 1], np.int32), lambda: False)
    engine.target._saved = Checkpoints(0, can_truncate=True)
    work = engine.completing(first, paused=lambda has_progressed: has_progressed)
    n_turns, found = 1, None
    while found is None:
        try:
            next(work)
            engine.complete(replace(other, max_tokens=1))
            n_turns += 1
        except StopIteration as end:
            found = end.value
    assert found.text == expected.text
    n_passes = found.trace.n_target_passes
    assert (3 if in_stretches else n_passes) <= n_turns <= n_passes + 3


@pytest.fixture
def small_parts(engine, monkeypatch):
    monkeypatch.setattr(engine.target, "_chunk", ChunkSize(80, 80))


@pytest.mark.usefixtures("small_parts")
def test_what_is_read_ahead_goes_on_in_turns(engine):
    long, place = (replace(place, max_tokens=30, verbatim=True) for place in places(2))
    expected = [engine.complete(request).text for request in (long, place)]
    for max_bytes, is_read in ((1 << 28, True), (0, False)):
        engine.target.prefill(np.array([1, 1], np.int32), lambda: False)
        engine.target._saved = Checkpoints(max_bytes, can_truncate=True)
        n_prompt = len(engine.context(place).prompt)
        work = engine.completing(long, paused=after_passes(engine, 2))
        next(work)
        reading, n_turns = engine.prefetching(place, paused=lambda moved: moved), 0
        done = None
        for _ in reading:
            n_turns += 1
            assert engine.target.n_cached < n_prompt - 1
            try:
                next(work)
            except StopIteration as end:
                done = done or end.value
        assert n_turns >= 1  # without room for what was read it ends, rather than begin anew
        assert (engine.target.n_cached == n_prompt - 1) == is_read
        found = engine.complete(place)
        assert found.text == expected[1]
        if is_read:
            assert found.trace.n_prompt_cached == n_prompt - 1
        assert (done or finish(work)).text == expected[0]


def finish(work):
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


@pytest.mark.usefixtures("small_parts")
def test_reading_ahead_can_be_cancelled_and_forgotten(engine):
    place = next(places(1))
    engine.target.prefill(np.array([1, 1], np.int32), lambda: False)
    engine.target._saved = Checkpoints(1 << 28, can_truncate=True)
    is_cancelled = False
    reading = engine.prefetching(place, lambda: is_cancelled, lambda moved: moved)
    next(reading)
    is_cancelled = True
    assert next(reading, "ended") == "ended"
    reading = engine.prefetching(place, paused=lambda _: True)
    next(reading)
    reading.close()


@pytest.mark.parametrize("is_dear", [True, False])
def test_the_draft_model_reads_ahead_where_it_will_be_asked(engine, is_dear):
    place = next(places(1))
    model = model_drafter_of(engine.drafter(""))
    model.read_ahead(Context(np.array([1, 1], np.int32)), lambda: False)
    pass_ms = 1000.0 if is_dear else 1e-3
    assume(engine.passes.tuner, CostCurve({1: pass_ms, 33: 1.1 * pass_ms}))
    assert list(engine.prefetching(place)) == []
    n_prompt = len(engine.context(place).prompt)
    assert engine.target.n_cached == n_prompt - 1
    assert (model.n_cached == n_prompt - 1) == is_dear


def test_what_lost_its_cache_to_others_reads_it_again(engine):
    """So many are left off at once that they take more memory than there is."""
    requests = [replace(place, max_tokens=60, verbatim=True) for place in places(6)]
    expected = [engine.complete(request).text for request in requests]
    engine.target._saved = Checkpoints(0, can_truncate=True)
    works = {
        i: engine.completing(request, paused=after_passes(engine, 4, (2,)))
        for i, request in enumerate(requests)
    }
    found = {}
    most_held = 0
    while works:
        for i, work in [*works.items()]:
            try:
                next(work)
            except StopIteration as end:
                found[i] = end.value
                del works[i]
            most_held = max(most_held, len(engine.target._saved._held))
    assert most_held == LEAST_HELD
    assert [found[i].text for i in range(len(requests))] == expected
