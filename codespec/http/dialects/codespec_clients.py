"""Our own routes: the description of all that is served; and for codespec on another machine, which
has this server as its model, those that it uses beside llama-server's."""

from __future__ import annotations

import asyncio

from codespec.http.dialects.base import Api, Json, Question, Tells
from codespec.http.dialects.openai_answers import error_of


async def _workspaces(question: Question) -> Json:
    return {"workspaces": question.server.workspace_names}


async def _description(question: Question) -> Json:
    return await asyncio.to_thread(lambda: question.server.description)  # a tenth of a second


API = Api(
    routes={"/codespec/workspaces": Tells(_workspaces), "/openapi.json": Tells(_description)},
    error=error_of,
)
