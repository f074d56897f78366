"""Objective-C; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import CHARACTER, DOUBLE, SLASH_STAR, SLASHES, Language

LANGUAGE = Language(
    name="objc",
    extensions=(".m", ".mm"),
    ids=("objective-c", "objective-cpp", "objc", "objcpp"),
    shared=(".m",),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE, CHARACTER),
    semicolons=True,
    preprocessor=True,
)
