"""C#."""

from __future__ import annotations

from codespec.languages.base import (
    CHARACTER,
    DOUBLE,
    RAW_TRIPLE,
    SLASH_STAR,
    SLASHES,
    Grammar,
    Language,
    Quotes,
)

DEFINITIONS = """
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @struct
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(delegate_declaration name: (identifier) @name) @type
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(property_declaration name: (identifier) @name) @method
(field_declaration (modifier "const")
  (variable_declaration (variable_declarator name: (identifier) @name))) @constant
"""
VERBATIM = Quotes('"', escape="doubled", over_lines=True, after=r"(?:(?<=@)|(?<=@\$))")
LANGUAGE = Language(
    name="csharp",
    extensions=(".cs", ".csx"),
    ids=("csharp",),
    grammar=Grammar(
        module="tree_sitter_c_sharp",
        definitions=DEFINITIONS,
        depth=8,
        literals=(
            "array_creation_expression",
            "binary_expression",
            "initializer_expression",
            "tuple_expression",
        ),
        forks_at_types=True,
    ),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(RAW_TRIPLE, VERBATIM, DOUBLE, CHARACTER),
    semicolons=True,
    types_in_angles=True,
    preprocessor=True,
    bracket_attributes=True,
    declares="type first",
)
