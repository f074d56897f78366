"""Past output: answers of the target in one document, shown or not.

A user who types something other than the suggestion causes a request for the same place a moment
later, and most of the answer stays as it was. Text that was trimmed off an answer, or generated for
a request that the next key overtook, comes back, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from codespec.native import SuffixAutomaton
from codespec.types import Tokens

MAX_TOKENS = 2048
_LONGEST = 512
"""Most tokens kept of an answer, from its beginning."""
_N_CONTEXT = 8
"""Tokens kept before an answer, which tell its place."""


class Answers:
    """Answers in one suffix automaton, newest last, each after the end of the text before its
    cursor, with breaks between them."""

    def __init__(self) -> None:
        self.automaton = SuffixAutomaton()
        self._known: deque[Tokens] = deque()

    def add(self, left: Tokens, said: Sequence[int]) -> None:
        """Append an answer. left: tokens before it."""
        if not said:
            return
        answer = np.array(said[:_LONGEST], np.int32)
        new = [np.concatenate([left[-_N_CONTEXT:], answer])]
        self._known += new
        if len(self.automaton) > MAX_TOKENS:
            # Rebuilding takes a fraction of a millisecond, once in dozens of answers.
            while sum(map(len, self._known)) > MAX_TOKENS // 2:
                self._known.popleft()
            self.automaton.truncate(0)
            new = list(self._known)
        for tokens in new:
            self.automaton.extend(tokens)
            self.automaton.extend_break()
