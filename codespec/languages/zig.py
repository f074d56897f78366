"""Zig; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import CHARACTER, DOUBLE, SLASHES, Language, LineComment

LANGUAGE = Language(
    name="zig",
    extensions=(".zig", ".zon"),
    ids=("zig",),
    # Each line of a string of several begins with two backslashes.
    line_comments=(SLASHES, LineComment("\\\\")),
    strings=(DOUBLE, CHARACTER),
    semicolons=True,
    conditional=False,
    declares="type first",
)
