"""Which language a file is in; parsing keeps nothing."""

from __future__ import annotations

import sys

import psutil
import pytest
from tree_sitter import Parser

from codespec.languages.registry import TEXT, notation_of
from codespec.syntax.parse import grammar, syntax_tree


@pytest.mark.parametrize(
    ("path", "language_id", "notation"),
    [
        ("a.zsh", "", "shell"),
        (".bashrc", "shellscript", "shell"),
        ("mix.exs", "elixir", "elixir"),
        ("App.vue", "vue", "markup"),
        ("show.html.erb", "", "markup"),
        ("a.py", "html", TEXT),  # too large to be parsed
        ("a.md", "markdown", "markdown"),
    ],
)
def test_what_ends_blocks_without_a_grammar(path, language_id, notation):
    assert notation_of(path, language_id) == notation


def test_a_text_that_was_parsed_goes_from_memory():
    def parse(n: int) -> None:
        for i in range(n):
            text = b"".join(b"name_%d_%d = %d\n" % (i, k, k) for k in range(5000))
            assert syntax_tree("python", text) is not None

    parse(3)
    before = psutil.Process().memory_info().rss
    parse(60)  # five megabytes
    assert psutil.Process().memory_info().rss - before < 2_500_000


def test_a_parse_leaves_no_object_behind():
    text = b"name = [1, 2]\n" * 20

    def parse(n: int) -> int:
        for _ in range(n):
            assert syntax_tree("python", text) is not None
        return sys.getallocatedblocks()

    before = parse(10)
    assert parse(500) - before < 100


def test_a_text_longer_than_a_parser_reads_at_once_is_parsed_as_a_whole():
    text = "".join(f'name_{k} = "ä€𝄞" + f({k})  # ü\n' for k in range(6000)).encode()
    tree = syntax_tree("python", text)
    assert tree is not None
    assert str(tree.root_node) == str(Parser(grammar("python")).parse(text).root_node)
    assert tree.root_node.end_byte == len(text)
