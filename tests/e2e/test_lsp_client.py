"""The language server as a client library sees it: typed messages, checked against the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psutil
import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled
from pytest_lsp import LanguageClient, make_test_lsp_client

from codespec.cli.index.building import PROGRESS_S
from tests.e2e.conftest import PATIENT, TIMEOUT_S, Home, daemon_of

URI = "file:///project/a.py"


@pytest.fixture
def statuses() -> list[str]:
    """Messages of the client's status, in order."""
    return []


@pytest_asyncio.fixture
async def client(home: Home, statuses: list[str]) -> AsyncIterator[LanguageClient]:
    """A client on a server whose engine quotes the text around the cursor."""
    with daemon_of(home, "ok"):
        client = make_test_lsp_client()

        def status_changed(params: Any) -> None:
            statuses.append(params.message)

        client.feature("didChangeStatus")(status_changed)

        await client.start_io(sys.executable, "-m", "codespec", "lsp", cwd=str(home.workspace))
        yield client
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()


async def initialize(
    client: LanguageClient,
    *encodings: types.PositionEncodingKind,
    folders: tuple[str, ...] = (),
    options: object = PATIENT,
) -> types.ServerCapabilities:
    result = await client.initialize_session(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(
                general=types.GeneralClientCapabilities(
                    position_encodings=encodings or (types.PositionEncodingKind.Utf16,)
                ),
                text_document=types.TextDocumentClientCapabilities(
                    inline_completion=types.InlineCompletionClientCapabilities()
                ),
                window=types.WindowClientCapabilities(work_done_progress=True),
                workspace=types.WorkspaceClientCapabilities(workspace_folders=True),
            ),
            workspace_folders=[types.WorkspaceFolder(uri, uri) for uri in folders],
            initialization_options=options,
        )
    )
    return result.capabilities


def open_document(client: LanguageClient, uri: str, text: str) -> None:
    item = types.TextDocumentItem(uri, "python", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))


def replace(client: LanguageClient, uri: str, version: int, text: str) -> None:
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(version=version, uri=uri),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
    )


def params(
    uri: str, line: int, character: int, selected: types.SelectedCompletionInfo | None = None
) -> types.InlineCompletionParams:
    context = types.InlineCompletionContext(
        types.InlineCompletionTriggerKind.Invoked, selected_completion_info=selected
    )
    place = types.Position(line, character)
    return types.InlineCompletionParams(context, types.TextDocumentIdentifier(uri), place)


async def complete(
    client: LanguageClient,
    uri: str,
    line: int,
    character: int,
    selected: types.SelectedCompletionInfo | None = None,
) -> list[types.InlineCompletionItem]:
    asked = client.text_document_inline_completion_async(params(uri, line, character, selected))
    found = await asyncio.wait_for(asked, TIMEOUT_S)
    assert isinstance(found, types.InlineCompletionList)
    return list(found.items)


def at(line: int, start: int, end: int | None = None) -> types.Range:
    return types.Range(
        types.Position(line, start), types.Position(line, start if end is None else end)
    )


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("encoding", "column"),
    [
        (types.PositionEncodingKind.Utf8, 7),
        (types.PositionEncodingKind.Utf16, 5),
        (types.PositionEncodingKind.Utf32, 4),
    ],
)
async def test_items_are_plain_texts_with_a_range_and_a_command(
    client: LanguageClient, encoding: types.PositionEncodingKind, column: int
) -> None:
    capabilities = await initialize(client, encoding)
    assert capabilities.position_encoding == encoding
    assert capabilities.inline_completion_provider
    assert capabilities.completion_provider is None  # the popup belongs to other servers
    open_document(client, URI, "a = 1\n😀xyz\n")
    (item,) = await complete(client, URI, 1, column)
    assert item.insert_text == "[a = 1\n😀xyz|\n]"
    assert item.range == at(1, column)
    assert item.command is not None
    assert capabilities.execute_command_provider is not None
    assert item.command.command in capabilities.execute_command_provider.commands
    await client.workspace_execute_command_async(
        types.ExecuteCommandParams(item.command.command, item.command.arguments)
    )


@pytest.mark.asyncio
async def test_the_selected_popup_entry_is_extended(client: LanguageClient) -> None:
    await initialize(client)
    open_document(client, URI, "x = pri\n")
    selected = types.SelectedCompletionInfo(at(0, 4, 7), "print")
    (item,) = await complete(client, URI, 0, 7, selected)
    assert item.insert_text == "print[x = print|\n]"
    assert item.range == at(0, 4, 7)


@pytest.mark.asyncio
async def test_cancelled_and_superseded_requests(client: LanguageClient) -> None:
    await initialize(client)
    open_document(client, URI, "until cancelled")
    ask = client.protocol.send_request_async
    method = types.TEXT_DOCUMENT_INLINE_COMPLETION
    first = asyncio.ensure_future(ask(method, params(URI, 0, 15), msg_id="first"))
    await asyncio.sleep(0)
    client.cancel_request(types.CancelParams("first"))
    with pytest.raises((JsonRpcRequestCancelled, asyncio.CancelledError)):
        await asyncio.wait_for(first, TIMEOUT_S)
    open_document(client, f"{URI}x", "until cancelled")
    second = asyncio.ensure_future(ask(method, params(f"{URI}x", 0, 15)))
    await asyncio.sleep(0)
    replace(client, f"{URI}x", 2, "next")
    (item,) = await complete(client, f"{URI}x", 0, 4)
    assert item.insert_text == "[next|]"
    assert list((await asyncio.wait_for(second, TIMEOUT_S)).items) == []


