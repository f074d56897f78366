"""Progress reports of a completion in flight."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.engine.generation import INTERVAL_S, Suggested, Teller
from codespec.requests import CompletionRequest


class Telling:
    """A clock, and a teller that takes `finish_s` to finish what is new. told: (text, lines)."""

    def __init__(self, finish_s: float = 0.0) -> None:
        self.now, self.finish_s, self.is_late = 0.0, finish_s, False
        self.told, self.finished = [], []
        self._teller = Teller(
            lambda progress: self.told.append((progress.text, progress.lines)),
            bytes,
            0,
            self._finish,
            lambda: self.is_late,
            lambda: self.now,
        )

    def _finish(self, emitted: Sequence[int]) -> Suggested:
        self.now += self.finish_s
        self.finished.append(bytes(emitted))
        return Suggested(CompletionRequest("").insertion(bytes(emitted).decode().upper()))

    def __call__(self, text: str, after_s: float = 2 * INTERVAL_S) -> None:
        self.now += after_s
        self._teller(text.encode())


def test_lines_are_finished_where_there_are_new_ones():
    telling = Telling()
    for text in ("a", "a\nb", "a\nbc", "a\nbc\nd"):
        telling(text)
    assert [text for text, _ in telling.told] == ["a", "a\nb", "a\nbc", "a\nbc\nd"]
    assert telling.finished == [b"a\nb", b"a\nbc\nd"]


def test_what_takes_long_to_finish_is_told_less_often():
    telling = Telling(finish_s=9 * INTERVAL_S)
    for n in range(1, 100):
        telling("a\n" * n, INTERVAL_S)
    assert 5 < len(telling.finished) <= 100 / 9


def test_what_there_was_no_time_to_finish_is_not_told():
    telling = Telling()
    telling("a\nb")
    telling.is_late = True
    telling("a\nb\nc")
    assert [text for text, _ in telling.told] == ["a\nb"]
