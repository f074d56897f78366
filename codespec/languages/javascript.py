"""JavaScript, with JSX."""

from __future__ import annotations

from codespec.languages.base import BACKTICK, DOUBLE, SINGLE, SLASH_STAR, SLASHES, Grammar, Language

DEFINITIONS = """
(class_declaration name: (_) @name) @class
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: (_) @name) @method
(variable_declarator name: (identifier) @name
  value: [(arrow_function) (function_expression)]) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
"""
# tree-sitter-javascript 0.25.0 takes attributes of JSX that are called so for errors, see
# https://github.com/tree-sitter/tree-sitter-javascript/issues/387; in code, nothing is assigned to
# these words. Others, as `this`, may be compared by `==`.
ATTRIBUTES = (
    *("break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete"),
    *("do", "else", "export", "extends", "finally", "for", "function", "if", "import", "in"),
    *("instanceof", "new", "return", "switch", "throw", "try", "typeof", "var", "void", "while"),
    "with",
)
LITERALS = ("array", "binary_expression", "object")
STRINGS = (DOUBLE, SINGLE, BACKTICK)
IMPORT_HEAD = r"\s*(?:import|export)\b[^('\"]*\{[^}'\"]*\Z"
IMPORT_TAIL = ' from "x"'
LANGUAGE = Language(
    name="javascript",
    extensions=(".js", ".mjs", ".cjs", ".jsx"),
    ids=("javascript", "javascriptreact"),
    grammar=Grammar(
        module="tree_sitter_javascript",
        definitions=DEFINITIONS,
        constants_in_capitals=True,
        literals=LITERALS,
        names_before_equals=ATTRIBUTES,
    ),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=STRINGS,
    elements="in code",
    import_head=IMPORT_HEAD,
    import_tail=IMPORT_TAIL,
)
