"""Definitions in a file: what its names stand for, from the same parse that selects its text."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice

import msgspec
from tree_sitter import Node, Query, QueryCursor

from codespec.index.languages import grammar

MAX_PER_FILE = 4000
MAX_SIGNATURE_CHARS = 300

_CLASS_LIKE = re.compile(r"class|impl|trait|interface|struct|enum")
_BEFORE_BODY = re.compile(r" ?(?:\{|:|=>|=|(?<=\) )end)$")
_CONSTANT_NAME = re.compile(r"[A-Z][A-Z0-9_]+")

# One pattern a definition: @name is what it defines, the other capture is the definition, named by
# its kind. Kinds are refined below: functions in classes are methods.
_PYTHON = """
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(module (expression_statement (assignment left: (identifier) @name) @constant))
(module (type_alias_statement left: (type (identifier) @name)) @type)
"""
_JAVASCRIPT = """
(class_declaration name: (_) @name) @class
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: (_) @name) @method
(variable_declarator name: (identifier) @name
  value: [(arrow_function) (function_expression)]) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @constant))
"""
_TYPESCRIPT = (
    _JAVASCRIPT
    + """
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name) @enum
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(function_signature name: (identifier) @name) @function
"""
)
_GO = """
(function_declaration name: (identifier) @name) @function
(method_declaration name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(const_spec name: (identifier) @name) @constant
"""
_RUST = """
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
_C = """
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
_CPP = (
    _C
    + """
(class_specifier name: (type_identifier) @name body: (_)) @class
(function_definition declarator: (function_declarator
  declarator: (field_identifier) @name)) @method
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @method
(function_definition declarator: (function_declarator
  declarator: (qualified_identifier name: (identifier) @name))) @method
(alias_declaration name: (type_identifier) @name) @type
"""
)
_JAVA = """
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @constant
"""
_CSHARP = """
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
_PHP = """
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(trait_declaration name: (name) @name) @trait
(enum_declaration name: (name) @name) @enum
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @method
(const_declaration (const_element (name) @name)) @constant
"""
_RUBY = """
(class name: (_) @name) @class
(module name: (_) @name) @class
(program (method name: (_) @name) @function)
(method name: (_) @name) @method
(singleton_method name: (_) @name) @method
(assignment left: (constant) @name) @constant
"""
_SWIFT = """
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @enum
(class_declaration name: (type_identifier) @name) @class
(protocol_declaration name: (type_identifier) @name) @interface
(function_declaration name: (simple_identifier) @name) @function
(protocol_function_declaration name: (simple_identifier) @name) @method
(init_declaration "init" @name) @method
(typealias_declaration name: (type_identifier) @name) @type
"""
_LUA = """
(function_declaration name: (identifier) @name) @function
(function_declaration name: (dot_index_expression field: (identifier) @name)) @function
(function_declaration name: (method_index_expression method: (identifier) @name)) @method
(assignment_statement
  (variable_list name: [
    (identifier) @name
    (dot_index_expression field: (identifier) @name)
  ])
  (expression_list value: (function_definition))) @function
(assignment_statement (variable_list name: (identifier) @name)) @constant
"""
_QUERIES = {
    "python": _PYTHON,
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": _GO,
    "rust": _RUST,
    "c": _C,
    "cpp": _CPP,
    "java": _JAVA,
    "csharp": _CSHARP,
    "php": _PHP,
    "ruby": _RUBY,
    "swift": _SWIFT,
    "lua": _LUA,
}
# Levels of the tree to look at. What is defined deeper is local to a function, and looking costs as
# much as half the parse. Guards, name spaces, modules and nested types add levels.
_USUAL_DEPTH = 5
_DEPTH = {"lua": 2, **dict.fromkeys(("c", "cpp", "csharp", "php", "ruby", "swift"), 8)}
_ONLY_CAPITALS = frozenset(("python", "java", "javascript", "typescript", "tsx", "lua"))


class Symbol(msgspec.Struct, frozen=True, array_like=True):
    """kind: function, class, method, struct, enum, trait, interface, type or constant.
    signature: the definition up to its body, on one line. Lines: from 1, the last one included."""

    name: str
    kind: str
    signature: str
    first_line: int
    last_line: int


@cache
def _query(language: str) -> Query:
    return Query(grammar(language), _QUERIES[language])


def find_symbols(language: str, root: Node, text: bytes) -> tuple[Symbol, ...]:
    """Definitions in a parsed file, in the order of their places. Raises: KeyError for a language
    without a query."""
    # The cursor bounds what it holds at a time, whatever the file.
    cursor = QueryCursor(_query(language), match_limit=4096)
    cursor.set_max_start_depth(_DEPTH.get(language, _USUAL_DEPTH))
    matches = cursor.matches(root)
    best: dict[int, tuple[int, str, Node, Node]] = {}
    for pattern, captures in matches:
        name = captures.pop("name")[0]
        kind, nodes = next(iter(captures.items()))
        # The first pattern that fits says the kind.
        if pattern < best.get(name.start_byte, (pattern + 1,))[0]:
            best[name.start_byte] = (pattern, kind, name, nodes[0])
    in_order = (best[at] for at in sorted(best))
    found = (_symbol(language, kind, name, node, text) for _, kind, name, node in in_order)
    return tuple(islice(filter(None, found), MAX_PER_FILE))


def _symbol(language: str, kind: str, name_node: Node, node: Node, text: bytes) -> Symbol | None:
    name = text[name_node.start_byte : name_node.end_byte].decode()
    if kind == "constant" and language in _ONLY_CAPITALS and not _CONSTANT_NAME.fullmatch(name):
        return None
    if kind == "function" and _is_member(node):
        kind = "method"
    return Symbol(
        name, kind, _signature(node, text), node.start_point.row + 1, node.end_point.row + 1
    )


def _is_member(node: Node) -> bool:
    """Whether a function stands directly in the body of a type."""
    above = node.parent
    if above is not None and above.type == "decorated_definition":
        above = above.parent
    owner = above.parent if above is not None else None
    return owner is not None and _CLASS_LIKE.search(owner.type) is not None


def _signature(node: Node, text: bytes) -> str:
    body = node.child_by_field_name("body")
    if body is None:
        value = node.child_by_field_name("value")
        body = value.child_by_field_name("body") if value is not None else None
    end = body.start_byte if body is not None else node.end_byte
    head = text[node.start_byte : min(end, node.start_byte + 4 * MAX_SIGNATURE_CHARS)]
    words = " ".join(head.decode("utf-8", "ignore").split())
    return _BEFORE_BODY.sub("", words)[:MAX_SIGNATURE_CHARS]
