"""Lua."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE,
    SINGLE,
    BlockComment,
    Grammar,
    Language,
    LineComment,
    Quotes,
    Words,
)

DEFINITIONS = """
(function_declaration name: (identifier) @name) @function
(function_declaration name: (dot_index_expression field: (identifier) @name)) @function
(function_declaration name: (method_index_expression method: (identifier) @name)) @method
(assignment_statement
  (variable_list name: [
    (identifier) @name
    (dot_index_expression field: (identifier) @name)
  ])
  (expression_list value: (function_definition))) @function
(assignment_statement (variable_list name: (identifier) @name)) @constant
"""
LANGUAGE = Language(
    name="lua",
    extensions=(".lua",),
    ids=("lua",),
    grammar=Grammar(
        module="tree_sitter_lua",
        definitions=DEFINITIONS,
        depth=2,
        constants_in_capitals=True,
        literals=("binary_expression", "table_constructor"),
    ),
    line_comments=(LineComment("--"),),
    block_comments=(BlockComment("--[[", "]]"),),
    strings=(Quotes("[[", "]]", escape="none", over_lines=True), DOUBLE, SINGLE),
    documentation=("--",),
    words=Words(
        opens={"end": r"\b(?:then|do|else|repeat)\Z|\bfunction\b[^()\n]*\([^()\n]*\)\Z"},
        ends=("end", "until"),
        branches=("else ", "elseif ", "until "),
    ),
    tails=(
        *("·", "·,", "· then", "· do", "· end", "· then\nend"),
        *(", function()\nend·", ", function()"),
    ),
    # It has no statement that is merely a name.
    probes=("()", "x()", " then\nend", " do\nend"),
)
