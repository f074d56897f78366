"""Protocol Buffers; codespec has no grammar of them."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, SINGLE, SLASH_STAR, SLASHES, Language

LANGUAGE = Language(
    name="proto",
    extensions=(".proto",),
    ids=("proto", "proto3", "protobuf"),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE, SINGLE),
    semicolons=True,
    conditional=False,
)
