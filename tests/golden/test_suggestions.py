"""From what a model says at a place to what is inserted there, case by case, by language."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.languages.registry import records
from codespec.suggest import Candidate, UnitStop, finish, place_in, shape_at
from codespec.syntax.trees import TreeCache
from codespec.types import Finish
from tests.golden.golden import Case, check, read

EXTENSIONS = {record.name: record.extensions[0] for record in records() if record.extensions}
EXTENSIONS |= {"markup": ".vue", "other": ".conf"}
FILES = sorted(Path(__file__).with_name("suggestions").glob("*.txt"))
CASES = [case for file in FILES for case in read(file)]
TOKENIZER = ByteTokenizer()
ENDS: dict[str, Finish] = {end: end for end in get_args(Finish)}


def suggestion(case: Case) -> dict[str, str]:
    prefix, suffix = case.cursor
    place = place_in(TreeCache(), prefix, suffix, f"a{EXTENSIONS[case.file.stem]}")
    shape = shape_at(place)
    stop = UnitStop(TOKENIZER, shape, place)
    emitted: list[int] = []
    for token in TOKENIZER.encode(case.given("model")).tolist():
        emitted.append(token)
        if stop(emitted):
            break
    text = TOKENIZER.decode(emitted).decode()
    ended = ENDS[case.options.get("ended", "stop")]
    finished = finish(Candidate(place, text), stop.end(text), ended, shape)
    return {
        "shape": f"{shape.kind}: {shape.why.text}",
        "inserted": finished.text,
        "trimmed": "\n".join(trimming.text for trimming in finished.trimmed),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file.stem}: {case.name}")
def test_suggestion(case: Case, update_golden: bool):
    check(case, suggestion(case), update_golden)


def test_there_are_cases_of_every_language():
    assert len(CASES) >= 150
    assert {case.file.stem for case in CASES} == set(EXTENSIONS)
    assert len({(case.file, case.name) for case in CASES}) == len(CASES)
