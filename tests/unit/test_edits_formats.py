"""Formats of next-edit models: answers become small edits or none, and text is never taken for a
marker."""

from __future__ import annotations

import re

import numpy as np
import pytest

from codespec.backends.byte_tokens import ByteTokenizer
from codespec.context.special_tokens import Special, encoded, specials_in
from codespec.edits.base import LineChange, LineEdit
from codespec.edits.formats.base import (
    EditedDocument,
    EditPrompt,
    ModelAnswer,
    NextEditFormat,
    earlier_windows,
    edits_in,
    hunk_of,
    line_edits,
    prompt_of,
    undone,
)
from codespec.edits.formats.registry import FORMATS, form_of, form_spoken, forms
from codespec.edits.formats.sweep import Sweep
from codespec.edits.formats.zeta2 import Zeta2, closed
from codespec.edits.formats.zeta21 import block_offsets
from tests.golden.edited_documents import CASES, MODE, OPENED, STORE, USE, after

FORMS = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
SWEEP, ZETA2, ZETA21 = FORMATS
WINDOW = OPENED.split("\n")[3:6]


def asked(form: NextEditFormat, document: EditedDocument) -> EditPrompt:
    prompt = prompt_of(form, document)
    assert prompt is not None
    return prompt


def edits(
    form: NextEditFormat, document: EditedDocument, text: str, is_cut: bool = False
) -> list[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    prompt = asked(form, document)
    earlier = earlier_windows(document, prompt.line, len(prompt.old))
    found = edits_in(form, prompt, ModelAnswer(text, is_cut), document.path, earlier)
    return [(edit.line, edit.old, edit.new) for edit in found]


def answer_for(form: NextEditFormat, document: EditedDocument, new: str) -> str:
    """The answer that makes the document to `new`."""
    prompt = asked(form, document)
    after = len(document.lines) - prompt.line - len(prompt.old)
    rows = new.split("\n")
    window = "\n".join(rows[prompt.line : len(rows) - after])
    if isinstance(form, Sweep):
        assert window.startswith(prompt.prefill)
        return window[len(prompt.prefill) :] + "\n"
    if isinstance(form, Zeta2):
        return f"{closed(window)}>>>>>>> UPDATED\n"
    last = len(block_offsets("\n".join(prompt.old)))
    marks = [f"<|marker_{i}|>" for i in range(1, last + 1)]
    return marks[0] + window + "".join(marks[1:])


@FORMS
def test_a_changed_line_is_one_edit_of_that_line(form: NextEditFormat) -> None:
    document = after([STORE, MODE], "load(name, mode")
    answer = answer_for(form, document, OPENED)
    assert edits(form, document, answer) == [
        (4, ("    with open(name) as f:",), ("    with open(name, mode) as f:",))
    ]


@FORMS
def test_lines_are_inserted_and_deleted(form: NextEditFormat) -> None:
    document = after([STORE, MODE], "with open(name)")
    longer = MODE.replace("        return f.read()\n", "        text = f.read()\n    return text\n")
    changed = [(5, ("        return f.read()",), ("        text = f.read()", "    return text"))]
    assert edits(form, document, answer_for(form, document, longer)) == changed
    logged = MODE.replace("        return", "        log(f)\n        return")
    assert edits(form, document, answer_for(form, document, logged)) == [
        (5, (), ("        log(f)",))
    ]
    document = after([MODE, logged], "with open(name)")
    shorter = logged.replace("        return f.read()\n", "")
    assert edits(form, document, answer_for(form, document, shorter)) == [
        (6, ("        return f.read()",), ())
    ]


@FORMS
def test_what_stands_at_or_after_the_cursor_comes_first(form: NextEditFormat) -> None:
    document = after([STORE, MODE], "return f")
    both = OPENED.replace("f.read()", "f.read(1)").replace(
        "load(name, mode)", "load(name, mode, n)"
    )
    if form is SWEEP:  # the first line of the window is prefilled
        both = both.replace("load(name, mode, n)", "load(name, mode)")
    lines = [line for line, _, _ in edits(form, document, answer_for(form, document, both))]
    assert lines == ([4] if form is SWEEP else [3])
    below = MODE.replace("def save(name, text)", "def save(name, text, mode)")
    below = below.replace("open(name) as f", "open(name, mode) as f")
    lines = [line for line, _, _ in edits(form, document, answer_for(form, document, below))]
    assert lines == [8, 4]


@FORMS
def test_nothing_of_an_answer_that_was_cut_or_changes_nothing(form: NextEditFormat) -> None:
    document = after([STORE, MODE], "load(name, mode")
    answer = answer_for(form, document, OPENED)
    assert edits(form, document, answer) != []
    assert edits(form, document, answer, is_cut=True) == []
    assert edits(form, document, answer_for(form, document, MODE)) == []


@FORMS
def test_nothing_that_takes_the_last_change_back(form: NextEditFormat) -> None:
    document = after([STORE, MODE, OPENED], "return f")
    prompt = asked(form, document)
    assert prompt.old[0] in ("def load(name, mode):", "import os")
    assert edits(form, document, answer_for(form, document, MODE)) == []


@FORMS
def test_an_unchanged_answer_is_what_is_drafted_from(form: NextEditFormat) -> None:
    for document in CASES.values():
        prompt = asked(form, document)
        unchanged = ModelAnswer("".join(prompt.unchanged).removesuffix("<|file_sep|>"))
        assert form.rewritten(prompt, unchanged) == prompt.old


@FORMS
def test_of_a_clients_prompt_it_is_the_same(form: NextEditFormat) -> None:
    for document in CASES.values():
        prompt = asked(form, document)
        unchanged = "".join(prompt.unchanged).removesuffix("<|file_sep|>")
        unchanged = unchanged.removesuffix("<[end▁of▁sentence]>")
        found = form.unchanged("".join(prompt.parts))
        # But for a line end behind a cursor at the window's end.
        assert re.sub("\n+$|\n+(?=>)", "", found) == re.sub("\n+$|\n+(?=>)", "", unchanged)


@pytest.mark.parametrize("form", [SWEEP, ZETA2], ids=lambda form: form.name)
def test_nothing_of_an_answer_that_begins_with_a_marker(form: NextEditFormat) -> None:
    document = after([STORE, MODE], "load(name, mode")
    assert edits(form, document, "<|file_sep|>" + answer_for(form, document, OPENED)) == []
    assert edits(form, document, "<|user_cursor|>".join(["", ""])) == [] or form is ZETA2


def test_zeta_2_says_that_nothing_is_to_be_edited() -> None:
    assert edits(ZETA2, CASES["one change"], "NO_EDITS\n>>>>>>> UPDATED\n") == []


def test_the_cursor_in_an_answer_is_no_text() -> None:
    document = CASES["one change"]
    for form in (ZETA2, ZETA21):
        answer = answer_for(form, document, OPENED).replace("mode) as", "mode<|user_cursor|>) as")
        [(_, _, new)] = edits(form, document, answer)
        assert new == ("    with open(name, mode) as f:",)


def test_sweep_inserts_nothing_above_the_cursor_alone_and_few_lines() -> None:
    document = after([STORE, MODE], "return f")
    assert edits(SWEEP, document, "    log(name)\n" + "\n".join(WINDOW[1:]) + "\n") != []
    above = MODE.replace("    with open(name) as f", "    log(name)\n    with open(name) as f")
    document = after([STORE, MODE], "with open(name)")
    assert edits(SWEEP, document, answer_for(SWEEP, document, above)) == []
    for n, is_edit in ((20, True), (21, False)):
        many = MODE.replace("f.read()\n", "f.read()\n" + "    x\n" * n)
        assert (edits(SWEEP, document, answer_for(SWEEP, document, many)) != []) == is_edit


def test_sweep_rewrites_no_large_part_above_the_cursor() -> None:
    old = "".join(f"a{i}\n" for i in range(12))
    document = EditedDocument("f.py", old, old.index("a2"))
    prompt = asked(SWEEP, document)
    assert prompt.prefill == "a0\n"
    six = "".join(f"b{i}\n" for i in range(1, 7))
    five = "a1\n" + "".join(f"b{i}\n" for i in range(2, 7))
    assert edits(SWEEP, document, f"{six}a7\n") == []
    assert edits(SWEEP, document, f"{five}a7\n") != []


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no marker",
        "<|marker_1|>one marker",
        "<|marker_0|>a<|marker_1|>",
        "<|marker_1|>a<|marker_9|>",
        "<|marker_2|>a<|marker_1|>",
        "text <|marker_1|>a<|marker_2|>",
        "<|marker_1|>a<|marker_2|> text",
    ],
)
def test_spans_of_zeta_2_1_that_are_none(answer: str) -> None:
    assert edits(ZETA21, CASES["one change"], answer) == []


