"""C."""

from __future__ import annotations

from codespec.languages.base import CHARACTER, DOUBLE, SLASH_STAR, SLASHES, Grammar, Language

DEFINITIONS = """
(function_definition declarator: (function_declarator declarator: (identifier) @name)) @function
(function_definition declarator: (pointer_declarator
  declarator: (function_declarator declarator: (identifier) @name))) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @function
(struct_specifier name: (type_identifier) @name body: (_)) @struct
(union_specifier name: (type_identifier) @name body: (_)) @struct
(enum_specifier name: (type_identifier) @name body: (_)) @enum
(type_definition declarator: (type_identifier) @name) @type
(preproc_def name: (identifier) @name) @constant
(preproc_function_def name: (identifier) @name) @function
"""
LITERALS = ("binary_expression", "concatenated_string", "initializer_list")
LANGUAGE = Language(
    name="c",
    extensions=(".c", ".h"),
    ids=("c",),
    yields_to=("cpp",),
    shared=(".h",),
    others_say=(
        r"(?:public|private|protected)[ \t]*:(?!:)|template[ \t]*<|namespace\b[\s\w:]*\{|std::\w"
        r"|using[ \t]+(?:namespace[ \t]|\w+[ \t]*=|\w+::)|#[ \t]*include[ \t]*<\w+>"
        r"|class(?:[ \t]+\w+){1,3}\s*(?:\{|:\s*(?:public|protected|private|virtual)\b)"
    ),
    grammar=Grammar(module="tree_sitter_c", definitions=DEFINITIONS, depth=8, literals=LITERALS),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE, CHARACTER),
    semicolons=True,
    preprocessor=True,
    declares="type first",
)
