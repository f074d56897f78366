"""llama-server's API: infill, completions, tokens, and what the server tells of itself. No answer
has a text of anyone else. Source: llama.cpp, tools/server/README.md."""

from __future__ import annotations

from functools import partial
from typing import Any

from codespec import __version__
from codespec.errors import CodespecError
from codespec.http.access import Refused
from codespec.http.bodies import ALL_THERE_IS, ChatBody, fields_of, read
from codespec.http.dialects.base import Api, Json, PlainText, Question, Tells, Writes
from codespec.http.dialects.infill import Infill
from codespec.http.dialects.llama_answers import settings_of
from codespec.http.dialects.llama_completion import LlamaCompletion
from codespec.http.dialects.openai_answers import error_of
from codespec.http.dialects.tabby import health_state
from codespec.http.llama_bodies import DetokenizeBody, TokenizeBody
from codespec.http.vocabularies import Vocabulary
from codespec.requests import CompletionRequest
from codespec.types import SamplingParams

_EMBEDDINGS = ("/embedding", "/embeddings", "/v1/embeddings")
_RERANKS = ("/rerank", "/reranking", "/v1/rerank", "/v1/reranking")


async def _health(question: Question) -> Json:
    warning = question.server.check_ready(is_known=question.is_known)
    return {"status": "ok", "warning": warning} if warning else {"status": "ok"}


async def _health_of_both(question: Question) -> Json:
    """llama-server's health and Tabby's, which have the same path. It needs a key where there are
    some: Tabby's clients take any answer for the leave to complete."""
    return {**await _health(question), **await health_state(question)}


async def _props(question: Question) -> Json:
    server = question.server
    server.check_ready()
    try:
        name, template = await server.of_vocabulary(lambda v: (v.file_name, v.chat_template))
    except (Refused, CodespecError):  # of a model elsewhere
        name, template = server.daemon.model, ""
    return {
        "default_generation_settings": _slot(question),
        "total_slots": 1,
        "model_alias": server.daemon.model,
        "model_path": name,
        "chat_template": template if server.daemon.figures.chats else "",
        "modalities": {"vision": False, "audio": False},
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "build_info": f"codespec {__version__}",
        "is_sleeping": False,
    }


async def _metrics(question: Question) -> PlainText:
    return await question.server.metrics(question.accept)


async def _slots(question: Question) -> list[Json]:
    question.server.check_ready()
    if "fail_on_no_slot" in question.asked and question.server.is_busy:
        raise Refused(503, "no slot available: a text is being written")
    return [_slot(question)]


def _slot(question: Question) -> Json:
    """The one slot there is, with what a request gets that names nothing."""
    server = question.server
    defaults = server.settings.completion
    sampling = SamplingParams(temperature=defaults.temperature, any_seed=True)
    request = CompletionRequest("", max_tokens=ALL_THERE_IS, sampling=sampling)
    return {
        "id": 0,
        "n_ctx": server.daemon.figures.n_ctx,
        "speculative": True,
        "is_processing": server.is_busy,
        "params": settings_of(request, streams=False),
    }


# Bodies are read on the vocabulary's thread: they may be long.


async def _tokenize(question: Question) -> Json:
    def ask(vocabulary: Vocabulary) -> list[Any]:
        body = fields_of(question.body, TokenizeBody)
        tokens = vocabulary.tokens(
            body.content, begins=body.add_special, reads_special=body.parse_special
        )
        if not body.with_pieces:
            return tokens
        return [{"id": token, "piece": _text_or_bytes(vocabulary.piece(token))} for token in tokens]

    return {"tokens": await question.server.of_vocabulary(ask)}


def _text_or_bytes(piece: bytes) -> str | list[int]:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


async def _detokenize(question: Question) -> Json:
    def ask(vocabulary: Vocabulary) -> str:
        return vocabulary.text(fields_of(question.body, DetokenizeBody).tokens)

    return {"content": await question.server.of_vocabulary(ask)}


async def _apply_template(question: Question) -> Json:
    def ask(vocabulary: Vocabulary) -> str:
        messages = read(question.body, ChatBody).messages
        return vocabulary.chat_prompt([message.said for message in messages])

    return {"prompt": await question.server.of_vocabulary(ask)}


async def _not_there(what: str, question: Question) -> Json:
    raise Refused(501, f"codespec completes code, and has no {what}")


API = Api(
    routes={
        "/infill": Writes(Infill),
        "/completion": Writes(LlamaCompletion),
        "/completions": Writes(LlamaCompletion),
        "/tokenize": Tells(_tokenize, "POST"),
        "/detokenize": Tells(_detokenize, "POST"),
        "/apply-template": Tells(_apply_template, "POST"),
        "/props": Tells(_props),
        "/slots": Tells(_slots),
        "/metrics": Tells(_metrics),
        "/health": Tells(_health, is_public=True),
        "/v1/health": Tells(_health_of_both),
        **{path: Tells(partial(_not_there, "embeddings"), "POST") for path in _EMBEDDINGS},
        **{path: Tells(partial(_not_there, "reranking"), "POST") for path in _RERANKS},
    },
    error=error_of,
)
