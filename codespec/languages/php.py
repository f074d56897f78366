"""PHP."""

from __future__ import annotations

from codespec.languages.base import (
    DOUBLE_OVER_LINES,
    SINGLE_OVER_LINES,
    SLASH_STAR,
    SLASHES,
    Grammar,
    Language,
    LineComment,
)

DEFINITIONS = """
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(trait_declaration name: (name) @name) @trait
(enum_declaration name: (name) @name) @enum
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @method
(const_declaration (const_element (name) @name)) @constant
"""
LANGUAGE = Language(
    name="php",
    extensions=(".php", ".phtml"),
    ids=("php",),
    grammar=Grammar(
        module="tree_sitter_php",
        function="language_php",
        definitions=DEFINITIONS,
        depth=8,
        literals=("array_creation_expression", "binary_expression"),
        prologue=("php_tag",),
    ),
    line_comments=(LineComment("#", unless=r"\["), SLASHES),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE_OVER_LINES, SINGLE_OVER_LINES),
    semicolons=True,
    declares="by assignment",
)
