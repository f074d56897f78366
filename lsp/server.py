"""What an editor window has: documents, a session, an indexer; and its end of the pipe."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import logging
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.io_ import StdoutWriter, run_async
from pygls.lsp.server import LanguageServer

from codespec import __version__
from codespec.limits import FOLDERS

from .changes import as_one
from .configuration import SECTION, Configuration
from .notebooks import Notebooks
from .pipes import private_stdout, stdin_reader
from .progress import Work
from .protocol import (
    Protocol,
    encoding_of,
    make_converter,
    path_of,
)

if TYPE_CHECKING:
    from codespec.config import IndexSettings, ModelSettings, Settings
    from codespec.daemon.wire import StateChanged
    from codespec.requests import Completion

    from .answers import Ask
    from .changes import Change
    from .documents import Document, Selection
    from .growth import Grown
    from .indexer import Indexer
    from .positions import Encoding, Place
    from .session import Session
    from .status import Status

log = logging.getLogger(__name__)

GROWING = "growingCompletion"
"""Among the experimental capabilities of an editor, see `handlers`."""


class Server(LanguageServer):
    """What an editor window has: documents, and a session once `initialized` came."""

    def __init__(self) -> None:
        cells = types.NotebookDocumentFilterWithNotebook(notebook="*")
        super().__init__(
            "codespec",
            __version__,
            notebook_document_sync=types.NotebookDocumentSyncOptions([cells]),
            protocol_cls=Protocol,
            converter_factory=make_converter,
        )
        self._protocol = cast("Protocol", self.protocol)
        self._protocol.documents = {}
        self._protocol.left_alone = {}
        self._protocol.notebooks = Notebooks(self._protocol.documents)
        self._protocol.on_open = self._document_opened
        self._protocol.on_change = self._document_changed
        self._protocol.on_close = self._document_closed
        self.configuration = Configuration()
        self.settings: Settings | None = None
        self.session: Session | None = None
        self.indexer: Indexer | None = None
        self.opening: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._reloading = asyncio.Lock()
        self.moving = asyncio.Lock()
        """Held while the indexer is told of folders: one that comes back waits for its end."""
        self._indexed_with: tuple[IndexSettings, ModelSettings] | None = None
        self._status: Status | None = None
        self.at_hand = ""
        """URI of the document that the user looks at, as far as we know."""
        self._work: dict[str, Work] = {}
        self.on_grown: Grown = lambda ask, answered, offer: None
        """Told of suggestions that grow, where the editor can show that."""

    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        # pygls sends a message to the editor, which recurses endlessly once stdout is closed.
        from codespec.daemon.logs import outline

        if not isinstance(error, JsonRpcException):  # those are told by who raises them
            log.error("a message of the editor failed: %s", outline(error))

    @property
    def documents(self) -> dict[str, Document]:
        """By URI, as the editor sees them now."""
        return self._protocol.documents

    @property
    def left_alone(self) -> dict[str, tuple[Document, str]]:
        return self._protocol.left_alone

    @property
    def notebooks(self) -> Notebooks:
        return self._protocol.notebooks

    def path_of(self, uri: str) -> str:
        """Absolute path of the file that a document is, or is a cell of; "" for others."""
        notebook = self.notebooks.of(uri)
        return path_of(uri if notebook is None else notebook.uri)

    @property
    def encoding(self) -> Encoding:
        return encoding_of(self.workspace)

    @property
    def roots(self) -> list[str]:
        """Workspace folders on this machine, absolute."""
        uris = [folder.uri for folder in self.workspace.folders.values()]
        if not uris and self.workspace.root_uri:
            uris = [self.workspace.root_uri]
        return [path for path in map(path_of, uris[:FOLDERS]) if path]

    @property
    def status(self) -> Status:
        if self._status is None:
            from .status import NOTIFICATION, Status

            def send(status: dict[str, object]) -> None:
                with contextlib.suppress(BrokenPipeError):
                    self.protocol.notify(NOTIFICATION, status)

            self._status = Status(send)
        return self._status

    @property
    def _shows_growth(self) -> bool:
        """Whether the editor says that it can show more of a suggestion than it asked for."""
        said = self.client_capabilities.experimental
        return isinstance(said, Mapping) and said.get(GROWING) is True

    def trace(self, message: str) -> None:
        """Shown by editors that are told to trace; never source text."""
        if self.protocol.trace != types.TraceValue.Off:
            with contextlib.suppress(BrokenPipeError):
                self.log_trace(types.LogTraceParams(message))

    def _generated(self, completion: Completion) -> None:
        if self.protocol.trace != types.TraceValue.Verbose:
            return
        n_tokens, n_passes = completion.trace.n_tokens, completion.trace.n_target_passes
        message = f"generation: {completion.finish}, {n_tokens} tokens in {n_passes} passes"
        with contextlib.suppress(BrokenPipeError):
            self.log_trace(types.LogTraceParams(message, figures_of(completion)))

    async def opened(self, invoked: bool) -> None:
        """When the session is there, or a request's time is over."""
        await asyncio.sleep(0)  # `open_session` begins with the settings
        if self.opening is not None and self.settings is not None:
            patience_ms = self.settings.completion.deadline_ms(invoked)
            await asyncio.wait({self.opening}, timeout=patience_ms / 1e3)

    async def open_session(self) -> None:
        """Load settings, start or join the daemon, index the workspace."""
        await self.reload()
        self._asking = asyncio.ensure_future(self._ask_configuration())

    async def reload(self) -> None:
        """Settings may have changed: load them, and do what follows. They hold for the next request
        already. With settings that cannot be used, everything stays as it was, and the status says
        why."""
        from codespec.errors import CodespecError

        try:
            settings = self.configuration.load()
            if self.session is not None and settings != self.settings:
                self.session.configure(settings)
        except CodespecError as e:
            self.status.error(f"{e.message}. {e.hint}" if e.hint else e.message)
            return
        self.status.error("")
        self.settings = settings
        async with self._reloading:
            if self.session is None:
                await self._start_session()
            self.show_pause()
            await self._index(self.settings)

    def show_pause(self) -> None:
        """The status is about the document at hand."""
        if self.session is not None:
            from .folders import workspace_of

            if self.at_hand in self.left_alone:
                _, why = self.left_alone[self.at_hand]
                self.status.paused(why)
                return
            document = self.documents.get(self.at_hand)
            uri, language = (document.uri, document.language_id) if document else ("", "")
            path = self.path_of(uri)
            workspace = workspace_of(path, self.roots)
            self.status.paused(self.session.why_paused(uri, path, workspace, language))

    async def _start_session(self) -> None:
        # In a thread: numpy and others take 0.1 s to import.
        await asyncio.to_thread(importlib.import_module, f"{__package__}.session")
        from .session import Session

        assert self.settings is not None
        self.session = Session(
            self.settings,
            self._state_changed,
            self._lines_of,
            self._generated,
            self.on_grown if self._shows_growth else None,
        )
        self.session.start()
        for document in list(self.documents.values())[-1:]:  # opened meanwhile
            self.looked_at(document, document.edited, "utf-32")

    async def _index(self, settings: Settings) -> None:
        from .indexer import Indexer, watch_command, watch_environment

        if self._indexed_with == (settings.index, settings.model):
            return
        self._indexed_with = (settings.index, settings.model)
        if self.indexer is not None:
            # What is opened or saved meanwhile must not begin anything there.
            indexer, self.indexer = self.indexer, None
            await indexer.close()
        if settings.index.enabled:
            target = settings.model.target
            self.indexer = Indexer(
                lambda root: watch_command(root, target),
                watch_environment(settings.index),
                on_progress=self._index_progressed,
            )
            for root in self.roots:
                self.indexer.watch(root)

    async def _ask_configuration(self) -> None:
        """What the editor's own settings say, now and whenever they change."""
        workspace = self.client_capabilities.workspace
        if workspace is None:
            return
        changes = workspace.did_change_configuration
        if changes is not None and changes.dynamic_registration:
            method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
            options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
            registration = types.Registration(str(uuid.uuid4()), method, options)
            with contextlib.suppress(JsonRpcException, BrokenPipeError):
                await self.client_register_capability_async(
                    types.RegistrationParams([registration])
                )
        await self.pull_configuration()

    async def pull_configuration(self) -> None:
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return
        with contextlib.suppress(JsonRpcException, BrokenPipeError):
            found = await self.workspace_configuration_async(
                types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
            )
            await self.configure(found[0] if found else None)

    async def configure(self, client: object) -> None:
        """Settings from the editor; None for none."""
        if client != self.configuration.client:
            self.configuration.client = client
            await self.reload()

    def ask(
        self,
        document: Document,
        place: Place,
        encoding: Encoding,
        *,
        invoked: bool = False,
        selection: Selection | None = None,
    ) -> Ask:
        """What to ask for the document as it is now. Call with a session only."""
        from codespec.requests import MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS

        from .answers import Ask
        from .folders import workspace_of

        limits = (MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS)
        snapshot = document.snapshot(place, encoding, *limits, selection)
        path = self.path_of(document.uri)
        workspace = workspace_of(path, self.roots)
        return Ask(self.notebooks.joined(snapshot, *limits), path, workspace, invoked)

    def looked_at(self, document: Document, place: Place, encoding: Encoding) -> None:
        """The user is here, as far as we know: get ready for a request."""
        if self.session is not None:
            self.session.prefetch(
                document.uri,
                place.line,
                lambda: (
                    self.ask(document, place, encoding)
                    if self.documents.get(document.uri) is document
                    else None
                ),
            )

    def _document_opened(self, document: Document) -> None:
        if document.uri == self.at_hand:
            self.show_pause()
        self.looked_at(document, document.edited, "utf-32")

    def _document_changed(self, document: Document, changes: Sequence[Change]) -> None:
        if self.session is None:
            return
        if len(changes) == 1 and len(changes[0].text.strip()) == 1:
            self.session.typed(document.language_id, len(changes[0].text))
        key = as_one(changes)
        is_key = key is not None and key.is_key
        cursor = document.edited if key is None else key.cursor(document.edited)
        is_growing = self.session.is_growing(document.uri)
        if is_key or is_growing:
            now = self.ask(document, cursor, "utf-32")
            if is_growing:
                self.session.changed(now.snapshot)
            if is_key:
                self.session.foresee(now)
        self.looked_at(document, cursor, "utf-32")

    def _document_closed(self, uri: str) -> None:
        if uri == self.at_hand:
            self.show_pause()
        if self.session is not None:
            self.session.closed(uri)

    def _state_changed(self, change: StateChanged) -> None:
        self.status.state(change)
        work = self._work_on("model", "codespec: loading the model")
        if change.state == "loading":
            work.report(change.progress)
        else:
            work.end()

    def _index_progressed(self, root: str, n_done: int, n_files: int) -> None:
        work = self._work_on(root, f"codespec: indexing {Path(root).name}")
        if n_done < n_files:
            work.report(n_done / n_files, f"{n_done} of {n_files} files")
        else:
            work.end()

    def _work_on(self, what: str, title: str) -> Work:
        work = self._work.get(what)
        if work is None:
            work = self._work[what] = Work(self, f"codespec/{len(self._work)}", title)
        return work

    def _lines_of(self, uri: str, first: int, last: int) -> str:
        document = self.documents.get(uri)
        return document.lines(first, last) if document is not None else ""

    async def close(self) -> None:
        for task in (self.opening, self._asking):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        for work in self._work.values():
            work.close()
        if self.indexer is not None:
            await self.indexer.close()
        if self.session is not None:
            await self.session.close()


