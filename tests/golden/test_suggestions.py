"""From what a model says at a place to what is inserted there, case by case, by language."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.engine.postprocess import UnitStop, finish, place_in, shape_at
from codespec.index.trees import Trees
from codespec.types import Finish
from tests.golden.golden import Case, check, read

EXTENSIONS = {
    "python": "py", "javascript": "js", "typescript": "ts", "go": "go", "rust": "rs", "c": "c",
    "cpp": "cpp", "java": "java", "csharp": "cs", "php": "php", "ruby": "rb",
    "swift": "swift", "lua": "lua", "tsx": "tsx", "shell": "sh", "elixir": "ex",
    "markup": "vue", "other": "conf",
}  # fmt: skip
FILES = sorted(Path(__file__).with_name("suggestions").glob("*.txt"))
CASES = [case for file in FILES for case in read(file)]
TOKENIZER = ByteTokenizer()
ENDS: dict[str, Finish] = {end: end for end in get_args(Finish)}


def suggestion(case: Case) -> dict[str, str]:
    prefix, suffix = case.cursor
    place = place_in(Trees(), prefix, suffix, f"a.{EXTENSIONS[case.file.stem]}")
    shape = shape_at(place)
    stop = UnitStop(TOKENIZER, shape, place)
    emitted: list[int] = []
    for token in TOKENIZER.encode(case.given("model")).tolist():
        emitted.append(token)
        if stop(emitted):
            break
    text = TOKENIZER.decode(emitted).decode()
    ended = ENDS[case.options.get("ended", "stop")]
    finished = finish(text, stop.end(text), ended, shape, place)
    return {
        "shape": f"{shape.kind}: {shape.why}",
        "inserted": finished.text,
        "trimmed": "\n".join(finished.trimmed),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file.stem}: {case.name}")
def test_suggestion(case: Case, update_golden: bool):
    check(case, suggestion(case), update_golden)


def test_there_are_cases_of_every_language():
    assert len(CASES) >= 150
    assert {case.file.stem for case in CASES} == set(EXTENSIONS)
    assert len({(case.file, case.name) for case in CASES}) == len(CASES)
