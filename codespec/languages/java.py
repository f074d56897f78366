"""Java."""

from __future__ import annotations

from codespec.languages.base import (
    CHARACTER,
    DOUBLE,
    SLASH_STAR,
    SLASHES,
    TRIPLE_DOUBLE,
    Grammar,
    Language,
)

DEFINITIONS = """
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @constant
"""
LANGUAGE = Language(
    name="java",
    extensions=(".java",),
    ids=("java",),
    grammar=Grammar(
        module="tree_sitter_java",
        definitions=DEFINITIONS,
        constants_in_capitals=True,
        literals=("array_creation_expression", "array_initializer", "binary_expression"),
        forks_at_types=True,
    ),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(TRIPLE_DOUBLE, DOUBLE, CHARACTER),
    semicolons=True,
    types_in_angles=True,
    declares="type first",
)
