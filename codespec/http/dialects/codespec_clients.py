"""Routes for codespec on another machine, which has this server as its model: beside those of
llama-server that it uses."""

from __future__ import annotations

from codespec.http.dialects.base import Api, Json, Question, Tells
from codespec.http.dialects.openai_answers import error_of


async def _workspaces(question: Question) -> Json:
    return {"workspaces": question.server.workspace_names}


API = Api(routes={"/codespec/workspaces": Tells(_workspaces)}, error=error_of)
