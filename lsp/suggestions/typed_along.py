"""The rest of a suggestion that still fits the text, as the user types on.

A suggestion belongs to a place in a text: what stood before and after the cursor. It goes on
fitting while the user types along it, goes back to it, or accepts a part of it. Two things that
editors do on their own are forgiven: another indentation than the suggested one, and closing
brackets that they put after the cursor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codespec.edit import Edit

from ..documents import Snapshot
from .suggestion import Suggestion, line_before

_CLOSING = ")]}>\"'`"
_MAX_CLOSED = 4
# Texts that were cut to a window are compared as far as both reach, if that is far enough.
_MIN_WINDOW = 4000


@dataclass(frozen=True, slots=True)
class Rest:
    """The rest of a suggestion, to insert now.

    edits: best first; of an unfinished suggestion its finished lines, if any. Each adds text,
        except where the selected popup entry is all of the suggestion: VS Code shows only what
        begins with the entry. An edit replaces closing brackets after the cursor that its text
        holds, too.
    """

    suggestion: Suggestion
    edits: tuple[Edit, ...]


def rest_of(suggestion: Suggestion, now: Snapshot) -> Rest | None:
    """The rest of a suggestion where the text is `now`; None where it does not fit.

    Cost: some microseconds, and no more for texts that differ near the cursor already.
    """
    texts = [edit.text for edit in suggestion.edits] if suggestion.done else [suggestion.text]
    typed = _typed_since(suggestion.base, now, max((t.count("\n") for t in texts), default=0))
    if typed is None:
        return None
    blank_before = not line_before(suggestion.base.prefix).strip()
    left = dict.fromkeys(_left(text, typed, blank_before) for text in texts)
    may_be_all = bool(now.selected) and suggestion.done
    # The typed text must lie within the suggestion: the model said nothing beyond.
    if typed and not any(left) and not (may_be_all and typed in texts):
        return None
    closed = _closed_since(suggestion.base, now, typed)
    if closed is None:
        return None
    if may_be_all and any(text in (typed, typed + closed) for text in texts):
        return Rest(suggestion, (now.insertion(""),))
    if not suggestion.done:
        left = {_left(_text_of(suggestion.lines), typed, blank_before): None}
    edits = tuple(now.insertion(*_beside(text, closed)) for text in left if text.strip(closed))
    if suggestion.done and not edits and (typed or closed or suggestion.edits):
        return None
    return Rest(suggestion, edits)


def going_on(cut: Suggestion, now: Snapshot) -> Suggestion | None:
    """A suggestion at `now` that begins with the rest of a cut one, for the model to go on with.
    None where nothing is left, or where the editor has closed brackets since: they stand in the
    model's prompt, so its text may be another."""
    typed = _typed_since(cut.base, now, cut.text.count("\n"))
    if typed is None or _closed_since(cut.base, now, typed) != "":
        return None
    blank_before = not line_before(cut.base.prefix).strip()
    more = Suggestion(now)
    more.text = _left(cut.text, typed, blank_before)
    lines = _left(_text_of(cut.lines), typed, blank_before)
    more.lines = now.insertion(lines)
    more.tally = cut.tally
    return more if lines.strip() else None


def may_fit(suggestion: Suggestion, now: Snapshot) -> bool:
    """True if it fits a text that was changed up to the cursor, or up to behind closing brackets
    that the editor put after the cursor."""
    n_closed = len(now.prefix) - len(now.prefix.rstrip(_CLOSING))
    for n in range(min(_MAX_CLOSED, n_closed) + 1):
        if rest_of(suggestion, now.back(n)) is not None:
            return True
    return False


def _text_of(edit: Edit | None) -> str:
    return "" if edit is None else edit.text


def _beside(text: str, closed: str) -> tuple[str, int]:
    """(text to insert, number of characters of `closed` that it replaces), where `closed` stands
    after the cursor. The text replaces the brackets that it holds itself; one that ends with them
    in a later line is inserted before them, without them."""
    if closed and "\n" in text and text.rstrip().endswith(closed):
        return text.rstrip().removesuffix(closed), 0
    rest: Iterator[str] = iter(text)
    n_within = 0
    while n_within < len(closed) and closed[n_within] in rest:
        n_within += 1
    return text, n_within


def _left(text: str, typed: str, blank_before: bool) -> str:
    """`text` without `typed`, which may differ in indentation; the rest is indented as the typed
    text is. "" where nothing is left, or where other text was typed."""
    if text.startswith(typed):
        return text[len(typed) :]
    typed_lines, lines = typed.split("\n"), text.split("\n")
    last = len(typed_lines) - 1
    if len(lines) <= last:
        return ""
    suggested = indent = ""  # in later lines, the first is replaced by the second
    left = ""
    for n, (line, wanted) in enumerate(zip(typed_lines, lines, strict=False)):
        can_differ = n > 0 or blank_before
        shifted = _shifted(wanted, suggested, indent)
        if n < last:
            if wanted != line and (not can_differ or wanted.strip() != line.strip()):
                return ""
        elif shifted.startswith(line):
            left = shifted[len(line) :]
            continue
        elif can_differ and wanted.lstrip().startswith(line.lstrip()):
            left = wanted.lstrip()[len(line.lstrip()) :]
        else:
            return ""
        if can_differ and (n == last or line.strip()):
            suggested, indent = _indent(wanted), _indent(line)
    return "\n".join([left, *(_shifted(line, suggested, indent) for line in lines[last + 1 :])])


def _shifted(line: str, suggested: str, indent: str) -> str:
    return indent + line[len(suggested) :] if line.startswith(suggested) and line.strip() else line


def _typed_since(base: Snapshot, now: Snapshot, n_max: int) -> str | None:
    """Text typed at the cursor since `base`, with at most `n_max` line ends, by the lines around
    the cursor alone; None where something else changed in them."""
    n_lines = now.start.line - base.start.line
    if not 0 <= n_lines <= n_max:
        return None
    at = len(now.prefix)
    for _ in range(n_lines + 1):
        at = now.prefix.rfind("\n", 0, max(at, 0))
    line = line_before(base.prefix)
    if not now.prefix.startswith(line, at + 1):
        return None
    return now.prefix[at + 1 + len(line) :]


def _closed_since(base: Snapshot, now: Snapshot, typed: str) -> str | None:
    """Closing brackets that the editor put after `typed`; None where the text around differs from
    the one of `base` in any other way."""
    if not _same_end(base.prefix, now.prefix, len(now.prefix) - len(typed)):
        return None
    # Editors close only what was opened just now.
    for n in range(min(_MAX_CLOSED, len(now.suffix), len(typed)) + 1):
        if n and now.suffix[n - 1] not in _CLOSING:
            return None
        if _same_start(base.suffix, now.suffix, n):
            return now.suffix[:n]
    return None


def _same_start(a: str, b: str, start: int) -> bool:
    """True if `a` equals b[start:], as far as both windows reach."""
    n_b = len(b) - start
    if len(a) <= n_b:
        return (len(a) == n_b or len(a) >= _MIN_WINDOW) and b.startswith(a, start)
    return n_b >= _MIN_WINDOW and a.startswith(b[start:])


def _same_end(a: str, b: str, end: int) -> bool:
    """True if `a` equals b[:end], as far as both windows reach."""
    if len(a) <= end:
        return (len(a) == end or len(a) >= _MIN_WINDOW) and b.endswith(a, 0, end)
    return end >= _MIN_WINDOW and a.endswith(b[:end])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
