"""initialize and initialized: the editor's options, then the session."""

from __future__ import annotations

import asyncio
from typing import Any

from lsprotocol import types

from ..language_server import CodespecServer
from .did_change_configuration import ask_configuration


async def initialize(server: CodespecServer, params: types.InitializeParams) -> None:
    """Only note the options: the editor is starting up, and waits for the reply."""
    server.configuration.options = params.initialization_options
    if params.trace is not None:
        server.protocol.trace = params.trace


async def initialized(server: CodespecServer, _params: types.InitializedParams) -> None:
    server.opening = asyncio.ensure_future(_open(server))
    _warm_up(server)


async def _open(server: CodespecServer) -> None:
    """Load settings, start or join the daemon, index the workspace; then ask for the editor's own
    settings."""
    await server.reload()
    server.asking = asyncio.ensure_future(ask_configuration(server))


def _warm_up(server: CodespecServer) -> None:
    """Have cattrs generate its converters, 20 ms that no keystroke should pay."""
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": types.TEXT_DOCUMENT_INLINE_COMPLETION,
        "params": {
            "textDocument": {"uri": ""},
            "position": {"line": 0, "character": 0},
            "context": {"triggerKind": 2},
        },
    }
    server.protocol.structure_message(message)
