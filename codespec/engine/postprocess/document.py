"""From a document to what the rules look at: all of it, or the script that the cursor is in."""

from __future__ import annotations

from codespec.engine.postprocess import markup
from codespec.engine.postprocess.place import Place
from codespec.index.languages import TEXT, notation_of
from codespec.index.trees import Trees

MAX_LINE = 16_000
"""Characters of the cursor's line before or after it. A longer one was made by a program: as much
of the document is looked at, and for brackets only."""


def place_in(trees: Trees, prefix: str, suffix: str, path: str, language_id: str = "") -> Place:
    """language_id: as of LSP, where the path does not tell the language."""
    given = Place(prefix, suffix)
    if max(len(given.line_prefix), len(given.rest)) > MAX_LINE:
        return Place(prefix[-MAX_LINE:], suffix[:MAX_LINE], TEXT)
    language = notation_of(path, language_id)
    section = markup.section(prefix, suffix) if language == "markup" else None
    if section is not None:
        start, end, extension = section
        prefix, suffix, language, language_id = prefix[start:], suffix[:end], TEXT, ""
        path += extension or ".txt"
    before = prefix.encode()
    parsed = trees.update(path, language_id, before + suffix.encode(), len(before))
    return Place(prefix, suffix, parsed.language if parsed is not None else language, parsed)
