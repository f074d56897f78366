"""Swift."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE,
    NESTED_SLASH_STAR,
    RAW_TRIPLE,
    SLASHES,
    Grammar,
    Language,
)

DEFINITIONS = """
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @enum
(class_declaration name: (type_identifier) @name) @class
(protocol_declaration name: (type_identifier) @name) @interface
(function_declaration name: (simple_identifier) @name) @function
(protocol_function_declaration name: (simple_identifier) @name) @method
(init_declaration "init" @name) @method
(typealias_declaration name: (type_identifier) @name) @type
"""
LANGUAGE = Language(
    name="swift",
    extensions=(".swift",),
    ids=("swift",),
    grammar=Grammar(
        module="tree_sitter_swift",
        definitions=DEFINITIONS,
        depth=8,
        literals=("array_literal", "dictionary_literal", "tuple_expression"),
        forks_at_types=True,
    ),
    line_comments=(SLASHES,),
    block_comments=(NESTED_SLASH_STAR,),
    strings=(RAW_TRIPLE, DOUBLE),
    types_in_angles=True,
)