def figures_of(completion: Completion) -> str:
    """What a generation took, as JSON of a `Completion` without texts: numbers alone."""
    import msgspec

    trace = completion.trace
    figures: dict[str, object] = {
        field.name: value
        for field in dataclasses.fields(trace)
        if isinstance(value := getattr(trace, field.name), int | float | list | dict)
    }
    return msgspec.json.encode({"finish": completion.finish, "trace": figures}).decode()


def serve_stdio() -> None:
    """Until `exit`, a signal, or until the editor closes stdin. Raises: SystemExit with LSP's
    status."""
    from codespec.daemon.logs import Private

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("codespec: %(message)s"))
    handler.addFilter(Private())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    # It warns about cancel requests that came a moment too late, which is no news, and what fails
    # is told by `report_server_error`.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)

    async def serve() -> None:
        from .handlers import make_server

        server = make_server()
        server.protocol.set_writer(StdoutWriter(private_stdout()))
        serving = asyncio.current_task()
        assert serving is not None
        told: list[int] = []

        def end(number: int) -> None:
            told.append(number)
            serving.cancel()

        try:
            _on_signals(end)
            await run_async(
                stop_event=threading.Event(),
                reader=await stdin_reader(),
                protocol=server.protocol,
                error_handler=server.report_server_error,
            )
        finally:
            _on_signals(told.append)  # what is being closed is not cut short
            await server.close()
            for number in told:
                _end_by(number)

    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        asyncio.run(serve())


def _on_signals(act: Callable[[int], object]) -> None:
    """For those that ask to end. Windows has none; what `nohup` ignores stays so."""
    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, act, number)


def _end_by(number: int) -> None:
    """As the signal would have ended the process at once, which its parent gets to know."""
    asyncio.get_running_loop().remove_signal_handler(number)
    signal.signal(number, signal.SIG_DFL)  # an exception would wait for what reads a terminal
    signal.raise_signal(number)
