"""Fates of suggestions reach the user's statistics."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest

from codespec.usage.statistics import LanguageStats, Stats, summary
from codespec_lsp.documents import Document
from codespec_lsp.positions import DocumentPlace
from codespec_lsp.suggestions.answers import Answer, Ask
from codespec_lsp.suggestions.feedback import Feedback, Offered
from codespec_lsp.suggestions.offers import Offers
from codespec_lsp.suggestions.suggestion import Tally

TEXT = "first line\nsecond line\n"


def of_python(path: Path) -> LanguageStats:
    return next(row for row in summary(path=path) if row.language == "python")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("now", "n_retained"),
    [
        (f"x\n{TEXT}y", len(TEXT)),
        ("second line, changed", len("second line")),
        ("all of it is other text", 0),
    ],
)
async def test_what_is_left_of_an_accepted_text_is_counted_later(
    tmp_path: Path, now: str, n_retained: int
) -> None:
    path = tmp_path / "stats.db"
    looked = asyncio.Event()

    def lines_of(uri: str, first: int, last: int) -> str:
        looked.set()
        assert uri == "a"
        assert first <= 5 < last
        return now

    feedback = Feedback(Stats(path), lines_of, "session", look_again_s=0.0)
    offer = Offered("1", "a", "python", 5, TEXT, Tally(), 12.0)
    feedback.shown(offer)
    feedback.accepted(offer)
    await asyncio.wait_for(looked.wait(), 30)
    await feedback.close()
    found = of_python(path)
    assert (found.n_accepted_chars, found.n_looked_at_chars) == (len(TEXT), len(TEXT))
    assert found.n_retained_chars == n_retained


@pytest.mark.asyncio
async def test_a_suggestion_counts_once_however_it_is_typed_through(tmp_path: Path) -> None:
    path = tmp_path / "stats.db"
    feedback = Feedback(Stats(path), lambda uri, first, last: "", "session")
    tally = Tally()
    whole = Offered("1", "a", "python", 0, "abcde", tally, 80.0)
    typed = Offered("2", "a", "python", 0, "bcde", tally, 2.0, cached=True)
    rest = Offered("3", "a", "python", 0, "de", tally, 4.0, cached=True)
    assert [feedback.shown(offer) for offer in (whole, whole, typed)] == [True, False, False]
    feedback.typed("python", 1)
    feedback.partially_accepted(typed, 1)
    feedback.partially_accepted(typed, 2)
    feedback.accepted(rest)
    await feedback.close()
    found = of_python(path)
    assert (found.n_shown, found.n_accepted, found.n_accepted_chars) == (1, 1, 4)
    assert found.n_shown_chars == 5
    assert found.model_ms == (80.0, 80.0)
    assert found.cached_ms is None
    assert found.n_typed_chars == 1
    assert found.written_share == 0.8


@pytest.mark.asyncio
@pytest.mark.parametrize("n_by_word", [0, 3])
async def test_an_accepted_alternative_counts_with_its_own_length(
    tmp_path: Path, n_by_word: int
) -> None:
    path = tmp_path / "stats.db"
    feedback = Feedback(Stats(path), lambda uri, first, last: "", "session")
    tally = Tally()
    text = "(a + b) * (b - a)"
    longer = Offered("2", "a", "python", 0, text, tally)
    feedback.shown(Offered("1", "a", "python", 0, "a + b", tally))
    feedback.partially_accepted(longer, n_by_word)
    rest = Offered("3", "a", "python", 0, text[n_by_word:], tally)
    feedback.accepted(rest if n_by_word else longer)
    await feedback.close()
    found = of_python(path)
    assert (found.n_shown, found.n_accepted) == (1, 1)
    assert (found.n_shown_chars, found.n_accepted_chars) == (len(text), len(text))


@pytest.mark.asyncio
async def test_suggestions_made_before_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "stats.db"
    feedback = Feedback(Stats(path), lambda uri, first, last: "", "session")
    feedback.shown(Offered("1", "a", "python", 0, "abc", Tally(), 80.0))
    feedback.shown(Offered("2", "a", "python", 0, "bc", Tally(), 2.0, cached=True))
    await feedback.close()
    found = of_python(path)
    assert (found.n_shown, found.n_accepted) == (2, 0)
    assert (found.model_ms, found.cached_ms) == ((80.0, 80.0), (2.0, 2.0))


@pytest.mark.asyncio
async def test_what_is_accepted_by_word_while_it_grows_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "stats.db"
    whole, now = "first line\nsecond line\n", "first line\nsecond"
    looked = asyncio.Event()

    def lines_of(_uri: str, _first: int, _last: int) -> str:
        looked.set()
        return now

    offers = Offers(Stats(path), lines_of, count(1), look_again_s=0.05)
    document = Document("a", "python", 1, "")
    ask = Ask(document.snapshot(DocumentPlace(0, 0), "utf-32", 10, 10), "", "", invoked=False)
    tally = Tally()
    first = offers.make(ask, ask.snapshot.insertion("first line"), tally)
    offers.made(ask, Answer((first,)), 1.0)
    grown = offers.grown(ask, first, ask.snapshot.insertion(whole), tally)
    offers.partially_accepted(first.id, len("first"))  # on its way, when it grew
    offers.partially_accepted(grown.id, len("first line"))
    offers.partially_accepted(grown.id, len(now))
    await asyncio.wait_for(looked.wait(), 30)
    await offers.close()
    found = of_python(path)
    assert (found.n_shown, found.n_accepted) == (1, 1)
    assert found.n_accepted_chars == found.n_looked_at_chars == found.n_retained_chars == len(now)
