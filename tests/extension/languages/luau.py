"""Luau, a dialect of Lua, read with Lua's grammar."""

from __future__ import annotations

from codespec.languages import lua
from codespec.languages.base import (
    BACKTICK,
    DOUBLE,
    SINGLE,
    BlockComment,
    Grammar,
    Language,
    LineComment,
    Words,
)

DEFINITIONS = """
(function_declaration name: (identifier) @name) @function
(function_declaration name: (method_index_expression method: (identifier) @name)) @method
"""
LANGUAGE = Language(
    name="luau",
    extensions=(".luau",),
    ids=("luau",),
    grammar=Grammar(
        module="tree_sitter_lua",
        definitions=DEFINITIONS,
        depth=2,
        literals=("table_constructor",),
    ),
    line_comments=(LineComment("--"),),
    block_comments=(BlockComment("--[[", "]]"),),
    strings=(DOUBLE, SINGLE, BACKTICK),
    documentation=("--",),
    words=Words(
        opens={"end": r"\b(?:then|do|else)\Z|\bfunction\b[^()\n]*\([^()\n]*\)\Z"},
        ends=("end",),
        branches=("else ", "elseif "),
    ),
    tails=lua.LANGUAGE.tails,
    probes=lua.LANGUAGE.probes,
)
