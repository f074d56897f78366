"""Which name `bench hop` changes, and what it asks after each change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from codespec_bench import hop_edits
from codespec_bench.editor import Answer, Editor, Reply
from codespec_bench.hop_edits import chosen_name

TEXT = "\n".join(
    [
        "self.often(1)",
        "self.often(2)",
        "'\U0001d11e' + self.often(enough)",
        "self.rare() + enough.often(3)",
        "enough",
        "notes notes",
        "notes",
        "notes",
    ]
)


class Recorder:
    """A server that has a next edit after each change but the first."""

    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []

    def change(self, uri: str, version: int, line: int, start: int, end: int, text: str) -> None:
        self.said.append((version, line, start, end, text))

    def ask(self, uri: str, line: int, character: int) -> int:
        self.said.append(("suggestion", line, character))
        return -1

    def ask_edit(self, uri: str, version: int, line: int, character: int) -> int:
        self.said.append(("edit", version, line, character))
        return version

    def wait(self, request: int) -> Reply:
        return Reply(float("inf"), (), Answer(n_offers=int(request > 8), engine_ms=request))


@pytest.mark.parametrize(
    ("n_places", "name"), [(0, "rare"), (1, "enough"), (2, "enough"), (3, "often"), (4, "often")]
)
def test_the_name_is_one_that_code_uses(n_places: int, name: str) -> None:
    """Not a word of many languages, nor one that nothing is called or reached into by."""
    assert chosen_name(TEXT.split("\n"), n_places) == name


def test_without_a_name_there_is_nothing_to_change() -> None:
    assert chosen_name(["self.x()", "only words"], 3) == ""


@pytest.fixture
def measured(tmp_path: Path) -> Callable[[str, int], tuple[list[object], dict[str, list[float]]]]:
    def measure(text: str, n_edits: int) -> tuple[list[object], dict[str, list[float]]]:
        file = tmp_path / "a.py"
        file.write_text(text, "utf-8")
        recorder, times = Recorder(), dict[str, list[float]]()
        hop_edits.measure(cast(Editor, recorder), file, 7, n_edits, 0.0, lambda words: None, times)
        return list(recorder.said), times

    return measure


def test_each_change_asks_for_what_follows(
    measured: Callable[[str, int], tuple[list[object], dict[str, list[float]]]],
) -> None:
    said, times = measured(TEXT, 3)
    assert said == [
        (8, 0, 10, 10, "_x"), ("suggestion", 0, 12), ("edit", 8, 0, 12),
        (9, 1, 10, 10, "_x"), ("suggestion", 1, 12), ("edit", 9, 1, 12),
        (10, 2, 17, 17, "_x"), ("suggestion", 2, 19), ("edit", 10, 2, 19),
    ]  # fmt: skip
    assert times["no next edit, in the engine"] == [8]
    assert times["next edit, in the engine"] == [9, 10]
    assert (len(times["no next edit"]), len(times["next edit"])) == (1, 2)


def test_no_edits_are_asked_for_where_none_are_wanted(
    measured: Callable[[str, int], tuple[list[object], dict[str, list[float]]]],
) -> None:
    assert measured(TEXT, 0) == ([], {})
    assert measured("", 3) == ([], {})
