"""Keys of reasons are for programs, texts for people."""

from __future__ import annotations

import re

import msgspec
import pytest

from codespec.index.selection import LeftOut
from codespec.reasons import NoSuggestion, Reason, ShapeReason, Trimming
from codespec.requests import Completion
from codespec.restraint import Restrained
from codespec.rules.exclusion import ExclusionRule
from codespec.types import Trace
from codespec.usage.suppression import PlaceKind, Suppression
from codespec_bench.everything import LeftOutStep

KINDS: tuple[type[Reason], ...] = (
    *(NoSuggestion, ShapeReason, Trimming),
    *(PlaceKind, Suppression, LeftOut, ExclusionRule, LeftOutStep, Restrained),
)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_texts_are_of_one_member_each(kind: type[Reason]) -> None:
    members = list(kind)
    assert len(kind.__members__) == len(members), "two members have one key"
    assert len({member.text for member in members}) == len(members)
    for member in members:
        assert re.fullmatch("[a-z]+(_[a-z0-9]+)*", member.value)
        assert kind(member.value) is member


def test_an_answer_carries_keys_alone() -> None:
    trace = Trace(shape_why=ShapeReason.IN_TEXT, trimmed=(Trimming.REPETITION, Trimming.SUFFIX))
    completion = Completion(why=NoSuggestion.NOTHING_LEFT, trace=trace)
    sent = msgspec.msgpack.encode(completion)
    assert msgspec.msgpack.decode(sent, type=Completion) == completion
    found = msgspec.msgpack.decode(sent)
    assert found["why"] == "nothing_left"
    assert found["trace"]["shape_why"] == "in_text"
    assert found["trace"]["trimmed"] == ["repetition", "suffix"]
    assert NoSuggestion.NOTHING_LEFT.text.encode() not in sent
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"why": NoSuggestion.NOTHING_LEFT.text}, Completion)


def test_a_detail_says_more_than_the_text() -> None:
    assert Completion().reason == ""
    assert Completion(why=NoSuggestion.TOO_SLOW).reason == NoSuggestion.TOO_SLOW.text
    assert Completion(why=NoSuggestion.EXCLUDED, detail="ignored by x").reason == "ignored by x"
