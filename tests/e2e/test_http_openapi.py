"""The description of the API at /openapi.json is valid, names each route, and is true of real
requests and answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import openapi_spec_validator
import pytest

from codespec.http.dialects.base import Tells
from codespec.http.dialects.registry import APIS
from codespec.http.openapi import ABOUT, document
from tests.e2e.conftest import Home
from tests.http_client import front_of

Json = dict[str, Any]
PREFIX, SUFFIX = (
    "import os\n\n\ndef read_file(path):\n    with open(",
    "\n\n\ndef main():\n    pass\n",
)
TEXTS: Json = {"prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 8}
INFILL: Json = {"input_prefix": PREFIX, "input_suffix": SUFFIX, "n_predict": 8}
MESSAGES = [{"role": "user", "content": "hello"}]
SEGMENTS: Json = {"segments": {"prefix": PREFIX, "suffix": SUFFIX}, "language": "python"}

# (path, body): None for a GET.
ASKED: list[tuple[str, Json | None]] = [
    ("/v1/completions", TEXTS),
    ("/v1/completions", TEXTS | {"prompt": [PREFIX, PREFIX], "temperature": None}),
    ("/v1/completions", TEXTS | {"prediction": {"type": "content", "content": PREFIX}}),
    ("/v1/completions", SEGMENTS),
    ("/v1/models", None),
    ("/models", None),
    ("/infill", INFILL),
    ("/infill", INFILL | {"response_fields": ["content", "timings/draft_n"]}),
    ("/infill", INFILL | {"input_extra": [{"filename": "a.py", "text": "x = 1\n"}]}),
    ("/completion", {"prompt": PREFIX, "n_predict": 8}),
    ("/completion", {"prompt": [PREFIX, PREFIX], "n_predict": 4, "stop": ["\n"]}),
    ("/completions", {"prompt": PREFIX, "n_predict": 4}),
    ("/tokenize", {"content": "def f"}),
    ("/tokenize", {"content": "def é", "with_pieces": True}),
    ("/detokenize", {"tokens": [1, 2, 3]}),
    ("/props", None),
    ("/slots", None),
    ("/health", None),
    ("/v1/health", None),
    ("/api/generate", {**TEXTS, "stream": False, "options": {"num_predict": 8}}),
    ("/api/generate", {"prompt": "", "stream": False}),
    ("/api/chat", {"messages": [], "stream": False}),
    ("/api/tags", None),
    ("/api/ps", None),
    ("/api/show", {"model": "any"}),
    ("/api/version", None),
    ("/v1/fim/completions", TEXTS),
    ("/codespec/workspaces", None),
    ("/openapi.json", None),
    ("/v1beta/server_setting", None),
]
REFUSED: list[tuple[str, Json | None]] = [
    ("/v1/completions", TEXTS | {"n": 2}),
    ("/v1/chat/completions", {"messages": MESSAGES}),  # the bundled model has no template
    ("/chat/completions", {"messages": MESSAGES}),
    ("/apply-template", {"messages": MESSAGES}),
    ("/v1/models/none", None),
    ("/api/generate", {"prompt": PREFIX, "think": True}),
    ("/api/chat", {"messages": MESSAGES, "stream": False}),
    ("/v1/fim/completions", TEXTS | {"tools": [{}]}),
    ("/embedding", {"content": "a"}),
    ("/v1/rerank", {"query": "a"}),
]
PLAIN: list[tuple[str, Json | None]] = [
    ("/", None),
    ("/metrics", None),
    ("/v1/events", {"type": "view"}),
]


@pytest.fixture(scope="module")
def described() -> Json:
    return json.loads(json.dumps(document(APIS)))


def strict(schema: Any) -> Any:
    """A schema whose objects have nothing that it does not name."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: strict(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        found["additionalProperties"] = False
    return found


def check(value: object, schema: Json, described: Json, *, is_strict: bool) -> None:
    whole = {**schema, "components": described["components"]}
    whole = strict(whole) if is_strict else whole
    jsonschema.Draft202012Validator(whole).validate(value)


def operation(described: Json, path: str) -> Json:
    paths = described["paths"]
    [found] = paths.get(path, paths["/v1/models/{name}"]).values()
    return found


def form(content: Json) -> Json:
    return content["application/json"]["schema"]


def test_it_is_valid(described: Json) -> None:
    openapi_spec_validator.validate(described)


def test_each_route_is_described_once(described: Json) -> None:
    routes = {path: route for api in APIS for path, route in api.routes.items()}
    assert set(routes) == set(ABOUT), "describe it in codespec/http/openapi.py"
    for path, route in routes.items():
        name = f"{path}{{name}}" if path.endswith("/") else path or "/"
        [(method, said)] = described["paths"][name].items()
        assert method.upper() == (route.method if isinstance(route, Tells) else "POST")
        assert said["summary"]
        is_post = method == "post" and bool(ABOUT[path].answer)
        assert ("requestBody" in said) == is_post, path
    asked = {path for path, _ in (*ASKED, *REFUSED)}
    left = {path for path in routes if path not in asked and ABOUT[path].answer}
    assert left == {"/v1/models/", "", "/metrics", "/v1/events"}  # asked by name, and `PLAIN`


def test_requests_and_answers_have_the_form_that_is_described(home: Home, described: Json) -> None:
    with front_of(home.path) as front:
        assert front.ask("/openapi.json") == (200, described)
        front.text(**TEXTS)  # waits for the model
        _, models = front.ask("/v1/models")
        named = (f"/v1/models/{models['data'][0]['id']}", None)
        for path, body in (*ASKED, named):
            said = operation(described, path)
            if body is not None:
                check(body, form(said["requestBody"]["content"]), described, is_strict=False)
            status, answer = front.ask(path, body)
            assert status == 200, (path, answer)
            check(answer, form(said["responses"]["200"]["content"]), described, is_strict=True)
        for path, body in REFUSED:
            status, answer = front.ask(path, body)
            assert status >= 400, (path, answer)
            content = operation(described, path)["responses"]["default"]["content"]
            check(answer, form(content), described, is_strict=True)
        for path, body in PLAIN:
            with closing(front.begin(path, body)) as connection:
                response = connection.getresponse()
                assert response.status == 200
                assert response.headers["Content-Type"].startswith("text/plain")
            assert list(operation(described, path)["responses"]["200"]["content"]) == ["text/plain"]


@pytest.mark.parametrize("file", ["http_clients.json", "fim_clients.json"])
def test_bodies_of_real_clients_fit_the_description(described: Json, file: str) -> None:
    """Those that the server answers, as other tests show."""
    found = list(bodies(json.loads((Path(__file__).parent / file).read_text("utf-8"))))
    assert len(found) > 5
    for path, body in found:
        if path in described["paths"]:
            said = operation(described, path)
            check(body, form(said["requestBody"]["content"]), described, is_strict=False)


def bodies(found: Any) -> Iterator[tuple[str, Json]]:
    """(path, body) of each request in a file of clients."""
    if isinstance(found, list):
        for each in found:
            yield from bodies(each)
    elif isinstance(found, dict):
        if isinstance(found.get("path"), str) and isinstance(found.get("body"), dict):
            yield found["path"], found["body"]
        for each in found.values():
            yield from bodies(each)
