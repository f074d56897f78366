"""The APIs that are spoken: each is one file with its routes, and a line here."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codespec.http.dialects import (
    codespec_clients,
    llama_server,
    mistral,
    ollama,
    openai,
    tabby,
)
from codespec.http.dialects.base import Api, Route

APIS: tuple[Api, ...] = (
    openai.API,
    openai.CHATS,
    llama_server.API,
    ollama.API,
    mistral.API,
    codespec_clients.API,
    tabby.API,
)
"""The first one's errors answer for paths of none."""

_ROUTES = {path: (api, route) for api in APIS for path, route in api.routes.items()}


def paths_beside(path: str) -> Iterator[str]:
    """The paths that are served by the API of a path; all there are for a path of none."""
    apis = [api for api in APIS if path.startswith(api.prefixes)] or APIS
    return (served or "/" for api in apis for served in api.routes)


def route_of(path: str) -> tuple[Api, Route | None, str]:
    """The API of a path, its route (None: there is none), and the rest of the path after a route
    that ends in "/". Slashes too many, which base addresses leave, mean nothing."""
    path = re.sub("//+", "/", path).rstrip("/")
    if path in _ROUTES:
        return *_ROUTES[path], ""
    for begun, (api, route) in _ROUTES.items():
        if begun.endswith("/") and path.startswith(begun):
            return api, route, path.removeprefix(begun)
    return next((api for api in APIS if path.startswith(api.prefixes)), APIS[0]), None, ""
