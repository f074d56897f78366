"""Names in indexed files: in the text that is drafted from, and in the headers that say whose a
file is, which the selection leaves out.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from codespec.index.reader import WorkspaceIndex
from codespec.rules.gitfiles import read_regular
from codespec.rules.person_names import stands_in
from codespec.syntax.text import normalise
from codespec.system.files import relative
from codespec.types import Tokenizer

MAX_HEADERS = 256
"""Files whose beginnings are read for one name: half of them near the document, the others spread
over the workspace."""
HEADER_BYTES = 4096

# Signs that may stand before a name, as a tokenizer may join them with its first letters.
_IN_ADDRESSES = (".", "-")
_BEFORE = ("", *" \t\"'`<({[:=@#*/>,.|-~")


def stands_in_index(name: str, index: WorkspaceIndex, tokenizer: Tokenizer, near: str) -> bool:
    """True if an indexed file has the name or address, written as it is or in capitals or small
    letters. near: path of a document. A few milliseconds, and up to MAX_HEADERS reads of files.
    """
    spellings = dict.fromkeys((name, name.lower(), name.title(), name.upper()))
    if "@" not in name and len(name.split()) == 1:
        spellings = dict.fromkeys((name,))
    signs = [sign for sign in _BEFORE if "@" not in name or sign not in _IN_ADDRESSES]
    texts = (sign + spelling for spelling in spellings for sign in signs)
    if any(_stands_whole(text, index, tokenizer) for text in texts):
        return True
    return any(stands_in(name, header) for header in _headers(index, near))


def _stands_whole(text: str, index: WorkspaceIndex, tokenizer: Tokenizer) -> bool:
    """True if the text stands in an indexed file, and its last word ends with it."""
    after = index.token_after(tokenizer.encode(text))
    if after is None:
        return False
    following = tokenizer.piece(after).decode("utf-8", "replace")[:1]
    return not (following.isalnum() or following == "_")


def _headers(index: WorkspaceIndex, near: str) -> Iterator[str]:
    for path in _chosen(index.paths, relative(near, index.root) if near else ""):
        data = read_regular(os.path.join(index.root, path), follow=False, n_bytes=HEADER_BYTES)
        if data is not None:
            yield normalise(data.decode("utf-8", "replace"))


def _chosen(paths: Sequence[str], near: str) -> list[str]:
    """MAX_HEADERS of these paths, which are sorted; those nearest to `near` come first."""
    if len(paths) <= MAX_HEADERS:
        return list(paths)
    half = MAX_HEADERS // 2
    start = min(max(0, bisect_left(paths, near) - half // 2), len(paths) - half)
    step = len(paths) / half
    return [*paths[start : start + half], *(paths[int(i * step)] for i in range(half))]
