"""The description of the API, as OpenAPI 3.1: what is served at /openapi.json.

Bodies are those that the routes read; answers are in `answer_forms`. Source: OpenAPI Specification
3.1.1, https://spec.openapis.org/oas/v3.1.1.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from codespec import __version__
from codespec.http import answer_forms as forms
from codespec.http.bodies import ChatBody, CompletionsBody
from codespec.http.dialects.base import Api, Json, Route, Tells, Writes
from codespec.http.dialects.mistral import FimBody
from codespec.http.dialects.ollama_bodies import GenerateBody, OllamaChatBody, ShowBody
from codespec.http.dialects.tabby import EventBody, TabbyBody
from codespec.http.llama_bodies import CompletionBody, DetokenizeBody, InfillBody, TokenizeBody

_REF = "#/components/schemas/"
_NOT_THERE = "Not there: 501."
_SUMMARY = "Code completion by a model on this machine, in the APIs of several servers."
_DESCRIPTION = (
    "null is the default of any field of a body, and 16.0 is 16. Fields that would change the "
    "text and are not honoured are refused by name; others that are not named are ignored. With "
    "`stream` an answer comes in events of the same form."
)


@dataclass(frozen=True, slots=True)
class Described:
    """A route in words and types. bodies: one of these is read; none: there is no body. answer: of
    status 200, one of these; str is plain text; none: the route answers 501 alone."""

    summary: str
    bodies: tuple[Any, ...] = ()
    answer: tuple[Any, ...] = ()
    error: Any = forms.Error


_LLAMA_ANSWERS = (forms.LlamaAnswer, list[forms.LlamaAnswer], dict[str, Any])
"""One, several where several were asked for, and the fields that were asked for alone."""

ABOUT: Mapping[str, Described] = {
    "/v1/completions": Described(
        "Text for a prompt, with a suffix or without; Tabby's segments, too",
        (CompletionsBody, TabbyBody),
        (forms.TextCompletion, forms.TabbyAnswer),
    ),
    "/v1/chat/completions": Described(
        "Text for a chat", (ChatBody,), (forms.ChatCompletion,), forms.ChatError
    ),
    "/chat/completions": Described(
        "As /v1/chat/completions", (ChatBody,), (forms.ChatCompletion,), forms.ChatError
    ),
    "/models": Described("As /v1/models", (), (forms.ModelList,)),
    "/v1/models": Described("Models that answer", (), (forms.ModelList,)),
    "/v1/models/": Described("A model that answers", (), (forms.ModelRow,)),
    "/infill": Described("Text between two texts", (InfillBody,), _LLAMA_ANSWERS),
    "/completion": Described("Text for a prompt of any kind", (CompletionBody,), _LLAMA_ANSWERS),
    "/completions": Described("As /completion", (CompletionBody,), _LLAMA_ANSWERS),
    "/tokenize": Described("Tokens of a text", (TokenizeBody,), (forms.TokensAnswer,)),
    "/detokenize": Described("Text of tokens", (DetokenizeBody,), (forms.ContentAnswer,)),
    "/apply-template": Described("Prompt of a chat", (ChatBody,), (forms.PromptAnswer,)),
    "/props": Described("The server and its model", (), (forms.PropsAnswer,)),
    "/slots": Described("The one slot there is", (), (list[forms.Slot],)),
    "/health": Described(
        "Whether a model is ready: 503 while it is not", (), (forms.HealthAnswer,)
    ),
    "/metrics": Described("Counts for Prometheus", (), (str,)),
    "/v1/health": Described("The same, and Tabby's health", (), (forms.HealthOfBoth,)),
    "": Described("Says that Ollama's API is served", (), (str,), forms.OllamaError),
    "/api/generate": Described(
        "Text for a prompt, with a suffix or without",
        (GenerateBody,),
        (forms.Generated,),
        forms.OllamaError,
    ),
    "/api/chat": Described(
        "Text for a chat", (OllamaChatBody,), (forms.Chatted,), forms.OllamaError
    ),
    "/api/tags": Described("Models that answer", (), (forms.OllamaModels,), forms.OllamaError),
    "/api/ps": Described("The model that is loaded", (), (forms.RunningModels,), forms.OllamaError),
    "/api/show": Described(
        "A model's figures", (ShowBody,), (forms.ShownModel,), forms.OllamaError
    ),
    "/api/version": Described(
        "The version of this API", (), (forms.OllamaVersion,), forms.OllamaError
    ),
    "/v1/fim/completions": Described(
        "Text between two texts",
        (FimBody,),
        (forms.ChatCompletion,),
        forms.MistralError,
    ),
    "/codespec/workspaces": Described("Workspaces of the server", (), (forms.WorkspacesAnswer,)),
    "/openapi.json": Described("This description", (), (dict[str, Any],)),
    "/v1/events": Described("Taken and dropped", (EventBody,), (str,)),
    "/v1beta/server_setting": Described("Switches telemetry off", (), (forms.ServerSetting,)),
    **{
        path: Described(_NOT_THERE)
        for path in (
            *("/embedding", "/embeddings", "/v1/embeddings"),
            *("/rerank", "/reranking", "/v1/rerank", "/v1/reranking"),
        )
    },
}
"""Path of a route -> what it is."""


def document(apis: Sequence[Api]) -> Json:
    """The description of the routes of these APIs."""
    routes = {path: (api, route) for api in apis for path, route in api.routes.items()}
    types = list(dict.fromkeys(kind for about in ABOUT.values() for kind in _types(about)))
    made = msgspec.json.schema_components(types, ref_template=f"{_REF}{{name}}")
    # Names of private classes without their underscore.
    schemas, raw = json.loads(json.dumps(made).replace(f"{_REF}_", _REF))
    components: dict[str, Json] = {name.lstrip("_"): schema for name, schema in raw.items()}
    assert len(components) == len(raw), "two classes have one name"
    by_type = dict(zip(types, schemas, strict=True))
    bodies = {kind.__name__ for about in ABOUT.values() for kind in about.bodies}
    for name, schema in components.items():
        _tidy(schema, is_body=name in bodies)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "codespec",
            "version": __version__,
            "summary": _SUMMARY,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {
            _path(path): _operations(path, api, route, by_type)
            for path, (api, route) in routes.items()
        },
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            },
        },
    }


def _types(about: Described) -> Iterator[Any]:
    yield from (*about.bodies, *about.answer, about.error)


def _path(path: str) -> str:
    return f"{path}{{name}}" if path.endswith("/") else path or "/"


def _operations(path: str, api: Api, route: Route, schema_of: Mapping[Any, Json]) -> Json:
    about = ABOUT.get(path, Described(path))
    method = route.method.lower() if isinstance(route, Tells) else "post"
    operation: Json = {
        "operationId": f"{method}{path.replace('/', '_').replace('-', '_').replace('.', '_')}",
        "summary": about.summary,
        "responses": _responses(about, api, route, schema_of),
        # Where the server has no keys, none is needed.
        "security": [{"bearer": []}, {"header": []}, {}],
    }
    if path.endswith("/"):
        operation["parameters"] = [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    if about.bodies:
        content = {"application/json": {"schema": _any_of(about.bodies, schema_of)}}
        operation["requestBody"] = {"required": True, "content": content}
    return {method: operation}


def _responses(about: Described, api: Api, route: Route, schema_of: Mapping[Any, Json]) -> Json:
    error = {"application/json": {"schema": schema_of[about.error]}}
    found: Json = {"default": {"description": "An error", "content": error}}
    if not about.answer:
        return found
    if about.answer == (str,):
        content: Json = {"text/plain": {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": _any_of(about.answer, schema_of)}}
    if isinstance(route, Writes):
        content[api.stream_type] = {"schema": {"type": "string"}}
    return {"200": {"description": about.summary, "content": content}, **found}


def _any_of(types: Sequence[Any], schema_of: Mapping[Any, Json]) -> Json:
    schemas = [schema_of[kind] for kind in types]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _tidy(schema: Json, *, is_body: bool) -> None:
    """Mend a schema: docstrings on one line; in bodies null for each field that may be left out."""
    if text := schema.get("description"):
        schema["description"] = " ".join(str(text).split())
    if not is_body:
        return
    required = schema.get("required", ())
    for name, of_field in schema.get("properties", {}).items():
        if name not in required and {"type": "null"} not in of_field.get("anyOf", ()):
            default = {"default": of_field.pop("default")} if "default" in of_field else {}
            schema["properties"][name] = {"anyOf": [of_field, {"type": "null"}], **default}
