"""Go."""

from __future__ import annotations

from codespec.languages.base import (
    BACKTICK,
    CHARACTER,
    DOUBLE,
    SLASH_STAR,
    SLASHES,
    Grammar,
    Language,
)

DEFINITIONS = """
(function_declaration name: (identifier) @name) @function
(method_declaration name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(const_spec name: (identifier) @name) @constant
"""
LANGUAGE = Language(
    name="go",
    extensions=(".go",),
    ids=("go",),
    grammar=Grammar(
        module="tree_sitter_go",
        definitions=DEFINITIONS,
        literals=("binary_expression", "literal_value"),
    ),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE, CHARACTER, BACKTICK),
    declares="type last",
)
