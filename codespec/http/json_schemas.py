"""JSON schemas of clients, brought to the form that grammars are made of.

Every text that a model writes under the grammar follows the schema. What cannot be had so is
refused, with its place in the schema. References lead to places in the schema itself: none is
fetched. Source: https://json-schema.org/draft/2020-12/json-schema-validation
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

from codespec import limits
from codespec.http.field_error import FieldError

Schema: TypeAlias = dict[str, Any]

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
_OF_TYPE: Mapping[str, frozenset[str]] = {
    "object": frozenset(("properties", "required", "additionalProperties")),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems", "uniqueItems")),
    "string": frozenset(("minLength", "maxLength", "pattern", "format")),
    "number": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
}
_COMBINED = frozenset(("$ref", "anyOf", "oneOf", "allOf", "enum", "const", "type"))
_HONOURED = _COMBINED.union(*_OF_TYPE.values())
_REFUSED = frozenset(
    (
        "$dynamicRef",
        "$recursiveRef",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "minContains",
        "maxContains",
        "multipleOf",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
    )
)
_MOST_VALUES = 1000
"""Most whole numbers of a range: each is a way to go on."""


def normal_schema(field: str, schema: object) -> str:
    """The schema in the form that a backend makes a grammar of, as JSON. field: of the request.

    Raises: FieldError for a schema that cannot be held to.
    """
    if len(json.dumps(schema)) > limits.SCHEMA_CHARS:
        most = f"a JSON schema has at most {limits.SCHEMA_CHARS} characters"
        raise FieldError(field, f"{field}: {most}", "Ask for a simpler one.")
    reader = _Reader(field, schema)
    found = reader.read(schema, "", 0)
    reader.check_references()
    return json.dumps({**found, **({"$defs": reader.defined} if reader.defined else {})})


class _Reader:
    def __init__(self, field: str, root: object) -> None:
        self._field, self._root = field, root
        self._names = dict[str, str]()  # reference -> name of what it leads to
        self._n_read = 0
        self.defined: Schema = {}

    def _error(self, where: str, why: str) -> FieldError:
        place = f"{self._field}{where}"[: limits.NAME_CHARS]
        return FieldError(self._field, f"{place}: {why}", "Leave it out, or ask for another form.")

    def read(self, schema: object, where: str, depth: int) -> Schema:
        """A schema at a place. depth: of schemas around it."""
        self._n_read += 1
        if depth > limits.SCHEMA_DEPTH:
            raise self._error(where, f"more than {limits.SCHEMA_DEPTH} schemas within schemas")
        if self._n_read > limits.SCHEMAS:
            raise self._error("", f"stands for more than {limits.SCHEMAS:,} schemas")
        if schema is True:
            schema = {}
        if not isinstance(schema, dict):
            raise self._error(where, "a schema needs to be an object that something follows")
        said: Schema = {key: schema[key] for key in schema if key in _HONOURED}
        if refused := sorted(key for key in schema if key in _REFUSED):
            raise self._error(where, f"{refused[0]} is not supported")
        for key in ("$ref", "allOf", "anyOf", "oneOf"):
            if key in said:
                value = said.pop(key)
                if key == "$ref":
                    return self._reference(value, said, where, depth)
                if not isinstance(value, list) or not value:
                    raise self._error(where, f"{key} needs to be a list of schemas")
                if key == "allOf":
                    return self.read(self._all([said, *value], where), where, depth + 1)
                parts = [self._all([said, part], where) for part in value]
                return {"anyOf": [self.read(part, where, depth + 1) for part in parts]}
        if "enum" in said or "const" in said:
            return self._values(said, where)
        return self._typed(said, where, depth)

    def _typed(self, said: Schema, where: str, depth: int) -> Schema:
        kind = said.get("type")
        if kind is None:
            implied = [name for name, keys in _OF_TYPE.items() if keys & said.keys()]
            kind = implied[0] if implied else [name for name in _TYPES if name != "integer"]
        kinds = kind if isinstance(kind, list) else [kind]
        if not kinds or not all(isinstance(name, str) and name in _TYPES for name in kinds):
            raise self._error(where, "type needs to be one of JSON's, or a list of them")
        if len(kinds) > 1:
            parts = [self.read({**said, "type": name}, where, depth + 1) for name in kinds]
            return {"anyOf": parts}
        name = kinds[0]
        asked = _OF_TYPE.get("number" if name == "integer" else name, ())
        said = {key: said[key] for key in said if key in asked}
        if name == "object":
            return self._object(said, where, depth)
        if name == "array":
            return self._array(said, where, depth)
        if name == "string":
            return self._string(said, where)
        if name in ("integer", "number"):
            return self._number(name, said, where)
        return {"type": name}

    def _reference(self, ref: object, said: Schema, where: str, depth: int) -> Schema:
        if said:
            raise self._error(where, f"{min(said)} beside $ref is not supported")
        target = self._at(ref, where)
        name = self._names.get(str(ref))
        if name is None:
            name = self._names[str(ref)] = f"definition-{len(self._names)}"
            self.defined[name] = self.read(target, f" at {ref}", depth + 1)
        return {"$ref": f"#/$defs/{name}"}

    def check_references(self) -> None:
        """Raises: FieldError for references that lead to each other and to nothing else."""
        for name in self.defined:
            seen, found = {name}, self.defined[name]
            while "$ref" in found:
                name = found["$ref"].rpartition("/")[2]
                if name in seen:
                    raise self._error("", "references that lead to each other")
                seen.add(name)
                found = self.defined[name]

    def _at(self, ref: object, where: str) -> object:
        """The schema that a reference leads to."""
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            raise self._error(where, "$ref needs to begin with #/: no other place is fetched")
        found: Any = self._root
        for step in ref.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key[:9]) < len(found):
                found = found[int(key[:9])]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                raise self._error(where, "$ref leads to no place in the schema")
        return found

    def _all(self, parts: Iterable[object], where: str) -> object:
        """One schema for several that hold together."""
        said = [part for part in parts if part not in ({}, True)]
        if len(said) == 1:
            return said[0]
        into: Schema = {}
        for part in said:
            self._add(into, part, where, 0)
        return into

    def _add(self, into: Schema, part: object, where: str, n_refs: int) -> None:
        """Add the demands of a schema to those of others. n_refs: references that led to it."""
        self._n_read += 1
        if self._n_read > limits.SCHEMAS or n_refs > limits.SCHEMA_DEPTH:
            raise self._error(where, f"stands for more than {limits.SCHEMAS:,} schemas")
        if not isinstance(part, dict):
            raise self._error(where, "a schema needs to be an object that something follows")
        for key, value in part.items():
            if key == "$ref":
                self._add(into, self._at(value, where), where, n_refs + 1)
            elif key == "properties" and isinstance(value, dict):
                self._all_of_properties(into.setdefault(key, {}), value, where)
            elif key == "required":
                names = self._required_names(value, where)
                into[key] = list(dict.fromkeys([*into.get(key, []), *names]))
            elif key in _HONOURED | _REFUSED and into.setdefault(key, value) != value:
                raise self._error(where, f"{key} is asked for in two ways, which is too much")

    def _all_of_properties(self, into: object, properties: Schema, where: str) -> None:
        if not isinstance(into, dict):
            raise self._error(where, "properties needs to be an object")
        for name, schema in properties.items():
            if into.setdefault(name, schema) != schema:
                raise self._error(where, "a property is described in two ways, which is too much")

    def _required_names(self, required: Any, where: str) -> list[str]:
        """The names in a list of required properties."""
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise self._error(where, "required needs to be a list of names")
        return required

    def _values(self, said: Schema, where: str) -> Schema:
        values = [said["const"]] if "const" in said else said["enum"]
        kinds = said.get("type", list(_TYPES))
        kinds = kinds if isinstance(kinds, list) else [kinds]
        others = said.keys() - {"enum", "const", "type"}
        if others:
            raise self._error(where, f"{min(others)} beside enum or const is not supported")
        if not isinstance(values, list) or ("const" in said and "enum" in said):
            raise self._error(where, "enum needs to be a list of values, and const one value")
        fitting = [value for value in values if any(_is_a(kind, value) for kind in kinds)]
        if not fitting or len(fitting) > _MOST_VALUES:
            raise self._error(where, f"enum needs 1 to {_MOST_VALUES:,} values of its type")
        return {"enum": fitting}

    def _object(self, said: Schema, where: str, depth: int) -> Schema:
        properties = said.get("properties", {})
        required = self._required_names(said.get("required", []), where)
        others = said.get("additionalProperties", True)
        if not isinstance(properties, dict):
            raise self._error(where, "properties needs to be an object")
        # In the order of the schema, those that it only requires at the end.
        wanted = {**properties, **{name: others for name in required if name not in properties}}
        read = {
            name: self.read(schema, f"{where}/{name}", depth + 1)
            for name, schema in wanted.items()
            if schema is not False or name in required
        }
        if read or others is False:
            # What else an object may hold might be one of these once more.
            found: Schema = {"type": "object", "properties": read, "additionalProperties": False}
            return {**found, "required": [name for name in read if name in required]}
        if others is True or others == {}:
            return {"type": "object"}
        value = self.read(others, f"{where}/*", depth + 1)
        return {"type": "object", "additionalProperties": value}

    def _array(self, said: Schema, where: str, depth: int) -> Schema:
        if not said:
            return {"type": "array"}
        if said.get("uniqueItems", False):
            raise self._error(where, "uniqueItems is not supported")
        least, most = self._range(said, "minItems", "maxItems", where)
        items = said.get("items", True)
        first = items if isinstance(items, list) else said.get("prefixItems", [])
        if not isinstance(first, list):
            raise self._error(where, "prefixItems needs to be a list of schemas")
        if first:
            if not least <= len(first) <= (len(first) if most is None else most):
                raise self._error(where, "a list of other length than prefixItems is not supported")
            read = [self.read(s, f"{where}/{n}", depth + 1) for n, s in enumerate(first)]
            return {"type": "array", "prefixItems": read}
        if items is False:
            items, most = True, 0
        bounds = {"minItems": least} if least else {}
        bounds |= {} if most is None else {"maxItems": most}
        if least > (least if most is None else most):
            raise self._error(where, "minItems is greater than maxItems")
        return {"type": "array", "items": self.read(items, f"{where}/items", depth + 1), **bounds}

    def _string(self, said: Schema, where: str) -> Schema:
        if "pattern" in said:
            raise self._error(where, "pattern is not supported")
        least, most = self._range(said, "minLength", "maxLength", where)
        if least > (least if most is None else most):
            raise self._error(where, "minLength is greater than maxLength")
        bounds = {"minLength": least} if least else {}
        bounds |= {} if most is None else {"maxLength": most}
        form = said.get("format")
        known = form in ("date", "time", "date-time", "uuid") and not bounds
        return {"type": "string", **bounds, **({"format": form} if known else {})}

    def _range(self, said: Schema, least: str, most: str, where: str) -> tuple[int, int | None]:
        for key in (least, most):
            value = said.get(key, 0)
            is_whole = _is_a("integer", value) and value >= 0
            if not is_whole or value > limits.SCHEMA_LENGTH:
                raise self._error(where, f"{key} needs to be from 0 to {limits.SCHEMA_LENGTH:,}")
        return int(said.get(least, 0)), int(said[most]) if most in said else None

    def _number(self, kind: str, said: Schema, where: str) -> Schema:
        if not said:
            return {"type": kind}
        for key, value in said.items():
            # Python reads whole numbers that are too great for a float.
            if not _is_a("number", value) or abs(value) > sys.float_info.max:
                most = f"{sys.float_info.max:.1e}"
                raise self._error(where, f"{key} needs to be a number, {most} at most")
        above, below = (
            said.get("exclusiveMinimum", -math.inf),
            said.get("exclusiveMaximum", math.inf),
        )
        least, most = said.get("minimum", -math.inf), said.get("maximum", math.inf)
        if kind == "integer":
            least = max(least if math.isinf(least) else math.ceil(least), _after(above))
            most = min(most if math.isinf(most) else math.floor(most), -_after(-below))
            if 0 <= most - least < _MOST_VALUES:
                return {"enum": list(range(int(least), int(most) + 1))}
            if least in (0, 1) and most == math.inf:
                return {"type": kind, "minimum": int(least)}
        elif least == 0 and not said.keys() - {"minimum"}:
            return {"type": kind, "minimum": 0}
        why = f"numbers from 0 on, and up to {_MOST_VALUES:,} whole ones, are supported as a range"
        raise self._error(where, why)


def _after(bound: float) -> float:
    """The least whole number above a bound."""
    return bound if math.isinf(bound) else math.floor(bound) + 1


def _is_a(kind: object, value: object) -> bool:
    """True if a value is of one of JSON's types; 1.0 is an integer."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(kind, str) and kind in _TYPES and isinstance(value, _TYPES[kind])
