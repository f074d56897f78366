"""After any edits a live document equals a fresh one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.documents.live import LiveDocument
from codespec.syntax.text import MAX_PIECE, safe_cuts
from tests.index_support import GPT2, QWEN2, SplitTokenizer, windows

ATOMS = [
    "a",
    "b1",
    "_",
    "  ",
    "    ",
    " ",
    "\t",
    "\n",
    "\n\n",
    "\r",
    ":",
    "()",
    "}",
    "é",
    "\U0001f600",
]
texts = st.lists(st.sampled_from(ATOMS), max_size=40).map("".join)
long_lines = st.sampled_from(["", "", "", "x " * MAX_PIECE])
# Where to cut, how much to remove, what to insert, where the cursor goes: as shares of the length.
shares = st.floats(0, 1)
edits = st.lists(st.tuples(shares, shares, texts, shares), max_size=6)


@pytest.mark.parametrize("expression", [GPT2, QWEN2])
@settings(max_examples=60, deadline=None)
@given(text=texts, line=long_lines, edits=edits, cursor=shares, emitted=texts)
def test_equals_a_fresh_document(
    expression: str,
    text: str,
    line: str,
    edits: list[tuple[float, float, str, float]],
    cursor: float,
    emitted: str,
) -> None:
    tokenizer = SplitTokenizer(expression)
    cuts = safe_cuts(tokenizer)
    document = LiveDocument(tokenizer, cuts)
    text += line
    at = int(cursor * len(text))
    document.update(text[:at], text[at:])
    for where, how_much, insert, cursor in edits:
        document.before.assign(np.concatenate((document.left, tokenizer.encode(emitted))))
        start = int(where * len(text))
        end = start + int(how_much**3 * (len(text) - start))
        text = text[:start] + insert + text[end:]
        at = int(cursor * len(text))
        document.update(text[:at], text[at:])
    fresh = LiveDocument(SplitTokenizer(expression), cuts)
    fresh.update(text[:at], text[at:])
    assert np.array_equal(document.left, fresh.left)
    assert np.array_equal(document.right, fresh.right)
    if not line:
        assert np.array_equal(document.left, tokenizer.encode(text[:at]))
        assert np.array_equal(document.right, tokenizer.encode(text[at:]))
    for mine, its in ((document.before, fresh.before), (document.after, fresh.after)):
        assert np.array_equal(mine.text, its.text)
        for window in set(windows(mine.text[:60], 2)):
            string = np.array(window, np.int32)
            assert mine.count(string) == its.count(string)
            assert mine.draft(string, 5).tokens.tolist() == its.draft(string, 5).tokens.tolist()
