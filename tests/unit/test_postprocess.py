"""Where completions end and what is trimmed, on text."""

from __future__ import annotations

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.engine.postprocess import BlockStop, finish_text

TOKENIZER = ByteTokenizer()


def complete(line_prefix, generated, suffix="", multiline=True, healed=b""):
    """What is inserted when the model generates this text, byte by byte."""
    stop = BlockStop(TOKENIZER, line_prefix, len(healed), multiline)
    emitted = []
    for token in healed + generated.encode():
        emitted.append(token)
        if stop(emitted):
            break
    return finish_text(TOKENIZER.decode(emitted), len(healed), suffix, stop)


@pytest.mark.parametrize(
    ("line_prefix", "generated", "inserted"),
    [
        ("x = ", "1\ny = 2\n", "1\ny = 2\n"),
        ("    x = ", "1\n    y = 2\nz = 3\n", "1\n    y = 2"),
        ("    x = ", "1\n\n    y = 2\n\n\nz", "1\n\n    y = 2"),
        ("\tif a:", "\n\t\tb()\nelse", "\n\t\tb()"),
        ("  return", " 1\n}\n", " 1"),
        ("    ", "pass   ", "pass"),
    ],
)
def test_a_block_ends_before_a_line_indented_less(line_prefix, generated, inserted):
    assert complete(line_prefix, generated) == inserted


def test_single_line():
    assert complete("x = ", "1\ny = 2", multiline=False) == "1"
    assert complete("def f():", "\n    return 1\n    x", multiline=False) == "\n    return 1"


def test_held_back_bytes_are_not_inserted_again():
    assert complete("    ret", "urn x\n", healed=b"ret", multiline=False) == "urn x"


def test_half_a_character_is_dropped():
    stop = BlockStop(TOKENIZER, "", 0, True)
    assert finish_text("é𝒳".encode()[:4], 0, "", stop) == "é"


@pytest.mark.parametrize(
    ("generated", "suffix", "inserted"),
    [
        ("a, b)", ")\nnext", "a, b"),
        ("a, b)", "\nnext", "a, b)"),
        ("a\n    b()\n    c()", "\n    b()\n", "a"),
        ("a\n    b()", "\n\n    c()\n", "a\n    b()"),
    ],
)
def test_what_follows_the_cursor_is_not_repeated(generated, suffix, inserted):
    assert complete("    f(", generated, suffix) == inserted
