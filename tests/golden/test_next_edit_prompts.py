"""Prompts of next-edit formats equal those that their makers' own code wrote for the same
documents. The file names that code, which was run once: it is no small dependency, as it brings a
web server, scipy and a model's download with it, or is Rust."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codespec.edits.formats.base import prompt_of
from codespec.edits.formats.registry import FORMATS, form_of
from tests.golden.edited_documents import CASES

WRITTEN = json.loads(Path(__file__).with_name("next_edit_prompts.json").read_text("utf-8"))


def test_there_are_prompts_of_every_format_for_every_case() -> None:
    assert set(WRITTEN) == {form.name for form in FORMATS}
    assert all(set(WRITTEN[form.name]["prompts"]) == set(CASES) for form in FORMATS)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_prompt_is_that_of_its_makers(form: object, name: str) -> None:
    [ours] = [known for known in FORMATS if known is form]
    prompt = prompt_of(ours, CASES[name])
    assert prompt is not None
    assert "".join(prompt.parts) == WRITTEN[ours.name]["prompts"][name]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_client_that_writes_it_is_understood(form: object) -> None:
    [ours] = [known for known in FORMATS if known is form]
    assert {form_of(prompt) for prompt in WRITTEN[ours.name]["prompts"].values()} == {ours}
