"""Another codespec (`codespec daemon http`): it drafts from its own index of the workspace.

It answers as llama-server does, and knows the document's place in a workspace of its own.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from codespec.backends.generators import GeneratorFigures
from codespec.backends.remote.failures import ServerError
from codespec.backends.remote.inquiry import Inquiry, decoded
from codespec.backends.remote.llama_cpp_server import LlamaCppServer
from codespec.backends.remote.server_kind import Piece, Served, ServerRequest
from codespec.limits import NAMES, Name, at_most
from codespec.system.files import relative
from codespec.types import SourceStats


class _Workspaces(msgspec.Struct):
    workspaces: list[str]


_Figure = Annotated[int, msgspec.Meta(ge=0, le=1 << 32)]


class _Drafts(msgspec.Struct):
    draft_n: _Figure = 0
    draft_n_accepted: _Figure = 0


class _Timings(msgspec.Struct):
    passes_n: _Figure = 0
    drafts: Annotated[dict[Name, _Drafts], at_most(NAMES)] = {}


class _Last(msgspec.Struct):
    timings: _Timings | None = None


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
        del body["return_tokens"]  # it answers in text
        name = os.path.basename(os.path.normpath(asked.workspace)) if asked.workspace else ""
        # One that it does not have would be refused; "" is none, where nothing is its first.
        if name not in asked.served.workspaces:
            return route, {**body, "workspace": ""}
        path = relative(asked.path, asked.workspace) if asked.path else ""
        inside = {} if path.startswith(os.pardir) or not path else {"path": path}
        return route, {**body, "workspace": name, **inside}

    def piece(self, line: bytes) -> Piece | None:
        piece = super().piece(line)
        if piece is None or piece.finish is None:
            return piece
        try:
            timings = decoded(line.partition(b":")[2], _Last).timings
        except ServerError:  # figures of nothing; the text stands
            timings = None
        if timings is None:
            return piece
        by_source = {
            source: SourceStats(drafts.draft_n, drafts.draft_n_accepted)
            for source, drafts in timings.drafts.items()
        }
        return piece._replace(figures=GeneratorFigures(timings.passes_n, by_source))
