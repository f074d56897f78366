"""From a document to what the rules look at: all of it, or the script that the cursor is in."""

from __future__ import annotations

import re

from codespec.languages.base import Language
from codespec.languages.registry import TEXT, extension_of, notation_of, record_of
from codespec.suggest.place import Place, indentation
from codespec.syntax import fences, markup
from codespec.syntax.trees import TreeCache

MAX_LINE = 16_000
"""Characters of the cursor's line before or after it. A longer one was made by a program: as much
of the document is looked at, and for brackets only."""
# As of mdBook, https://rust-lang.github.io/mdBook/format/mdbook.html.
_TEMPLATE = re.compile(r"[ \t]*\{\{#[a-z]")


def place_in(trees: TreeCache, prefix: str, suffix: str, path: str, language_id: str = "") -> Place:
    """language_id: as of LSP, where the path does not tell the language."""
    given = Place(prefix, suffix)
    if max(len(given.line_prefix), len(given.rest)) > MAX_LINE:
        return Place(prefix[-MAX_LINE:], suffix[:MAX_LINE], TEXT, path=path)
    language = notation_of(path, language_id)
    if _is_in_text_block(given, record_of(language)):
        return Place(prefix, suffix, TEXT, path=path)
    if prose := _prose(given, record_of(language)):
        return Place(prefix[prose[0] :], suffix[: prose[1]], TEXT, path=path)
    section = _section(prefix, suffix, record_of(language))
    if section is not None:
        start, end, extension = section
        prefix, suffix, language_id = prefix[start:], suffix[:end], ""
        path += extension or ".txt"
        language = notation_of(path, "")
    before = prefix.encode()
    parsed = trees.update(path, language_id, before + suffix.encode(), len(before))
    language = parsed.language if parsed is not None else language
    return Place(prefix, suffix, language, parsed, path)


def _section(prefix: str, suffix: str, facts: Language) -> tuple[int, int, str] | None:
    """The place of the script, the style sheet or the code between fences that the cursor is in,
    and the extension of files of its language, "" for one of which nothing is known. A line in
    whose place a template puts other text is none of that language, but in mark-up."""
    if facts.fences and (found := fences.fenced(prefix, suffix)):
        start, end, word = found
        extension = extension_of(word)
        is_markup = bool(extension) and record_of(notation_of(f"a{extension}", "")).is_markup
        if _TEMPLATE.match(prefix, prefix.rfind("\n") + 1) and not is_markup:
            return None
        return start, end, extension
    return markup.section(prefix, suffix, facts.sections)


def _prose(place: Place, facts: Language) -> tuple[int, int] | None:
    """The place of the prose that stands between lines of code: (where it begins in the text before
    the cursor, where it ends in the text after it); None where the cursor is in code."""
    begins, ends = facts.prose_lines
    if not begins:
        return None
    head = re.compile(begins)
    start = len(place.prefix) - len(place.line_prefix)
    while start >= 0 and not head.match(place.prefix, start):
        start = place.prefix.rfind(f"\n{begins[0]}", 0, start) + 1 if start else -1
    if start < 0 or place.prefix.startswith(ends, start):
        return None
    end = place.suffix.find(f"\n{ends}")
    return start, end + 1 if end >= 0 else len(place.suffix)


def _is_in_text_block(place: Place, facts: Language) -> bool:
    """True if the cursor's line goes on with a block of text; an empty one is to be begun."""
    if not facts.text_blocks:
        return False
    head = re.compile(facts.text_blocks)
    reach, below = indentation(place.line_prefix), indentation(place.line_below)
    goes_on = bool(place.line_prefix.strip()) or below >= reach > 0
    for line in reversed(place.above):
        if not line.strip():
            continue
        if indentation(line) >= reach:
            goes_on = True
        elif head.search(line):
            return goes_on
        else:
            reach = indentation(line)
    return False
