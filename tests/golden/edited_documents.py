"""Documents after a few changes, for prompts of next-edit formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import pairwise

from codespec.edits.base import LineChange
from codespec.edits.formats.base import EditedDocument

STORE = """import os


def load(name):
    with open(name) as f:
        return f.read()


def save(name, text):
    with open(name, "w") as f:
        f.write(text)


def copy(a, b):
    save(b, load(a))
"""
MODE = STORE.replace("def load(name):", "def load(name, mode):")
OPENED = MODE.replace("open(name) as f", "open(name, mode) as f")
USE = "from store.files import load\n\nload('a')\n"
LONG = "".join(f"def f{i}(a):\n    return a + {i}\n\n" for i in range(300))


def history(path: str, texts: Sequence[str]) -> tuple[LineChange, ...]:
    """The changes that make each text to the next one, which must be one run of lines each, with
    their places in the last one."""
    found: list[LineChange] = []
    for number, (before, now) in enumerate(pairwise(texts)):
        old, new = before.split("\n"), now.split("\n")
        codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        [(_, a, b, c, d)] = [code for code in codes if code[0] != "equal"]
        shift = (d - c) - (b - a)
        found = [replace(f, line=f.line + shift) if f.line >= b else f for f in found]
        found.append(LineChange(path, c, tuple(old[a:b]), tuple(new[c:d]), number))
    return tuple(found)


def after(
    texts: Sequence[str],
    at: str,
    path: str = "store/files.py",
    others: tuple[tuple[str, str], ...] = (),
    n_tokens: int = 4096,
) -> EditedDocument:
    """A document that had these texts. at: text that the cursor stands behind."""
    text = texts[-1]
    cursor = text.index(at) + len(at)
    return EditedDocument(path, text, cursor, history(path, texts), others, n_tokens)


CASES = {
    "one change": after([STORE, MODE], "load(name, mode"),
    "two changes": after([STORE, MODE, OPENED], "return f"),
    "another file": after([STORE, MODE], "load(name, mode", others=(("store/use.py", USE),)),
    "below the end": after([STORE, MODE], "load(a))\n"),
    "no change": after([STORE], "save(b, "),
    "a long file": after(
        [LONG, LONG.replace("a + 150\n", "b + 150\n")], "b + 150", "f.py", n_tokens=1 << 15
    ),
}
