"""Any text of which nothing else is known; a colon may open what is indented, as in YAML."""

from __future__ import annotations

from codespec.languages.base import ITEM, PROSE_PAIRS, Language

LANGUAGE = Language(
    name="text",
    pairs=PROSE_PAIRS,
    prose=True,
    holds=ITEM,
    heads="colon",
)
