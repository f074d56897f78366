"""The handlers of an editor's messages: one LSP method, or one family of methods, a file.

Handlers wait for nothing but their answer. They are async; those that keep documents in step are
plain functions, which are over before the next message is read.
"""

from __future__ import annotations

import functools

from lsprotocol import types

from ..language_server import CodespecServer
from ..lsp_types import ACCEPTED
from . import completion_feedback as feedback
from . import next_edits
from . import notebook_document_sync as notebooks
from . import text_document_sync as documents
from .completion_grew import tell_grown
from .did_change_configuration import did_change_configuration
from .did_change_workspace_folders import did_change_workspace_folders
from .did_focus import DID_FOCUS, did_focus
from .initialize import initialize, initialized
from .inline_completion import inline_completion


def make_server() -> CodespecServer:
    """A server that answers all methods that codespec knows."""
    server = CodespecServer()
    options = types.InlineCompletionOptions()
    saved = types.SaveOptions(include_text=False)
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(documents.did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(documents.did_change)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(documents.did_close)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE, saved)(documents.did_save)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(notebooks.did_open)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(notebooks.did_change)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(notebooks.did_close)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(did_change_workspace_folders)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, options)(inline_completion)
    server.feature(DID_FOCUS)(did_focus)
    server.feature(feedback.DID_SHOW)(feedback.did_show)
    server.feature(feedback.DID_PARTIALLY_ACCEPT)(feedback.did_partially_accept)
    server.command(ACCEPTED)(feedback.accepted)
    next_edits.register(server)
    server.on_grown = functools.partial(tell_grown, server)
    return server
