"""The state of one editor window that the handlers share: documents, settings, session, indexer."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer

from codespec import __version__
from codespec.limits import FOLDERS

from .changes import as_one
from .configuration import Configuration
from .editor_documents import EditorDocuments
from .lsp_types import encoding_of
from .protocol import CodespecProtocol, make_converter
from .uris import is_elsewhere, path_of, workspace_of
from .work_done_progress import Work

if TYPE_CHECKING:
    from codespec.config import IndexSettings, ModelSettings, Settings
    from codespec.daemon.wire import StateChanged
    from codespec.requests import Completion

    from .changes import Change
    from .documents import Document, SelectedCompletion
    from .index_processes import Indexer
    from .next_edits.next_edit_session import EditAnswer, NextEditSession
    from .notebooks import Notebooks
    from .positions import DocumentPlace, Encoding
    from .status import StatusReporter
    from .suggestions.answers import Answer, Ask
    from .suggestions.session import Session
    from .suggestions.shown import Grown

log = logging.getLogger(__name__)

GROWING = "growingCompletion"
"""Experimental capability of editors that can show growth, see `handlers.completion_grew`."""
EVERYWHERE = "inlineEdits"
"""Experimental capability of editors that show next edits in every document."""


class CodespecServer(LanguageServer):
    """One editor window: its documents, and its session once `initialized` came."""

    def __init__(self) -> None:
        cells = types.NotebookDocumentFilterWithNotebook(notebook="*")
        super().__init__(
            "codespec",
            __version__,
            notebook_document_sync=types.NotebookDocumentSyncOptions([cells]),
            protocol_cls=CodespecProtocol,
            converter_factory=make_converter,
        )
        self.editor_documents = EditorDocuments(
            self._document_opened,
            self._document_changed,
            self._document_closed,
            lambda: self.encoding,
        )
        cast("CodespecProtocol", self.protocol).documents = self.editor_documents
        self.configuration = Configuration()
        self.settings: Settings | None = None
        self.session: Session | None = None
        self.next_edits: NextEditSession | None = None
        self.indexer: Indexer | None = None
        self.opening: asyncio.Task[None] | None = None
        self.asking: asyncio.Task[None] | None = None
        self._reloading = asyncio.Lock()
        self.moving = asyncio.Lock()
        """Held while the indexer is told of folders: a folder that is opened again waits until its
        last child has ended."""
        self._indexed_with: tuple[IndexSettings, ModelSettings] | None = None
        self._status: StatusReporter | None = None
        self.at_hand = ""
        """URI of the document that the user most likely looks at."""
        self._work: dict[str, Work] = {}
        self.on_grown: Grown = lambda ask, answered, offer: None
        """Told of growth of the shown suggestion, where the editor can show that."""

    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        # pygls sends a message to the editor, which recurses endlessly once stdout is closed.
        from codespec.system.log_privacy import outline

        if not isinstance(error, JsonRpcException):  # logged where it is raised
            log.error("a message of the editor failed: %s", outline(error))

    @property
    def documents(self) -> dict[str, Document]:
        """The open documents by URI, as the editor sees them now."""
        return self.editor_documents.by_uri

    @property
    def left_alone(self) -> dict[str, tuple[Document, str]]:
        """The open documents without text, by URI, each with the reason for people."""
        return self.editor_documents.left_alone

    @property
    def notebooks(self) -> Notebooks:
        return self.editor_documents.notebooks

    def place_of(self, uri: str) -> tuple[str, str]:
        """Absolute paths of the document's file, for a cell its notebook's, and of the workspace
        folder that it belongs to; "" for none."""
        notebook = self.notebooks.of(uri)
        uri = uri if notebook is None else notebook.uri
        path = path_of(uri)
        return path, "" if is_elsewhere(uri) else workspace_of(path, self.roots)

    @property
    def encoding(self) -> Encoding:
        """Units of columns, negotiated at `initialize`."""
        return encoding_of(self.workspace)

    @property
    def roots(self) -> list[str]:
        """Workspace folders on this machine, absolute."""
        uris = [folder.uri for folder in self.workspace.folders.values()]
        if not uris and self.workspace.root_uri:
            uris = [self.workspace.root_uri]
        return [path for path in map(path_of, uris[:FOLDERS]) if path]

    @property
    def status(self) -> StatusReporter:
        if self._status is None:
            from .status import NOTIFICATION, StatusReporter

            def send(status: dict[str, object]) -> None:
                with contextlib.suppress(BrokenPipeError):
                    self.protocol.notify(NOTIFICATION, status)

            self._status = StatusReporter(send)
        return self._status

    def can(self, capability: str) -> bool:
        """True if the editor has this experimental capability."""
        said = self.client_capabilities.experimental
        return isinstance(said, Mapping) and said.get(capability) is True

    def trace(self, message: str, answer: Answer | EditAnswer | None = None) -> None:
        """Send a message that editors show when they are told to trace; never source text. answer:
        whose figures go along where much is to be traced."""
        if self.protocol.trace == types.TraceValue.Off:
            return
        is_verbose = self.protocol.trace == types.TraceValue.Verbose
        figures = json.dumps(answer.figures) if is_verbose and answer is not None else None
        with contextlib.suppress(BrokenPipeError):
            self.log_trace(types.LogTraceParams(message, figures))

    def _generated(self, completion: Completion) -> None:
        if self.protocol.trace != types.TraceValue.Verbose:
            return
        n_tokens, n_passes = completion.trace.n_tokens, completion.trace.n_target_passes
        message = f"generation: {completion.finish}, {n_tokens} tokens in {n_passes} passes"
        with contextlib.suppress(BrokenPipeError):
            self.log_trace(types.LogTraceParams(message, figures_of(completion)))

    async def opened(self, invoked: bool) -> None:
        """Wait for the session, at most for the deadline of a request."""
        await asyncio.sleep(0)  # lets `opening` load the settings, its first step
        if self.opening is not None and self.settings is not None:
            patience_ms = self.settings.completion.deadline_ms(invoked)
            await asyncio.wait({self.opening}, timeout=patience_ms / 1e3)

    async def reload(self) -> None:
        """Load the settings, which may have changed, and apply them: they hold for the next request
        already. With settings that cannot be used, everything stays as it was, and the status says
        why."""
        from codespec.errors import CodespecError

        try:
            settings = self.configuration.load()
            if self.session is not None and settings != self.settings:
                self.session.configure(settings)
                if self.next_edits is not None:
                    self.next_edits.configure(settings)
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
        """Have the status say whether the document at hand gets suggestions."""
        if self.session is not None:
            if self.at_hand in self.left_alone:
                _, why = self.left_alone[self.at_hand]
                self.status.paused(why)
                return
            document = self.documents.get(self.at_hand)
            uri, language = (document.uri, document.language_id) if document else ("", "")
            path, workspace = self.place_of(uri)
            self.status.paused(self.session.eligibility.why_paused(uri, path, workspace, language))

    async def _start_session(self) -> None:
        # In a thread: numpy and others take 0.1 s to import.
        await asyncio.to_thread(importlib.import_module, f"{__package__}.suggestions.session")
        from .next_edits.next_edit_session import NextEditSession
        from .suggestions.session import Session

        assert self.settings is not None
        self.session = Session(
            self.settings,
            self._state_changed,
            self._lines_of,
            self._generated,
            self.on_grown if self.can(GROWING) else None,
        )
        session = self.session
        session.start()
        self.next_edits = NextEditSession(
            lambda request, with_model=False: session.client.find_edits(
                request, with_model=with_model
            ),
            self.documents,
            lambda: self.encoding,
        )
        self.next_edits.configure(self.settings)
        for document in list(self.documents.values())[-1:]:  # opened meanwhile
            self.looked_at(document, document.edited, "utf-32")

    async def _index(self, settings: Settings) -> None:
        from .index_processes import Indexer, watch_command, watch_environment

        if self._indexed_with == (settings.index, settings.model):
            return
        self._indexed_with = (settings.index, settings.model)
        if self.indexer is not None:
            # A folder opened or a file saved meanwhile must not start a child of the old one.
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

    async def configure(self, client: object) -> None:
        """Apply the editor's settings; None for none."""
        if client != self.configuration.client:
            self.configuration.client = client
            await self.reload()

    def ask(
        self,
        document: Document,
        place: DocumentPlace,
        encoding: Encoding,
        *,
        invoked: bool = False,
        selection: SelectedCompletion | None = None,
    ) -> Ask:
        """The request for the document as it is now. Call it with a session only."""
        from codespec.requests import MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS

        from .suggestions.answers import Ask

        limits = (MAX_PREFIX_CHARS, MAX_SUFFIX_CHARS)
        snapshot = document.snapshot(place, encoding, *limits, selection)
        path, workspace = self.place_of(document.uri)
        return Ask(self.notebooks.joined(snapshot, *limits), path, workspace, invoked)

    def looked_at(self, document: Document, place: DocumentPlace, encoding: Encoding) -> None:
        """The user is most likely here: have the prompt of the next request read."""
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
        self.session.edited(document.uri)
        if self.next_edits is not None:
            self.next_edits.changed(document)
        self.status.ready(False)
        if len(changes) == 1 and len(changes[0].text.strip()) == 1:
            self.session.typed(document.language_id, len(changes[0].text))
        key = as_one(changes)
        is_key = key is not None and key.is_key
        cursor = document.edited if key is None else key.cursor(document.edited)
        is_generating = self.session.is_generating(document.uri)
        if is_key or is_generating:
            now = self.ask(document, cursor, "utf-32")
            if is_generating:
                self.session.changed(now.snapshot)
            if is_key:
                self.session.key_pressed(now)
        self.looked_at(document, cursor, "utf-32")

    def _document_closed(self, uri: str) -> None:
        if uri == self.at_hand:
            self.show_pause()
        if self.session is not None:
            self.session.closed(uri)
        if self.next_edits is not None:
            self.next_edits.closed()

    def _state_changed(self, change: StateChanged) -> None:
        self.status.saving(self.session is not None and self.session.eligibility.saves_power)
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
        """End what runs for this window, child processes included."""
        for task in (self.opening, self.asking):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        for work in self._work.values():
            work.close()
        if self.indexer is not None:
            await self.indexer.close()
        if self.next_edits is not None:
            await self.next_edits.close()
        if self.session is not None:
            await self.session.close()


def figures_of(completion: Completion) -> str:
    """Figures of a generation: the JSON of a `Completion` without its texts."""
    import msgspec

    trace = completion.trace
    figures: dict[str, object] = {
        field.name: value
        for field in dataclasses.fields(trace)
        if isinstance(value := getattr(trace, field.name), int | float | list | dict)
    }
    return msgspec.json.encode({"finish": completion.finish, "trace": figures}).decode()
