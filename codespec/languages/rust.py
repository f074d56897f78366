"""Rust."""

from __future__ import annotations

from codespec.languages.base import (
    CHARACTER,
    DOUBLE_OVER_LINES,
    NESTED_SLASH_STAR,
    SLASHES,
    Grammar,
    Language,
)

DEFINITIONS = """
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(trait_item name: (type_identifier) @name) @trait
(type_item name: (type_identifier) @name) @type
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @constant
(macro_definition name: (identifier) @name) @function
"""
LANGUAGE = Language(
    name="rust",
    extensions=(".rs",),
    ids=("rust",),
    grammar=Grammar(
        module="tree_sitter_rust",
        definitions=DEFINITIONS,
        literals=("array_expression", "binary_expression", "token_tree", "tuple_expression"),
    ),
    line_comments=(SLASHES,),
    block_comments=(NESTED_SLASH_STAR,),
    strings=(DOUBLE_OVER_LINES, CHARACTER),
    semicolons=True,
    clauses=("where",),
    types_in_angles=True,
)
