"""Python."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE,
    HASH,
    SINGLE,
    TRIPLE_DOUBLE,
    TRIPLE_SINGLE,
    Grammar,
    Language,
)

DEFINITIONS = """
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(module (expression_statement (assignment left: (identifier) @name) @constant))
(module (type_alias_statement left: (type (identifier) @name)) @type)
"""
LANGUAGE = Language(
    name="python",
    extensions=(".py", ".pyi", ".pyw"),
    ids=("python",),
    grammar=Grammar(
        module="tree_sitter_python",
        definitions=DEFINITIONS,
        constants_in_capitals=True,
        literals=("binary_operator", "concatenated_string", "dictionary", "list", "set", "tuple"),
    ),
    line_comments=(HASH,),
    strings=(TRIPLE_DOUBLE, TRIPLE_SINGLE, DOUBLE, SINGLE),
    documentation=("#", '"""', 'r"""'),
    docstring='"""',
    heads="colon",
    branches=("else", "elif ", "except", "finally"),
    line_ends=True,
    conditional=False,
    tails=("·", "·:", "·: pass", "·,", "·: x,"),
    checker="ast",
    declares="by assignment",
)