@pytest.mark.asyncio
async def test_a_document_is_seen_as_it_was_when_it_was_asked_about(
    client: LanguageClient,
) -> None:
    """Each version is asked about before the next one is written; none waits for its answer."""
    await initialize(client)
    client_uris = [f"file:///project/{n}.py" for n in range(8)]
    asked: list[asyncio.Task[list[types.InlineCompletionItem]]] = []
    for n, uri in enumerate(client_uris):
        open_document(client, uri, f"before {n}")
        asked.append(asyncio.ensure_future(complete(client, uri, 0, 6)))
        await asyncio.sleep(0)
        # Another document changes; this one is left alone, so it must be answered in full.
        replace(client, client_uris[0], n + 2, f"after {n}")
    for n, task in list(enumerate(asked))[1:]:
        (item,) = await task
        assert item.insert_text == f"[before| {n}]"
    (item,) = await complete(client, client_uris[0], 0, 7)
    assert item.insert_text == "[after 7|]"


@pytest.mark.asyncio
async def test_untitled_documents_and_several_folders(
    client: LanguageClient, home: Home, statuses: list[str]
) -> None:
    folders = [home.workspace / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    (folders[1] / ".gitignore").write_text("secret.py\n")
    await initialize(client, folders=tuple(folder.as_uri() for folder in folders))
    open_document(client, "untitled:Untitled-1", "x")
    (item,) = await complete(client, "untitled:Untitled-1", 0, 1)
    assert item.insert_text == "[x|]"
    # The rules of its own folder hold for a file, and only they.
    for folder, n_items in zip(folders, (1, 0), strict=True):
        uri = (folder / "secret.py").as_uri()
        open_document(client, uri, "y")
        assert len(await complete(client, uri, 0, 1)) == n_items
    assert statuses[-1] == "paused: file ignored by .gitignore: secret.py"
    assert any(message.startswith("ready") for message in statuses)


@pytest.mark.asyncio
async def test_a_cell_is_completed_within_its_notebook(client: LanguageClient) -> None:
    await initialize(client)
    cells = [f"notebook-cell:/a.ipynb#{n}" for n in range(2)]
    client.notebook_document_did_open(
        types.DidOpenNotebookDocumentParams(
            types.NotebookDocument(
                "file:///a.ipynb",
                "jupyter-notebook",
                1,
                [types.NotebookCell(types.NotebookCellKind.Code, uri) for uri in cells],
            ),
            [types.TextDocumentItem(uri, "python", 1, f"cell_{n}") for n, uri in enumerate(cells)],
        )
    )
    (item,) = await complete(client, cells[1], 0, 6)
    assert item.insert_text == "[cell_0\ncell_1|]"
    assert item.range == at(0, 6)


def parsers() -> list[psutil.Process]:
    """The processes that parse for the indexers of our servers."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "codespec.index.parsers" in child.cmdline():
                found.append(child)
    return found


@pytest.mark.asyncio
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
async def test_indexing_that_takes_long_is_shown_as_progress(
    client: LanguageClient, home: Home
) -> None:
    """The real indexer of the real server, held up by stopping the processes that parse for it."""
    folder = home.workspace / "project"
    folder.mkdir()
    for n in range(20):
        (folder / f"module_{n}.py").write_text(f"def function_{n}(value):\n    return value\n")
    options = {**PATIENT, "index": {"enabled": True}}
    await initialize(client, folders=(folder.as_uri(),), options=options)
    give_up_at = time.monotonic() + TIMEOUT_S
    seen: dict[int, psutil.Process] = {}
    since: float | None = None
    while since is None or time.monotonic() < since + 2 * PROGRESS_S:
        assert time.monotonic() < give_up_at
        for parser in parsers():
            if parser.pid not in seen:
                os.kill(parser.pid, signal.SIGSTOP)
                seen[parser.pid] = parser
                since = time.monotonic()
        await asyncio.sleep(0.005)
    assert not client.progress_reports
    for pid in seen:
        os.kill(pid, signal.SIGCONT)

    def told() -> Sequence[object]:
        return next(iter(client.progress_reports.values()), ())

    while not (told() and isinstance(told()[-1], types.WorkDoneProgressEnd)):
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.005)
    begun, *reports, _ = told()
    assert isinstance(begun, types.WorkDoneProgressBegin)
    assert begun.title == "codespec: indexing project"
    assert begun.message is not None
    assert begun.message.endswith(" of 20 files")
    shares = [begun.percentage or 0]
    for report in reports:
        assert isinstance(report, types.WorkDoneProgressReport)
        shares.append(report.percentage or 0)
    assert shares == sorted(shares)
    assert len(client.progress_reports) == 1
