"""Which language a file is in; parsing keeps nothing."""

from __future__ import annotations

import psutil
import pytest

from codespec.index.languages import TEXT, notation_of, syntax_tree


@pytest.mark.parametrize(
    ("path", "language_id", "notation"),
    [
        ("a.zsh", "", "shell"),
        (".bashrc", "shellscript", "shell"),
        ("mix.exs", "elixir", "elixir"),
        ("App.vue", "vue", "markup"),
        ("show.html.erb", "", "markup"),
        ("a.py", "html", TEXT),  # too large to be parsed
        ("a.md", "markdown", TEXT),
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
