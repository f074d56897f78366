"""OpenAI's API: completions, chats, the list of models, and the form of errors."""

from __future__ import annotations

from codespec.http.access import Refused
from codespec.http.dialects.base import Api, Json, Question, Tells, Writes
from codespec.http.dialects.chats import OpenAIChat
from codespec.http.dialects.completions import OpenAICompletions

_MODELS = "/v1/models"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "unavailable_error",
}


def error_of(status: int, message: str, field: str) -> Json:
    """An error in OpenAI's form, which is llama-server's, too."""
    kind = _KINDS.get(status, _KINDS[400])
    return {"error": {"message": message, "type": kind, "param": field or None, "code": status}}


def _rows(question: Question) -> list[Json]:
    about = {"object": "model", "created": 0, "owned_by": "codespec"}
    return [{"id": name, **about} for name in question.server.models()]


async def _models(question: Question) -> Json:
    return {"object": "list", "data": _rows(question)}


async def _model(question: Question) -> Json:
    for row in _rows(question):
        if row["id"] == question.rest:
            return row
    raise Refused(404, f"no such model; GET {_MODELS} names those there are", "model")


API = Api(
    routes={
        "/v1/completions": Writes(OpenAICompletions),
        "/v1/chat/completions": Writes(OpenAIChat),
        _MODELS: Tells(_models),
        f"{_MODELS}/": Tells(_model),
    },
    error=error_of,
)
