"""Suggestions that were made, and what of them still fits the text as it is typed on.

A suggestion belongs to a place in a text: what stood before and after the cursor. It goes on
fitting while the user types along it, goes back to it, or accepts a part of it. Two things that
editors do on their own are forgiven: another indentation than the suggested one, and closing
brackets that they put after the cursor.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from codespec.edit import Edit

from .documents import Snapshot

MAX_DOCUMENTS = 32
MAX_SUGGESTIONS = 24
"""Of one document; the oldest goes."""
MAX_CHARS = 1 << 20
"""Of the texts around all suggestions of one document, where that leaves it four."""
_CLOSING = ")]}>\"'`"
_MAX_CLOSED = 4
# Texts that were cut to a window are compared as far as both reach, if that is far enough.
_MIN_WINDOW = 4000


@dataclass(slots=True)
class Tally:
    """What became of one suggestion, in however many offers it was shown on the way.

    kind: of its place, where nobody asked for it. is_offered: in an answer. first: the offer that
    was shown first.
    n_accepted, n_retained: characters, of all of them.
    """

    kind: str = ""
    is_offered: bool = False
    first: str = ""
    n_accepted: int = 0
    n_retained: int = 0


class Suggestion:
    """Insertions at one place, best first; while its generation runs, the text so far.

    base:  the text and its version that they belong to.
    text:  all so far, as the model said it; known when typing is compared, not shown.
    lines: the finished lines of it, fit to be shown; None for none.
    done:  `edits` is final.
    is_cut: that is all there was when it was ended; the model would have gone on.
    foreseen_s: when it was begun, until somebody asks for it.
    """

    def __init__(self, base: Snapshot) -> None:
        self.base = base
        self.edits: tuple[Edit, ...] = ()
        self.text = ""
        self.lines: Edit | None = None
        self.reason = ""
        self.engine_ms = 0.0
        self.model_ms = 0.0
        self.done = False
        self.is_cut = False
        self.has_alternatives = False
        self.foreseen_s: float | None = None
        self.tally = Tally()

    @property
    def is_all(self) -> bool:
        """Whether it has whatever is to be chosen from."""
        return self.has_alternatives and not self.is_cut

    @property
    def is_below(self) -> bool:
        """Whether it adds nothing to the cursor's line."""
        shown = self.edits[0] if self.edits else self.lines
        is_below = shown is not None and shown.text.startswith("\n")
        return is_below and bool(_line_before(self.base.prefix).strip())


@dataclass(frozen=True, slots=True)
class Rest:
    """The rest of a suggestion, to insert now: best first; of an unfinished one its finished
    lines, if any. All add something, but where the selected popup entry is all of one: VS Code
    shows nothing that does not begin with the entry. Where closing brackets stand after the cursor
    that are in the text, too, an edit takes their place."""

    suggestion: Suggestion
    edits: tuple[Edit, ...]


