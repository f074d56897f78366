"""Text made to trouble parsers, for the grammar of each language, where the indexer parses: it ends
no more than the child that parses, which has its limits, and every other file is indexed."""

from __future__ import annotations

import random
import string
import sys

import pytest

from codespec.index.parsers import ParserDiedError, Parsers
from codespec.index.selection import LeftOut, select
from codespec.languages.registry import parsed_languages, record_of
from tests.e2e.test_index_process import run
from tests.index_support import Workspace, workspace
from tests.reliability.amount import amount, chance, tell

__all__ = ["workspace"]

LANGUAGES = parsed_languages()
N_BYTES = 20_000
"""Bytes of a text, in several lines: one in a few long lines is taken for minified, and not
parsed."""
SHAPES: tuple[str, ...] = (
    "(", "[", "{", "a<", "a(b,", "a[b[", "{x:", "if (a) ", "if a:\n ", "else ", "a ? b : ", "!",
    "-", "*", "&", "&&", "<<A\n", "<a>", "</a>", "<?php ", "?>", '"', "'", "`", "${", "#{", "\\(",
    "/*", "*/", "//", "#if a\n", "#", "'''", '"""', "r#", "=begin\n", "[[", "[==[", "a.", "a::",
    "a->", "=> ", "=", "async ", "class A { ", "class A:\n  ", "fn f() { ", "fun(", "def f\n",
    "func f(", "function ", "lambda: ", "template<", "typename ", "switch (a) { case 1: ", "do ",
    "begin ", "end ", "\t", " \\\n", "\x00", "\x0c", "\ufeff", "\u202e", "é", "\U0001f600", "@a ",
    "@A(", "where T: ", "for (;;) ", "for x in ", "try { ", "let a = ", "import a, ", "a, ", "a; ",
)  # fmt: skip


def text_of(rng: random.Random) -> str:
    """Few pieces, many times; in lines of a hundred characters."""
    pieces = rng.sample(SHAPES, rng.randint(1, 4))
    if rng.random() < 0.3:
        pieces.append("".join(rng.choices(string.punctuation + " \n\tab0", k=rng.randint(1, 9))))
    unit = "".join(rng.choices(pieces, k=rng.randint(1, 6)))
    whole = unit * (N_BYTES // len(unit.encode()) + 1)
    return "\n".join(whole[i : i + 100] for i in range(0, len(whole), 100)) + "\n"


def file_of(language: str) -> str:
    return f"a{record_of(language).extensions[0]}"


def test_a_parser_answers_or_ends(workspace: Workspace) -> None:
    rng = chance()
    n_died = n_parsed = n_left_out = 0
    good = "def one(x):\n    return x\n"
    with Parsers(1) as parsers:
        for n in range(amount(2 * len(LANGUAGES))):
            language = LANGUAGES[n % len(LANGUAGES)]
            text = text_of(rng)
            try:
                found = parsers.select(file_of(language), text.encode())
            except ParserDiedError:
                n_died += 1
                assert parsers.select("a.py", good.encode()) == select("a.py", good.encode())
                continue
            assert found.why_not != LeftOut.MINIFIED, (language, text[:100])
            n_left_out += bool(found.why_not)
            n_parsed += not found.why_not
    tell(parsed=n_parsed, left_out=n_left_out, ended_the_child=n_died)
    assert n_parsed > n_left_out + n_died


@pytest.mark.skipif(sys.platform == "win32", reason="limits of memory")
def test_a_workspace_of_them_is_indexed(workspace: Workspace) -> None:
    """By the real indexer, with its parsers and its record of what killed them."""
    rng = chance()
    for language in LANGUAGES:
        workspace.write(f"bad_{language}_{file_of(language)}", text_of(rng))
        workspace.write(f"{language}/good_{file_of(language)}", f"name_of_{language} = value\n")
    done = run(workspace)
    assert done.returncode == 0, done.stderr
    paths = workspace.index().paths
    assert all(f"{language}/good_{file_of(language)}" in paths for language in LANGUAGES)
