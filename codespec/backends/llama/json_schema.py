"""A grammar for JSON that follows a schema, by the converter of llama-cpp-python.

Some of its rules are replaced: its texts may hold control characters, which JSON forbids; it leaves
backslashes in names and constants as they are, which GBNF reads as escapes; and it expands lengths
to nested brackets. References to other places are not fetched.
"""

from __future__ import annotations

import json
from typing import Any

from llama_cpp.llama_grammar import BuiltinRule, SchemaConverter

from codespec.errors import InputError

_CHAR = BuiltinRule(r'[^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})')
_FRACTION = 'integral-part ("." decimal-part)? ([eE] [-+]? integral-part)? space'
_FROM_0 = {"integer": "integral-part space", "number": _FRACTION}
_FROM_1 = "[1-9] [0-9]{0,15} space"


class _Converter(SchemaConverter):
    def __init__(self) -> None:
        super().__init__(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)

    def grammar_of(self, schema: dict[str, Any]) -> str:
        self._refs = {f"#/$defs/{name}": part for name, part in schema.get("$defs", {}).items()}
        self.visit(schema, "")
        return self.format_grammar()

    def _format_literal(self, literal: str) -> str:
        """literal: a constant or a name, as JSON."""
        said = json.dumps(json.loads(literal), ensure_ascii=False)
        return '"' + said.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def _add_primitive(self, name: str, rule: BuiltinRule) -> str:
        return super()._add_primitive(name, _CHAR if name == "char" else rule)

    def visit(self, schema: dict[str, Any], name: str) -> str:
        rule = self._with_bounds(schema, name)
        return super().visit(schema, name) if rule is None else self._add_rule(name or "root", rule)

    def _with_bounds(self, schema: dict[str, Any], name: str) -> str | None:
        """The rule of a text or list of bounded length, or of a number that is not negative; None
        for anything else."""
        kind = schema.get("type")
        if kind == "string" and schema.keys() & {"minLength", "maxLength"}:
            self._add_primitive("char", _CHAR)
            many = _repeated(schema.get("minLength", 0), schema.get("maxLength"))
            return rf'"\"" char{many} "\"" space'
        if kind == "array" and "items" in schema and schema.keys() & {"minItems", "maxItems"}:
            least, most = schema.get("minItems", 0), schema.get("maxItems")
            if most == 0:
                return '"[" space "]" space'
            item = self.visit(schema["items"], f"{name}{'-' if name else ''}item")
            further = _repeated(max(0, least - 1), None if most is None else most - 1)
            items = f'{item} ("," space {item}){further}'
            return f'"[" space {items if least else f"({items})?"} "]" space'
        if kind in _FROM_0 and "minimum" in schema:
            for needed in ("integral-part", "decimal-part"):
                self._add_primitive(needed, _PARTS[needed])
            return _FROM_1 if schema["minimum"] == 1 else _FROM_0[str(kind)]
        return None


_PARTS = {
    "integral-part": BuiltinRule("[0-9] | [1-9] [0-9]{1,15}"),
    "decimal-part": BuiltinRule("[0-9]{1,16}"),
}


def _repeated(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def gbnf_of(schema: str) -> str:
    """The GBNF grammar of JSON that follows a schema in the form that `http.json_schemas` writes.

    Raises: InputError for a schema in another form.
    """
    converter = _Converter()
    try:
        return converter.grammar_of(json.loads(schema))
    except (AssertionError, LookupError, ValueError, TypeError, AttributeError, RecursionError):
        raise InputError("the JSON schema has a form that no grammar is made of") from None