def test_zeta_2_1_writes_a_span_of_blocks() -> None:
    text = "".join(f"first {i}\n" for i in range(8)) + "\n"
    text += "".join(f"second {i}\n" for i in range(8)) + "\n}\n"
    text += "".join(f"third {i}\n" for i in range(8))
    assert [text[at:].partition("\n")[0] for at in block_offsets(text)] == [
        "first 0",
        "second 0",
        "third 0",
        "",
    ]
    document = EditedDocument("f.py", text, text.index("second 3"))
    span = text[block_offsets(text)[1] : block_offsets(text)[2]].replace("second 3", "other")
    answer = f"<|marker_2|>{span}<|marker_3|><[end▁of▁sentence]>"
    assert edits(ZETA21, document, answer) == [(12, ("second 3",), ("other",))]
    assert edits(ZETA21, document, "<|marker_2|><|marker_2|>") == []


def test_blocks_are_short_enough_and_begin_well() -> None:
    lines = [f"x{i}" for i in range(16)] + ["}", "return", "end;", "y"]
    text = "\n".join(lines) + "\n"
    assert [text[at:].partition("\n")[0] for at in block_offsets(text)] == ["x0", "y", ""]
    assert block_offsets("") == [0, 0]
    assert block_offsets("a") == [0, 1]


