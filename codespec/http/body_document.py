"""Our own fields of a request's body: the document, and its workspace."""

from __future__ import annotations

import msgspec

from codespec.limits import Name, PathText


class BodyDocument(msgspec.Struct, kw_only=True):
    """Our own fields: the document and its workspace. verbatim: False asks for an editor's
    suggestion, a syntactic unit that fits the text after the cursor, in place of the model's own
    text."""

    workspace: PathText | None = None  # None: the server's first
    path: PathText = ""  # absolute, or from the workspace's folder
    language: Name = ""
    verbatim: bool = True
