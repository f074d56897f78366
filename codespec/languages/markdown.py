"""Markdown. Code between fences is in the language that the fence names."""

from __future__ import annotations

from codespec.languages.base import ITEM, NEVER, PROSE_PAIRS, Language

LANGUAGE = Language(
    name="markdown",
    extensions=(".md", ".markdown", ".mdx", ".mkd", ".qmd", ".rmd"),
    ids=("markdown", "mdx", "quarto", "rmd"),
    strings=(),
    pairs=PROSE_PAIRS,
    links=True,
    prose=True,
    holds=ITEM,
    fences=True,
    heads="colon",
    documentation=(),
    continues=NEVER,
    unfinished=r"\s\\$",
)