# --- text is no marker ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["x = '<|file_sep|>'", "<<<<<<< CURRENT", "=======", "# <|marker_1|>", "y = '<|user_cursor|>'",
     "z = '<|cursor|>'", ">>>>>>> UPDATED", "<[fim-middle]>"],
)  # fmt: skip
@FORMS
def test_a_document_that_spells_markers_is_asked_about_exactly_or_not_at_all(
    form: NextEditFormat, line: str
) -> None:
    spelled = MODE.replace("    with", f"{line}\n    with", 1)
    document = after(
        [STORE.replace("    with", f"{line}\n    with", 1), spelled], "load(name, mode"
    )
    prompt = prompt_of(form, document)
    if form.markers.search(line):
        assert prompt is None
        return
    assert prompt is not None
    assert line in prompt.old
    markers = {str(part): 1000 + n for n, part in enumerate(prompt.parts) if is_special(part)}
    tokens = encoded(prompt.parts, markers, ByteTokenizer())
    n_special = sum(map(is_special, prompt.parts))
    assert int((tokens >= 1000).sum()) == n_special
    text = "".join(part for part in prompt.parts if not is_special(part))
    assert ByteTokenizer().decode(tokens).decode() == text


def is_special(part: str) -> bool:
    return isinstance(part, Special)


@pytest.mark.parametrize(
    ("form", "marker"),
    [(SWEEP, "<|cursor|>"), (ZETA2, "<<<<<<< CURRENT"), (ZETA21, "<|marker_1|>")],
)
def test_other_files_and_changes_that_spell_markers_are_left_out(
    form: NextEditFormat, marker: str
) -> None:
    others = (("a.md", f"{marker}\n"), ("store/use.py", USE))
    document = after([STORE, MODE], "load(name, mode", others=others)
    change = LineChange("a.md", 0, ("x",), (marker,), 9)
    prompt = asked(form, EditedDocument(
        document.path, document.text, document.cursor, (*document.changes, change), others
    ))  # fmt: skip
    text = "".join(part for part in prompt.parts if not is_special(part))
    assert USE.strip() in text
    assert "a.md" not in text


@FORMS
def test_markers_are_ids_and_all_else_is_text(form: NextEditFormat) -> None:
    tokenizer = ByteTokenizer()
    prompt = asked(form, CASES["another file"])
    ids = {str(part): 300 + n for n, part in enumerate(prompt.parts) if is_special(part)}
    tokens = encoded(prompt.parts, ids, tokenizer)
    assert [int(t) for t in tokens if t >= 300] == [
        ids[part] for part in prompt.parts if is_special(part)
    ]
    spelled_out = encoded(prompt.parts, {}, tokenizer)
    assert tokenizer.decode(spelled_out).decode() == "".join(prompt.parts)


