"""The routes of the HTTP server, from their description."""

from __future__ import annotations

from codespec.http.dialects.registry import APIS
from codespec.http.openapi import document


def table() -> str:
    """A table of all routes, in Markdown."""
    rows = [
        f"| {method.upper()} | `{path}` | {operation['summary']} |"
        for path, operations in document(APIS)["paths"].items()
        for method, operation in operations.items()
    ]
    return "\n".join(["| | path | |", "|---|---|---|", *rows])
