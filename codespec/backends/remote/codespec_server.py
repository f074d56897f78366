"""Another codespec (`codespec daemon http`): it drafts from its own index of the workspace.

It answers as llama-server does, and knows the document's place in a workspace of its own.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import msgspec

from codespec.backends.remote.inquiry import Inquiry
from codespec.backends.remote.llama_cpp_server import LlamaCppServer
from codespec.backends.remote.server_kind import Served, ServerRequest


class _Workspaces(msgspec.Struct):
    workspaces: list[str]


class OtherCodespec(LlamaCppServer):
    """`codespec daemon http`."""

    name = "codespec"
    owner = "codespec"

    def served(self, inquiry: Inquiry, model: str) -> Served | None:
        served = super().served(inquiry, model)
        if served is None:
            return None
        there = inquiry.ask("/codespec/workspaces", _Workspaces) or _Workspaces([])
        return replace(served, workspaces=frozenset(there.workspaces))

    def request(self, asked: ServerRequest) -> tuple[str, dict[str, Any]]:
        route, body = super().request(asked)
        name = os.path.basename(os.path.normpath(asked.workspace)) if asked.workspace else ""
        # One that it does not have would be refused; "" is none, where nothing is its first.
        if name not in asked.served.workspaces:
            return route, {**body, "workspace": ""}
        path = os.path.relpath(asked.path, asked.workspace) if asked.path else ""
        inside = {} if path.startswith(os.pardir) or not path else {"path": path}
        return route, {**body, "workspace": name, **inside}
