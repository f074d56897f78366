"""Whatever a document holds and a model says: prompts show the document, and edits make the window
to what the answer says, or there are none."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.context.special_tokens import Special
from codespec.edits.formats.base import (
    EditedDocument,
    ModelAnswer,
    NextEditFormat,
    edits_in,
    prompt_of,
)
from codespec.edits.formats.registry import FORMATS, form_of

LINES = st.sampled_from(
    [
        "",
        "a",
        "  b = c(d)",
        "}",
        "return",
        "<|marker_1|>",
        "=======",
        "<|file_sep|>",
        "é\t",
        "x" * 99,
    ]
)
RUNS = st.tuples(LINES, st.sampled_from([1, 1, 1, 2, 12])).map(lambda run: [run[0]] * run[1])
"""A line, again and again."""
TEXTS = st.lists(RUNS, max_size=60).map(lambda runs: "\n".join(chain.from_iterable(runs)))
SAID = st.one_of(
    TEXTS,
    st.lists(
        st.one_of(LINES, st.sampled_from(["<|marker_2|>", ">>>>>>> UPDATED", "<|user_cursor|>"])),
        max_size=40,
    ).map("\n".join),
    TEXTS.map(lambda text: f"<|marker_1|>{text}<|marker_2|>"),
)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(text=TEXTS, at=st.floats(0, 1), said=SAID, is_cut=st.booleans())
def test_edits_make_the_window_to_the_answer(
    form: NextEditFormat, text: str, at: float, said: str, is_cut: bool
) -> None:
    document = EditedDocument("a.py", text, round(at * len(text)))
    prompt = prompt_of(form, document)
    if prompt is None:
        return
    assert tuple(document.lines[prompt.line : prompt.line + len(prompt.old)]) == prompt.old
    assert form_of("".join(prompt.parts)) is form
    assert prompt.cursor_line >= 0
    unchanged = "".join(prompt.unchanged).removesuffix("<|file_sep|>")
    assert edits_in(form, prompt, ModelAnswer(unchanged), "a.py") == []
    answer = ModelAnswer(said, is_cut)
    found = edits_in(form, prompt, answer, "a.py")
    rewritten = None if is_cut else form.rewritten(prompt, answer)
    made = list(prompt.old)
    for edit in sorted(found, key=lambda edit: -edit.line):
        start = edit.line - prompt.line
        assert tuple(made[start : start + len(edit.old)]) == edit.old
        made[start : start + len(edit.old)] = edit.new
    assert tuple(made) == (rewritten if found else prompt.old)
    assert rewritten is None or form.markers.search("\n".join(rewritten)) is None


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(text=TEXTS, at=st.floats(0, 1))
def test_no_text_of_a_document_is_a_marker_in_its_prompt(
    form: NextEditFormat, text: str, at: float
) -> None:
    prompt = prompt_of(form, EditedDocument("a.py", text, round(at * len(text))))
    if prompt is not None:
        shown = "".join(part for part in prompt.parts if not isinstance(part, Special))
        assert form.markers.search(shown) is None
        assert "".join("\n".join(prompt.old).split()) in "".join(shown.split())