class Suggestions:
    """The suggestions of all documents. No clock, no tasks."""

    def __init__(self) -> None:
        self._by_uri: OrderedDict[str, deque[Suggestion]] = OrderedDict()

    def add(self, suggestion: Suggestion) -> None:
        uri = suggestion.base.uri
        known = self._by_uri.pop(uri, None)
        self._by_uri[uri] = suggestions = deque() if known is None else known
        suggestions.appendleft(suggestion)
        n_chars = len(suggestion.base.prefix) + len(suggestion.base.suffix)
        while len(suggestions) > max(4, min(MAX_SUGGESTIONS, MAX_CHARS // (n_chars + 1))):
            suggestions.pop()
        if len(self._by_uri) > MAX_DOCUMENTS:
            self._by_uri.popitem(last=False)

    def remove(self, suggestion: Suggestion) -> None:
        known = self._by_uri.get(suggestion.base.uri)
        if known is not None and suggestion in known:
            known.remove(suggestion)

    def forget(self, uri: str) -> None:
        self._by_uri.pop(uri, None)

    def clear(self) -> None:
        self._by_uri.clear()

    def find(self, now: Snapshot) -> Rest | None:
        """The newest suggestion that `now` fits, None where there is none. One that says there is
        nothing to suggest fits only its own place."""
        for suggestion in self._by_uri.get(now.uri, ()):
            rest = rest_of(suggestion, now)
            if rest is not None:
                return rest
        return None


def rest_of(suggestion: Suggestion, now: Snapshot) -> Rest | None:
    """What is left of a suggestion where the text is `now`; None where it does not fit.

    Cost: some microseconds, and no more for texts that differ near the cursor already.
    """
    texts = [edit.text for edit in suggestion.edits] if suggestion.done else [suggestion.text]
    typed = _typed_since(suggestion.base, now, max((t.count("\n") for t in texts), default=0))
    if typed is None:
        return None
    blank_before = not _line_before(suggestion.base.prefix).strip()
    left = dict.fromkeys(_left(text, typed, blank_before) for text in texts)
    may_be_all = bool(now.selected) and suggestion.done
    # What is typed must lie within what was said: beyond that, nobody knows.
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
    """For the model to go on with what is left of one that was cut short; None where nothing is, or
    an editor has closed brackets since, of which the model says others than it said then."""
    typed = _typed_since(cut.base, now, cut.text.count("\n"))
    if typed is None or _closed_since(cut.base, now, typed) != "":
        return None
    blank_before = not _line_before(cut.base.prefix).strip()
    more = Suggestion(now)
    more.text = _left(cut.text, typed, blank_before)
    lines = _left(_text_of(cut.lines), typed, blank_before)
    more.lines = now.insertion(lines)
    more.tally = cut.tally
    return more if lines.strip() else None


def may_fit(suggestion: Suggestion, now: Snapshot) -> bool:
    """Whether it fits a text that was changed up to the cursor, or up to behind closing brackets
    that the editor put after it."""
    n_closed = len(now.prefix) - len(now.prefix.rstrip(_CLOSING))
    for n in range(min(_MAX_CLOSED, n_closed) + 1):
        if rest_of(suggestion, now.back(n)) is not None:
            return True
    return False


def _text_of(edit: Edit | None) -> str:
    return "" if edit is None else edit.text


def _beside(text: str, closed: str) -> tuple[str, int]:
    """(text to insert, how many of `closed` it replaces) where that stands after the cursor: it
    takes the place of the brackets that it holds itself, or stays before them where it ends with
    them in a later line."""
    if closed and "\n" in text and text.rstrip().endswith(closed):
        return text.rstrip().removesuffix(closed), 0
    rest: Iterator[str] = iter(text)
    n_within = 0
    while n_within < len(closed) and closed[n_within] in rest:
        n_within += 1
    return text, n_within


def _left(text: str, typed: str, blank_before: bool) -> str:
    """`text` without `typed`, which may differ in indentation; what is left follows the typed one.
    "" where nothing is left or other text was typed."""
    if text.startswith(typed):
        return text[len(typed) :]
    typed_lines, lines = typed.split("\n"), text.split("\n")
    last = len(typed_lines) - 1
    if len(lines) <= last:
        return ""
    suggested = indent = ""  # a line that begins with the one begins with the other instead
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
    """Text typed at the cursor since `base`, of at most `n_max` line ends, as the lines around the
    cursor tell; None where something else changed in them."""
    n_lines = now.start.line - base.start.line
    if not 0 <= n_lines <= n_max:
        return None
    at = len(now.prefix)
    for _ in range(n_lines + 1):
        at = now.prefix.rfind("\n", 0, max(at, 0))
    line = _line_before(base.prefix)
    if not now.prefix.startswith(line, at + 1):
        return None
    return now.prefix[at + 1 + len(line) :]


def _closed_since(base: Snapshot, now: Snapshot, typed: str) -> str | None:
    """Closing brackets that came after `typed`; None where the text around is another."""
    if not _same_end(base.prefix, now.prefix, len(now.prefix) - len(typed)):
        return None
    # Editors close what was opened just now.
    for n in range(min(_MAX_CLOSED, len(now.suffix), len(typed)) + 1):
        if n and now.suffix[n - 1] not in _CLOSING:
            return None
        if _same_start(base.suffix, now.suffix, n):
            return now.suffix[:n]
    return None


def _same_start(a: str, b: str, start: int) -> bool:
    """Whether `a` equals b[start:], or as far as both windows reach."""
    n_b = len(b) - start
    if len(a) <= n_b:
        return (len(a) == n_b or len(a) >= _MIN_WINDOW) and b.startswith(a, start)
    return n_b >= _MIN_WINDOW and a.startswith(b[start:])


def _same_end(a: str, b: str, end: int) -> bool:
    """Whether `a` equals b[:end], or as far as both windows reach."""
    if len(a) <= end:
        return (len(a) == end or len(a) >= _MIN_WINDOW) and b.endswith(a, 0, end)
    return end >= _MIN_WINDOW and a.endswith(b[:end])


def _line_before(prefix: str) -> str:
    return prefix[prefix.rfind("\n") + 1 :]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
