"""Tables of all settings: names, defaults and allowed values from `config.Settings`, meanings from
the docstrings below its fields."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, get_origin

import msgspec

from codespec.config import Settings
from codespec.limits import allowed, base_of


def tables() -> str:
    """A table for each section, in Markdown."""
    sections = msgspec.structs.fields(Settings)
    return "\n\n".join(_table(field.name, field.type) for field in sections)


def _table(section: str, kind: type[msgspec.Struct]) -> str:
    said = meanings(kind)
    rows = [
        f"| `{field.name}` | {_default(field.default)} | {_allowed(field.type)} "
        f"| {_cell(said[field.name])} |"
        for field in msgspec.structs.fields(kind)
    ]
    head = "| key | default | allowed | meaning |\n|---|---|---|---|"
    return "\n".join([f"### [{section}]", "", head, *rows])


def meanings(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Field -> the docstring below it, of this class or of one it is made from."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if issubclass(each, msgspec.Struct) and each is not msgspec.Struct:
            found |= dict(_docstrings(each))
    return found


def _docstrings(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    [definition] = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            yield field.target.id, str(below.value.value)


def _default(value: Any) -> str:
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"


def _allowed(kind: Any) -> str:
    """The allowed values in words; text where any will do."""
    words = allowed(kind)
    if not words:
        return "text"
    words = words.partition(", at most")[0] if get_origin(base_of(kind)) is tuple else words
    words = re.sub(r" to [1-9]\d{0,2}(,\d{3}){3,}$", "", words)  # beyond all that anybody writes
    return re.sub(r'"[^"]*"', lambda quoted: f"`{quoted[0]}`", words)


def _cell(text: str) -> str:
    """A docstring as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