def test_a_text_is_encoded_as_a_whole_where_a_marker_is_spelled_out() -> None:
    class Recorded(ByteTokenizer):
        def encode(self, text: str | bytes) -> np.ndarray:
            seen.append(text)
            return super().encode(text)

    seen: list[str | bytes] = []
    parts = ("a", Special("<|x|>"), "b", Special("<|y|>"), "c")
    encoded(parts, {"<|y|>": 300}, Recorded())
    assert seen == ["a<|x|>b", "c"]


def test_a_clients_special_tokens_are_found_by_the_longest_spelling() -> None:
    assert specials_in("a<x><xy>b", {"<x>", "<xy>", "<x><"}) == ("a", "<x><", "xy>b")
    assert specials_in("a", set()) == ("a",)
    assert specials_in("", {"<x>"}) == ()
    found = specials_in("<x>a", {"<x>"})
    assert [is_special(part) for part in found] == [True, False]


# --- windows, hunks, changes ------------------------------------------------------------------


@FORMS
def test_a_window_of_very_long_lines_is_left_alone(form: NextEditFormat) -> None:
    document = EditedDocument("f.js", "a = 1\n" + "x" * 601 + "\n", 3)
    assert prompt_of(form, document) is None
    assert prompt_of(form, EditedDocument("f.js", "a = 1\n" + "x" * 600 + "\n", 3)) is not None


@pytest.mark.parametrize("text", ["", "\n", "\n\n\n", "a", "a\n", "\na"])
@FORMS
def test_small_documents(form: NextEditFormat, text: str) -> None:
    for cursor in range(len(text) + 1):
        prompt = prompt_of(form, EditedDocument("f.py", text, cursor))
        if prompt is None:
            assert form is SWEEP
            assert not text.strip()
            continue
        lines = text.split("\n")
        assert tuple(lines[prompt.line : prompt.line + len(prompt.old)]) == prompt.old


@FORMS
def test_a_prompt_stays_within_its_budget(form: NextEditFormat) -> None:
    document = CASES["a long file"]
    small = EditedDocument(
        document.path, document.text, document.cursor, document.changes, (("x.py", USE * 99),), 2048
    )
    prompt = asked(form, small)
    assert len("".join(prompt.parts)) < 3 * 2048 * 1.5


@FORMS
def test_large_changes_and_files_are_left_out_of_a_prompt(form: NextEditFormat) -> None:
    document = CASES["one change"]
    large = tuple("x" * 399 for _ in range(20))
    change = LineChange("other.py", 0, large, large[:-1], 0)
    others = (("large.py", "y = 1\n" * 99_999),)
    crowded = EditedDocument(
        document.path, document.text, document.cursor, (change, *document.changes), others, 1024
    )
    text = "".join(asked(form, crowded).parts)
    assert len(text) < 6 * 1024
    assert "xxx" not in text
    assert "def load(name, mode" in text


@FORMS
def test_an_answer_may_be_somewhat_longer_than_its_window(form: NextEditFormat) -> None:
    small = asked(form, EditedDocument("f.py", "a\n", 0))
    assert small.max_tokens == 257
    assert asked(form, CASES["two changes"]).max_tokens < 1024
    wide = EditedDocument("f.py", ("x" * 599 + "\n") * 9, 0)
    assert asked(form, wide).max_tokens <= 1024


def test_changes_are_undone_by_their_places() -> None:
    document = CASES["two changes"]
    assert undone(document.lines, document.changes) == STORE.split("\n")
    first = tuple(MODE.split("\n")[3:6])
    assert earlier_windows(document, 3, 3) == [first, tuple(STORE.split("\n")[3:6])]
    assert earlier_windows(document, 5, 3) == []
    gone = LineChange(document.path, 4, ("x",), ("not there",), 7)
    assert undone(document.lines, [gone]) == document.lines


