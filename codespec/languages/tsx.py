"""TypeScript with JSX: TypeScript, but for the grammar's function and elements in code."""

from __future__ import annotations

from dataclasses import replace

from codespec.languages import typescript

LANGUAGE = replace(
    typescript.LANGUAGE,
    name="tsx",
    extensions=(".tsx",),
    ids=("tsx", "typescriptreact"),
    grammar=replace(typescript.GRAMMAR, function="language_tsx"),
    elements="in code",
)
