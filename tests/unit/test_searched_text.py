"""Texts in which places are looked for: what is known of one version holds for the next."""

from __future__ import annotations

import random

import pytest

from codespec.edits.searched_text import MAX_FOUND, MAX_LINE, SearchedTexts

NEEDLES = ("load", "a", "fetch", "x", "none of them")
BODIES = ("load(a)", "fetch(x)", "", "a load of a", "load" * MAX_LINE, "upload")


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_found_again_as_in_a_text_that_was_never_seen(seed: int) -> None:
    rng = random.Random(seed)
    texts = SearchedTexts(4)
    lines = rng.choices(BODIES, k=rng.choice((5, 40, 2 * MAX_FOUND)))
    for _ in range(6):
        text = "\n".join(lines)
        kept = texts.get("/a.py", text, True)
        fresh = SearchedTexts(4).get("/a.py", text, True)
        for needle in rng.sample(NEEDLES, 4):
            assert kept.find(needle) == fresh.find(needle)
        for _ in range(rng.choice((1, 3, 100))):
            lines[rng.randrange(len(lines))] = rng.choice(BODIES)
        if rng.random() < 0.2:
            lines.insert(rng.randrange(len(lines)), "load")
