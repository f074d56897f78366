"""Recent edits: lines that a user changed or deleted, as tokens to draft from.

In a refactoring, lines are deleted here and typed there, or the same change is made in many places.
The old lines are in no document any more, and a saved file takes them out of the repository's
index: the history of changes is the only source that still has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from codespec.documents.edit_history import EditHistory
from codespec.documents.lost_lines import LostLines
from codespec.native import SuffixAutomaton
from codespec.types import Tokens

MAX_TOKENS = 4096
"""Tokens of lost lines; the oldest are left out."""
N_CONTEXT = 4
"""Tokens kept before lost lines, which tell their place: new text there often begins alike."""


class Lost(NamedTuple):
    """Lines that a file lost, and the end of the text before them."""

    before: Tokens
    tokens: Tokens


class RecentEdits:
    """The lines that were lost in all documents of a workspace: newest last, with breaks between
    edits in the automaton. Not thread-safe."""

    def __init__(self, history: EditHistory, encode: Callable[[str], Tokens]) -> None:
        self.history = history
        self._encode = encode
        self._automaton = SuffixAutomaton()
        self._lines: list[LostLines] = []
        self._known: dict[LostLines, Lost] = {}

    @property
    def automaton(self) -> SuffixAutomaton:
        """The lost lines, each after the tokens before it."""
        self._refresh()
        return self._automaton

    @property
    def lost(self) -> list[tuple[str, Tokens]]:
        """(file, the lines it lost), newest first."""
        self._refresh()
        return [(lines.path, self._known[lines].tokens) for lines in reversed(self._lines)]

    def _refresh(self) -> None:
        """Take over what the history says now."""
        known: dict[LostLines, Lost] = {}
        found: list[LostLines] = []
        n_tokens = 0
        for lines in reversed(self.history.lost()):
            if lines in known:
                continue
            known[lines] = lost = self._known.get(lines) or self._tokens(lines)
            n_tokens += len(lost.tokens)
            if n_tokens > MAX_TOKENS and found:
                break
            found.append(lines)
        self._known = known
        found.reverse()
        if found != self._lines:
            # Rebuilding takes a millisecond for some thousand tokens, once in an edit.
            self._lines = found
            self._automaton.truncate(0)
            for lines in found:
                remember(self._automaton, known[lines])

    def _tokens(self, lines: LostLines) -> Lost:
        return Lost(self._encode(_joined(lines.before)), self._encode(_joined(lines.lines)))


def remember(automaton: SuffixAutomaton, lost: Lost) -> None:
    """Append lost lines after the tokens before them, and a break."""
    automaton.extend(lost.before[-N_CONTEXT:])
    automaton.extend(lost.tokens)
    automaton.extend_break()


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
