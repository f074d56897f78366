"""workspace/didChangeWorkspaceFolders: other folders are indexed."""

from __future__ import annotations

from lsprotocol import types

from ..language_server import CodespecServer
from ..uris import path_of


async def did_change_workspace_folders(
    server: CodespecServer, params: types.DidChangeWorkspaceFoldersParams
) -> None:
    removed = [path_of(folder.uri) for folder in params.event.removed]
    path_of.cache_clear()
    added = [path_of(folder.uri) for folder in params.event.added]
    async with server.moving:
        for path in removed:
            if server.indexer is not None:
                await server.indexer.unwatch(path)
        for path in added:
            if path and server.indexer is not None:
                server.indexer.watch(path)
