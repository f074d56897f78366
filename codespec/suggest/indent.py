"""Indentation of a generated text: in the document's style, and not said once more."""

from __future__ import annotations

import re

from codespec.languages.registry import record_of
from codespec.suggest import recipes, words
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import Place, has_words, indentation, lead_of

_LEADS = {width: re.compile(rf"\n {{2,{width}}}(?! )") for width in (2, 4, 8)}
# Lines that begin so go on with the one above, and are indented as people like.
_GOES_ON = re.compile(r"[^\w\s\"'@#$/`<({\[\\]|/\*?\s*\Z|<<")
# Code that no statement ends with: what is below it belongs to it.
_UNFINISHED = re.compile(r"(?:[-+*/%&|^=<>!?.,:\\({\[]|\b(?:and|or|not|in|is|do|then|where|of))\Z")
_ITEM = re.compile(r"\s*(?:[-*+|>]|\d+[.)])(?:\s|\Z)")


def without_doubled(candidate: Candidate) -> str:
    """The text without the indentation that its first line says, if the cursor's line is indented
    as far as it can be."""
    text, place = candidate.text, candidate.place
    first, newline, others = text.partition("\n")
    body = first.lstrip(" \t")
    if not body or body == first or place.line_prefix.strip() or not place.line_prefix:
        return text
    now = indentation(place.line_prefix)
    column = indentation(f"{place.line_prefix}{first}")
    if _may_be_deeper(candidate, now, column, body):
        return text
    if not newline or not _all_deeper(others, column, _is_unfinished(candidate.first.code)):
        return body + newline + others
    lines, begin = [body], len(place.line_prefix) + len(first) + 1
    for line in others.split("\n"):
        is_own = candidate.line.inside_at(begin) in ("", "comment")
        lines.append(_outdented(line, column - now) if is_own else line)
        begin += len(line) + 1
    return "\n".join(lines)


def _may_be_deeper(candidate: Candidate, now: int, column: int, body: str) -> bool:
    """True if a line may begin at `column` where the cursor's line, of blanks only, has `now`."""
    place = candidate.place
    above = next((n for n in range(len(place.above) - 1, -1, -1) if place.above[n].strip()), None)
    if above is None:
        return True
    at = reach = indentation(place.above[above])
    if at < now:
        return False
    if _GOES_ON.match(body):
        return True
    facts = record_of(place.language)
    for n in range(above, -1, -1):
        line = place.above[n]
        if not line.strip() or indentation(line) > reach:
            continue
        reach = indentation(line)
        if reach <= now:
            break
        if reach == column:
            return True  # that block goes on
    if at > now:
        return not facts.is_code
    here = place.lines_above[above]
    code = here.code.rstrip()
    if not code.strip():
        return False  # below a comment
    if facts.semicolons:
        return not code.endswith((";", "}"))
    if not facts.is_code:
        return not code.endswith((";", "}", ","))
    return (
        here.is_open
        or _is_unfinished(code)
        or _ITEM.match(here.text) is not None
        or words.opened(code, place.language) != ""
    )


def _is_unfinished(code: str) -> bool:
    return _UNFINISHED.search(code.rstrip()) is not None


def _all_deeper(text: str, column: int, opens: bool) -> bool:
    """True if all lines of a text are as far in as its first one, which is at `column`, or, where
    that one opens a block, further. What closes the block around them, at the end, does not
    tell."""
    lines = [line for line in text.split("\n") if line.strip()]
    while lines and indentation(lines[-1]) < column and not has_words(lines[-1]):
        lines.pop()
    columns = list(map(indentation, lines))
    return bool(columns) and min(columns) >= column and (not opens or columns[0] > column)


def _outdented(line: str, n_columns: int) -> str:
    """The line further out, by as many columns as it has at most."""
    lead = lead_of(line)
    while n_columns > 0 and lead:
        n_columns -= 4 if lead[-1] == "\t" else 1
        lead = lead[:-1]
    return lead + line.lstrip()


def in_style(candidate: Candidate) -> str:
    """The text with leading white space as the document has it: tabs, or blanks of its unit. Lines
    that begin inside a string stay as they are."""
    text, place = candidate.text, candidate.place
    if record_of(place.language).by_tab:
        return recipes.with_tabs(candidate)
    unit = indentation_unit(place) if "\n" in text else ""
    if not unit:
        return text
    first, *others = text.split("\n")
    lines, begin = [first], len(place.line_prefix) + len(first) + 1
    for line in others:
        mended = _reindented(line, unit)
        if mended != line and candidate.line.inside_at(begin) not in ("", "comment"):
            mended = line
        lines.append(mended)
        begin += len(line) + 1
    return "\n".join(lines)


def _reindented(line: str, unit: str) -> str:
    body = line.lstrip(" \t")
    lead = line[: len(line) - len(body)]
    if unit == "\t":
        # Blanks behind tabs align a line with the one above.
        if not lead.startswith("  "):
            return line
        width = indentation(lead + "x")
        return "\t" * (width // 4) + " " * (width % 4) + body
    if "\t" not in lead:
        return line
    return lead.replace("\t", unit) + body


def indentation_unit(place: Place) -> str:
    """A tab, or the blanks of one level; "" where the document does not tell."""
    near = f"{place.prefix[-20_000:]}\n{place.suffix[:5_000]}"
    n_tabs, n_blanks = near.count("\n\t"), near.count("\n  ")
    if n_tabs > n_blanks:
        return "\t"
    if 10 * n_tabs > n_blanks:  # text in strings, or people who do not agree
        return ""
    for width in (2, 4, 8):
        if n_blanks and _LEADS[width].search(near):
            return " " * width
    return ""
