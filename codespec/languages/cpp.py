"""C++, with CUDA."""

from __future__ import annotations

from codespec.languages import c
from codespec.languages.base import CHARACTER, DOUBLE, SLASH_STAR, SLASHES, Grammar, Language

DEFINITIONS = f"""{c.DEFINITIONS}(class_specifier name: (type_identifier) @name body: (_)) @class
(function_definition declarator: (function_declarator
  declarator: (field_identifier) @name)) @method
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @method
(function_definition declarator: (function_declarator
  declarator: (qualified_identifier name: (identifier) @name))) @method
(alias_declaration name: (type_identifier) @name) @type
"""
LANGUAGE = Language(
    name="cpp",
    extensions=(
        *(".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx"),
        *(".ipp", ".inl"),
        *(".cu", ".cuh"),
    ),
    ids=("cpp", "cuda-cpp"),
    grammar=Grammar(
        module="tree_sitter_cpp",
        definitions=DEFINITIONS,
        depth=8,
        literals=c.LITERALS,
        forks_at_types=True,
    ),
    line_comments=(SLASHES,),
    block_comments=(SLASH_STAR,),
    strings=(DOUBLE, CHARACTER),
    semicolons=True,
    types_in_angles=True,
    preprocessor=True,
    declares="type first",
)
