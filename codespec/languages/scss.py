"""SCSS and Less: CSS with comments of lines."""

from __future__ import annotations

from dataclasses import replace

from codespec.languages import css
from codespec.languages.base import LineComment

LANGUAGE = replace(
    css.LANGUAGE,
    name="scss",
    extensions=(".scss", ".less"),
    ids=("scss", "less"),
    line_comments=(LineComment("//", after="(?<!:)"),),
)
