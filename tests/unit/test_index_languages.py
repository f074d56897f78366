"""Parsing keeps nothing."""

from __future__ import annotations

import psutil

from codespec.index.languages import syntax_tree


def test_a_text_that_was_parsed_goes_from_memory():
    def parse(n: int) -> None:
        for i in range(n):
            text = b"".join(b"name_%d_%d = %d\n" % (i, k, k) for k in range(5000))
            assert syntax_tree("python", text) is not None

    parse(3)
    before = psutil.Process().memory_info().rss
    parse(60)  # five megabytes
    assert psutil.Process().memory_info().rss - before < 2_500_000
