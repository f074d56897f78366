"""The LSP side: handlers, all async and none of them waiting for anything but its answer."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.io_ import StdoutWriter, run_async
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from codespec import __version__

from .protocol import Protocol, encoding_of, place_of, private_stdout, stdin_reader

if TYPE_CHECKING:
    from .documents import Document
    from .indexer import Indexer
    from .positions import Encoding
    from .session import Session

log = logging.getLogger(__name__)

# While settings and session are still being made: [completion] deadline_auto_ms is not known yet.
_COLD_DEADLINE_S = 0.35


class Server(LanguageServer):
    """What an editor window has: documents, and a session once `initialized` came."""

    def __init__(self) -> None:
        super().__init__("codespec", __version__, protocol_cls=Protocol)
        self._protocol = cast("Protocol", self.protocol)
        self._protocol.documents = {}
        self.options: object = None
        self.session: Session | None = None
        self.indexer: Indexer | None = None
        self.opening: asyncio.Task[None] | None = None

    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        # pygls sends a message to the editor, which recurses endlessly once stdout is closed.
        log.error("pygls: %s from %s", type(error).__name__, source.__name__)

    @property
    def documents(self) -> dict[str, Document]:
        """By URI, as the editor sees them now."""
        return self._protocol.documents

    @property
    def encoding(self) -> Encoding:
        return encoding_of(self.workspace)

    @property
    def roots(self) -> list[str]:
        """Workspace folders on this machine, absolute."""
        uris = [folder.uri for folder in self.workspace.folders.values()]
        if not uris and self.workspace.root_uri:
            uris = [self.workspace.root_uri]
        return [path for path in map(path_of, uris) if path]

    def show_status(self, status: dict[str, object]) -> None:
        from .status import NOTIFICATION

        with contextlib.suppress(BrokenPipeError):
            self.protocol.notify(NOTIFICATION, status)

    async def open_session(self) -> None:
        """Load settings, start or join the daemon, index the workspace."""
        # In a thread: numpy and others take 0.1 s to import.
        await asyncio.to_thread(importlib.import_module, f"{__package__}.session")
        from codespec.config import load_settings, runtime_dir
        from codespec.errors import CodespecError

        from .indexer import Indexer, watch_command
        from .session import Session
        from .status import error_status, status_of

        try:
            settings = load_settings(self.options if isinstance(self.options, dict) else None)
            folder = runtime_dir()
        except CodespecError as e:
            self.show_status(error_status(e.message))
            return
        self.session = Session(settings, lambda change: self.show_status(status_of(change)))
        self.session.start()
        if settings.index.enabled:
            target = settings.model.target
            self.indexer = Indexer(folder, lambda root: watch_command(root, target))
            for root in self.roots:
                self.indexer.watch(root)

    async def close(self) -> None:
        if self.opening is not None:
            self.opening.cancel()
            await asyncio.gather(self.opening, return_exceptions=True)
        if self.indexer is not None:
            await self.indexer.close()
        if self.session is not None:
            await self.session.close()


def path_of(uri: str) -> str:
    """Absolute path of a document on this machine, links resolved; "" for others."""
    if not uri.startswith("file:"):
        return ""
    path = to_fs_path(uri)
    return str(Path(path).resolve()) if path else ""


async def initialize(server: Server, params: types.InitializeParams) -> None:
    server.options = params.initialization_options


async def initialized(server: Server, _params: types.InitializedParams) -> None:
    server.opening = asyncio.ensure_future(server.open_session())
    _warm_up(server)


async def inline_completion(
    server: Server, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    nothing = types.InlineCompletionList(items=[])
    document = server.documents.get(params.text_document.uri)
    if document is None:
        return nothing
    if server.session is None:
        version = document.version
        if server.opening is not None:
            await asyncio.wait({server.opening}, timeout=_COLD_DEADLINE_S)
        # A text that changed while we waited has a request of its own under way.
        if server.session is None or document.version != version:
            return nothing
    from .session import MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS, workspace_of

    snapshot = document.snapshot(
        place_of(params.position), server.encoding, MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS
    )
    path = path_of(document.uri)
    invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
    completion = await server.session.complete(
        snapshot, path, workspace_of(path, server.roots), invoked
    )
    log.debug("%s: %s %s", path, completion.finish, completion.reason)
    if not completion.text:
        return nothing
    at = types.Position(snapshot.place.line, snapshot.place.character)
    return types.InlineCompletionList(
        items=[
            types.InlineCompletionItem(
                insert_text=completion.text.replace("\n", snapshot.line_end),
                range=types.Range(at, at),
            )
        ]
    )


async def did_save(server: Server, params: types.DidSaveTextDocumentParams) -> None:
    if server.indexer is not None:
        from .session import workspace_of

        path = path_of(params.text_document.uri)
        root = workspace_of(path, server.roots)
        if root:
            server.indexer.changed(root, path)


async def did_change_folders(server: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    if server.indexer is not None:
        for folder in params.event.removed:
            await server.indexer.unwatch(path_of(folder.uri))
        for folder in params.event.added:
            path = path_of(folder.uri)
            if path:
                server.indexer.watch(path)


def _warm_up(server: Server) -> None:
    """cattrs generates its converters at first use, 20 ms that no keystroke should pay."""
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


def make_server() -> Server:
    server = Server()
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(
        inline_completion
    )
    server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))(did_save)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(did_change_folders)
    return server


def serve_stdio() -> None:
    """Until `exit`, or until the editor closes stdin. Raises: SystemExit with LSP's status."""
    from codespec.daemon.logs import Private

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("codespec: %(message)s"))
    handler.addFilter(Private())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    # It warns about cancel requests that came a moment too late, which is no news.
    logging.getLogger("pygls").setLevel(logging.ERROR)

    async def serve() -> None:
        server = make_server()
        server.protocol.set_writer(StdoutWriter(private_stdout()))
        try:
            await run_async(
                stop_event=threading.Event(),
                reader=await stdin_reader(),
                protocol=server.protocol,
                error_handler=server.report_server_error,
            )
        finally:
            await server.close()

    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        asyncio.run(serve())