def test_a_hunk_shows_the_lines_around_it_as_they_were_then() -> None:
    document = CASES["two changes"]
    first, last = (hunk_of(document, change, 1) for change in document.changes)
    assert first.below == ("    with open(name) as f:",)
    assert last.above == ("def load(name, mode):",)
    assert last.unified == (
        "@@ -4,3 +4,3 @@\n def load(name, mode):\n-    with open(name) as f:\n"
        "+    with open(name, mode) as f:\n         return f.read()\n"
    )
    unknown = LineChange("gone.py", 7, ("a",), ("b",), 9)
    assert hunk_of(document, unknown, 3).unified == "@@ -8,1 +8,1 @@\n-a\n+b\n"


def test_edits_make_one_text_to_the_other() -> None:
    old, new = STORE.split("\n"), OPENED.replace("import os\n", "").split("\n")
    made: list[str] = list(old)
    for edit in reversed(line_edits("p", 0, old, new)):
        assert isinstance(edit, LineEdit)
        assert tuple(made[edit.line : edit.line + len(edit.old)]) == edit.old
        made[edit.line : edit.line + len(edit.old)] = edit.new
    assert made == new


# --- which model, which prompt ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "vocabulary", "name"),
    [
        ("Sweep Next Edit 0.5B sweep-next-edit-0.5b.q8_0.gguf", {"<|file_sep|>"}, "sweep"),
        ("sweep-next-edit-1.5b", {"<|fim_prefix|>"}, None),
        ("zed-industries_zeta-2-Q4_K_M.gguf", {"<[fim-suffix]>"}, "zeta2"),
        ("Zeta 2.1 zeta-2.1-q8_0.gguf", {"<[fim-suffix]>"}, "zeta2.1"),
        ("Seed-Coder-8B-Base", {"<[fim-suffix]>"}, None),
        ("zeta.Q4_K_M.gguf", {"<|fim_prefix|>"}, "zeta1"),
        ("Qwen2.5-Coder-1.5B", {"<|file_sep|>"}, None),
    ],
)
def test_models_are_told_by_name_and_vocabulary(
    names: str, vocabulary: set[str], name: str | None
) -> None:
    assert getattr(form_spoken(names, vocabulary), "name", None) == name


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "def f():\n",
        "<|file_sep|>a.py\nx\n<|file_sep|>b.py\n<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
        "<[fim-suffix]>b<[fim-prefix]>a<[fim-middle]>",
        "<[fim-suffix]>\n<<<<<<< CURRENT\n=======\n<[fim-prefix]>a<[fim-middle]>",
        "<[fim-suffix]>'<|marker_1|>'<[fim-prefix]>a<[fim-middle]>",
        "<|fim_prefix|>x = '<|user_cursor|>'\n<|fim_suffix|>\n<|fim_middle|>",
        "def f():\n    return '<|file_sep|>original/ <|file_sep|>current/ <|file_sep|>updated/'\n",
    ],
)
def test_other_prompts_are_none(prompt: str) -> None:
    assert form_of(prompt) is None


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("### Instruction:\n### User Edits:\n### User Excerpt:\n<|editable_region_start|>\na\n"
         "### Response:", "zeta1"),
        ("<[fim-suffix]>b\n<[fim-prefix]><filename>a.py\n<|marker_1|>a<|user_cursor|>\n<|marker_2|>"
         "\n<[fim-middle]><|marker_1|>", "zeta2.1"),
        ("<[fim-suffix]>b\n<[fim-prefix]><filename>a.py\n<<<<<<< CURRENT\na<|user_cursor|>\n"
         "=======\n<[fim-middle]>a", "zeta2"),
    ],
)  # fmt: skip
def test_prompts_may_begin_the_answer_or_end_without_a_line_end(prompt: str, name: str) -> None:
    assert getattr(form_of(prompt), "name", None) == name


def test_of_a_begun_answer_the_rest_is_drafted() -> None:
    region = "<|marker_1|>def f():\n    return 1<|user_cursor|>\n<|marker_2|>\n"
    prompt = f"<[fim-suffix]>b\n<[fim-prefix]><filename>a.py\n{region}<[fim-middle]>"
    rest = "def f():\n    return 1\n<|marker_2|>"
    assert ZETA21.unchanged(prompt) == f"<|marker_1|>{rest}"
    assert ZETA21.unchanged(f"{prompt}<|marker_1|>") == rest


def test_forms_have_names_of_their_own() -> None:
    names = [form.name for form in forms()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in names)
