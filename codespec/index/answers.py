"""What the target said lately in one document, shown or not.

Who types something other than what was suggested is asked about the same place again a moment
later, and most of the answer stays as it was. What was trimmed off an answer, or said in a request
that the next key overtook, comes back, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from codespec.native import SuffixAutomaton
from codespec.types import Tokens

MAX_TOKENS = 2048
_LONGEST = 512
"""Tokens of an answer that are kept, from its beginning."""
_N_CONTEXT = 8
"""Tokens before the cursor that say where an answer stands."""


class Answers:
    """Answers in one suffix automaton, newest last, each after the end of the text before its
    cursor, with breaks between them."""

    def __init__(self) -> None:
        self.automaton = SuffixAutomaton()
        self._known: deque[Tokens] = deque()

    def add(self, left: Tokens, said: Sequence[int]) -> None:
        """left: what stands before the answer."""
        if not said:
            return
        answer = np.array(said[:_LONGEST], np.int32)
        new = [np.concatenate([left[-_N_CONTEXT:], answer])]
        self._known += new
        if len(self.automaton) > MAX_TOKENS:
            # A fraction of a millisecond, once in dozens of answers.
            while sum(map(len, self._known)) > MAX_TOKENS // 2:
                self._known.popleft()
            self.automaton.truncate(0)
            new = list(self._known)
        for tokens in new:
            self.automaton.extend(tokens)
            self.automaton.extend_break()
