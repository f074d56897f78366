"""TypeScript."""

from __future__ import annotations

from codespec.languages import javascript
from codespec.languages.base import SLASH_STAR, SLASHES, Grammar, Language

DEFINITIONS = f"""{javascript.DEFINITIONS}(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(function_signature name: (identifier) @name) @function
"""
GRAMMAR = Grammar(
    module="tree_sitter_typescript",
    function="language_typescript",
    definitions=DEFINITIONS,
    constants_in_capitals=True,
    literals=javascript.LITERALS,
    forks_at_types=True,
)
LANGUAGE = Language(
    name="typescript",
    extensions=(".ts", ".mts", ".cts"),
    ids=("typescript",),
    grammar=GRAMMAR,
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=javascript.STRINGS,
    types_in_angles=True,
    import_head=javascript.IMPORT_HEAD,
    import_tail=javascript.IMPORT_TAIL,
)
