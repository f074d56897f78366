"""llama-server's API: infill and health. Source: llama.cpp, tools/server/README.md."""

from __future__ import annotations

from codespec.http.dialects.base import Api, Json, Question, Tells, Writes
from codespec.http.dialects.infill import Infill
from codespec.http.dialects.openai_answers import error_of


async def _health(question: Question) -> Json:
    warning = question.server.check_ready(is_known=question.is_known)
    return {"status": "ok", "warning": warning} if warning else {"status": "ok"}


API = Api(
    routes={
        "/infill": Writes(Infill),
        "/health": Tells(_health, is_public=True),
        "/v1/health": Tells(_health, is_public=True),
    },
    error=error_of,
)
