"""OpenAI's API: completions, chats and the list of models."""

from __future__ import annotations

from codespec.http.access import Refused
from codespec.http.dialects.base import Api, Dialect, Json, Question, Tells, Writes
from codespec.http.dialects.chats import OpenAIChat, chat_error
from codespec.http.dialects.completions import OpenAICompletions
from codespec.http.dialects.openai_answers import error_of
from codespec.http.dialects.tabby import TabbyCompletion, is_asked
from codespec.models.figures import ModelFigures

_MODELS = "/v1/models"


def _completions(raw: bytes, model: str) -> Dialect:
    """A completion of OpenAI's, or one of Tabby's, which has the same path."""
    return TabbyCompletion(raw, model) if is_asked(raw) else OpenAICompletions(raw, model)


def _rows(question: Question) -> list[Json]:
    figures = question.server.daemon.figures
    about = {"object": "model", "created": 0, "owned_by": "codespec"}
    first, *others = ({"id": name, **about} for name in question.server.models())
    return [
        first | _figures(figures) | _card(figures),
        *(other | _card(ModelFigures()) for other in others),
    ]


def _figures(figures: ModelFigures) -> Json:
    """The length of the model's context by vLLM's name, and figures by llama-server's."""
    meta = {
        "n_ctx": figures.n_ctx,
        "n_ctx_train": figures.n_ctx_trained,
        "n_params": figures.n_params,
        "size": figures.file_bytes,
    }
    return {"max_model_len": figures.n_ctx, "meta": meta} if figures.n_ctx else {}


def _card(figures: ModelFigures) -> Json:
    """The fields by which Mistral's clients know a model. Source: https://docs.mistral.ai/api"""
    length = {"max_context_length": figures.n_ctx} if figures.n_ctx else {}
    return {
        "type": "base",
        "capabilities": {
            "completion_chat": figures.chats,
            "completion_fim": figures.fills_in,
            "function_calling": False,
            "fine_tuning": False,
            "vision": False,
        },
        **length,
    }


async def _models(question: Question) -> Json:
    return {"object": "list", "data": _rows(question)}


async def _model(question: Question) -> Json:
    for row in _rows(question):
        if row["id"] == question.rest:
            return row
    raise Refused(404, f"no such model; GET {_MODELS} names those there are", "model")


_LIST = Tells(_models)
_CHATS = Writes(OpenAIChat)
# llama-server has some of these without /v1, too.
API = Api(
    routes={
        "/v1/completions": Writes(_completions),
        _MODELS: _LIST,
        "/models": _LIST,
        f"{_MODELS}/": Tells(_model),
    },
    error=error_of,
)
CHATS = Api(routes={"/v1/chat/completions": _CHATS, "/chat/completions": _CHATS}, error=chat_error)
