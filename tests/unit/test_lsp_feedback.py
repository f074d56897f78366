"""What becomes of offers reaches the user's statistics."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codespec.stats import LanguageStats, Stats, summary
from codespec_lsp.feedback import Feedback

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
    feedback.offered("1", "a", "python", 5, TEXT, 12.0, False)
    feedback.accepted("1")
    await asyncio.wait_for(looked.wait(), 30)
    await feedback.close()
    found = of_python(path)
    assert (found.n_accepted_chars, found.n_looked_at_chars) == (len(TEXT), len(TEXT))
    assert found.n_retained_chars == n_retained


@pytest.mark.asyncio
async def test_suggestions_that_are_typed_through_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "stats.db"
    feedback = Feedback(Stats(path), lambda uri, first, last: "", "session")
    feedback.offered("1", "a", "python", 0, "abc", 80.0, False)
    feedback.offered("2", "a", "python", 0, "bc", 2.0, True)
    feedback.offered("3", "a", "python", 0, "c", 4.0, True)
    for offer in ("1", "2", "2", "unknown"):  # the third never came before the user's eyes
        feedback.shown(offer)
    feedback.typed("python", 1)
    feedback.partially_accepted("2", 1)
    await feedback.close()
    found = of_python(path)
    assert (found.n_shown, found.n_accepted, found.n_accepted_chars) == (2, 1, 1)
    assert found.model_ms == (80.0, 80.0)
    assert found.cached_ms == (2.0, 2.0)
    assert found.n_typed_chars == 1
    assert found.written_share == 0.5
