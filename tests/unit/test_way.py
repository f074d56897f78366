"""The way of a completion: one function enters the rooms, in the order of the request. Traced as it
runs, with a target and with a generator."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import codespec
from codespec.backends import registry
from codespec.config import load_settings
from codespec.requests import CompletionRequest
from tests.engines import strict_engine
from tests.extension import scribe
from tests.index_support import isolate

ROOMS = ("documents", "context", "suggest")
"""The rooms around decoding; each has its place on the way."""
LEADER = "engine.local._through_rooms"
WAY = [
    "documents.open_documents.why_excluded",
    "documents.open_documents.update",
    "context.retrieval.snippets",
    "context.retrieval.render",
    "context.prompt_window.build_context",
    "engine.generation.generation_at",
    "engine.local._decode",
    "documents.open_documents.answered",
    "engine.likely_lines.suggested",
    "engine.decoder.alternatives",
]
"""Calls of the one function, without the values that it reads."""
ERRANDS = {
    # Where the cursor came to another line: text that other documents lend now.
    "context.retrieval.snippets": {
        "documents.open_documents.withdrawn",
        "documents.open_documents.others",
    },
    # Before the first draft, and again when a request is resumed: automata as they are then.
    "drafters.lookup.begin": {
        "documents.open_documents.get",
        "documents.open_documents.neighbours",
        "documents.open_documents.overridden",
    },
    # Rules that decoding follows, token by token.
    "engine.generation.ends": {"suggest.until.asks"},
    "engine.generation.<lambda>": {"context.healing.n_repeating"},
    "engine.passes._mask": {"context.healing.__init__"},
    "verify.sampling.sample": {"context.healing.allowed"},
    "engine.output.take": {"suggest.stop.__call__"},
    "engine.generator.told": {"suggest.stop.__call__"},
    # The whole prompt of a model elsewhere.
    "engine.generator._asked": {"context.masked_tokens.masked_tokens"},
    # The place of a request, where a given text is finished, too.
    "engine.generation.generation_at": {
        "suggest.document.place_in",
        "suggest.shape.shape_at",
        "suggest.stop.__init__",
        "suggest.fit.__init__",
    },
    # From the output to the edit.
    "engine.generation.said": {
        "suggest.until.before_stop",
        "suggest.until.cut",
        "suggest.stop.end",
    },
    "engine.generation.tell_trace": {"suggest.until.first_stop"},
    "engine.generation.suggested": {"suggest.stop.candidate", "suggest.finish.finish"},
}
"""Calls into the rooms by others than the one function."""
SOURCE = Path(codespec.__file__).parent


@contextmanager
def traced() -> Generator[list[tuple[str, str]]]:
    """(caller, callee) of the calls from one room into another, and of those of the one
    function."""
    calls: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        callee = name_of(frame) if event == "call" else ""
        # A generator of a room is resumed, and closed at any time, by whoever holds it.
        is_resumed = frame.f_code.co_flags & inspect.CO_GENERATOR and room_of(callee) in ROOMS
        if not callee or is_resumed:
            return
        caller, back = "", frame.f_back
        while back is not None and not caller:
            caller, back = name_of(back), back.f_back
        if caller == LEADER or room_of(caller) != room_of(callee):
            calls.append((caller, callee))

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def name_of(frame: FrameType) -> str:
    """Module and function; "" outside of codespec."""
    file = Path(frame.f_code.co_filename)
    if not file.is_relative_to(SOURCE):
        return ""
    return ".".join((*file.relative_to(SOURCE).with_suffix("").parts, frame.f_code.co_name))


def room_of(name: str) -> str:
    return name.split(".")[0]


@pytest.mark.parametrize("model", ["fake:", "scribe:"])
def test_the_rooms_are_entered_from_one_function_in_the_order_of_the_request(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(monkeypatch, tmp_path)
    monkeypatch.setitem(registry.SCHEMES, "scribe", scribe.__name__)
    context = dict.fromkeys(("symbols", "buffers", "edits"), "on")
    drafting = {"drafters": ["lookup"]}
    options = {"model": {"target": model}, "context": context, "drafting": drafting}
    workspace = tmp_path / "work"
    text = "def other(items):\n    for item in items:\n        print(item)\n"
    (workspace / "other.py").parent.mkdir()
    (workspace / "other.py").write_text(text)
    engine = strict_engine(load_settings(options, env={}))
    try:
        engine.open(CompletionRequest(text, "", str(workspace / "other.py"), str(workspace)))
        request = CompletionRequest(
            "def first(items):\n    for item in items:\n        pri",
            "\n\nx = 1\n",
            str(workspace / "first.py"),
            str(workspace),
            max_tokens=12,
        )
        with traced() as calls:
            completion = engine.complete(request)
    finally:
        engine.close()
    assert completion.trace.n_snippets == 1
    assert completion.trace.n_tokens
    # A target's passes have alternatives, a generator has none.
    led = [
        callee.replace("engine.passes", "engine.decoder") for who, callee in calls if who == LEADER
    ]
    assert [callee for callee in led if callee in WAY] == WAY
    entered = {(who, callee) for who, callee in calls if room_of(callee) in ROOMS}
    read = {f"documents.live.{name}" for name in ("left", "right", "is_in_secret", "masked")}
    assert {callee for who, callee in entered if who == LEADER} <= {*WAY, *read}
    assert {(who, callee) for who, callee in entered if who != LEADER} <= {
        (who, callee) for who, callees in ERRANDS.items() for callee in callees
    }
