"""The open document as tokens and automata, kept up to date keystroke by keystroke."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

import numpy as np

from codespec.documents.pieces import PieceCache
from codespec.native import SuffixAutomaton
from codespec.rules.secrets import SecretValue, find, in_secret, masked, spans_left
from codespec.syntax.text import common_prefix, common_suffix, safe_cuts, split
from codespec.types import NO_TOKENS, Tokenizer, Tokens

MAX_PREFIX_CHARS = 1 << 19
"""Most characters kept of the text before the cursor; of a longer one at least half as many."""
MAX_SUFFIX_CHARS = 1 << 17
"""Most characters kept of the text after the cursor: about 3,000 lines."""
_WORD = r"[^\s\"'`]*"
"""A word of a secret that is being typed."""


class TokenizedText:
    """A text and its tokens. An update tokenises the pieces that an edit touched, no others."""

    def __init__(self, cache: PieceCache, cuts: re.Pattern[str]) -> None:
        self.text = ""
        self.tokens = NO_TOKENS
        self._cache = cache
        self._cuts = cuts
        self._starts: list[int] = []  # start of each piece, in characters
        self._token_starts: list[int] = []

    def update(self, text: str) -> None:
        """Replace the text. Costs a comparison of both texts, and the tokenizer for new lines
        between the last cut before the changed part and the first one after it."""
        old = self.text
        if text == old:
            return
        n_same = common_prefix(old, text)
        n_tail = common_suffix(old, text, min(len(old), len(text)) - n_same)
        shift = len(text) - len(old)
        # Cuts may look ahead, so one beside the change is a cut still only if it matches again.
        first = bisect_right(self._starts, n_same) - 1
        while first > 0 and not self._cuts.match(text, self._starts[first]):
            first -= 1
        first = max(first, 0)
        last = bisect_left(self._starts, len(old) - n_tail, lo=first)
        while last < len(self._starts) and not self._cuts.match(text, self._starts[last] + shift):
            last += 1
        start = self._starts[first] if first < len(self._starts) else 0
        end = self._starts[last] + shift if last < len(self._starts) else len(text)
        self._replace(first, last, text[start:end], start, shift)
        self.text = text

    def _replace(self, first: int, last: int, middle: str, start: int, shift: int) -> None:
        """Put new pieces in the place of pieces first..last - 1."""
        at = self._token_starts[first] if first < len(self._token_starts) else 0
        has_tail = last < len(self._token_starts)
        tail_at = self._token_starts[last] if has_tail else len(self.tokens)
        starts: list[int] = []
        token_starts: list[int] = []
        chunks = [self.tokens[:at]]
        n_tokens = at
        pieces = list(split(middle, self._cuts, 1))
        for piece, tokens in zip(pieces, self._cache.encode(pieces), strict=True):
            starts.append(start)
            token_starts.append(n_tokens)
            chunks.append(tokens)
            start += len(piece)
            n_tokens += len(tokens)
        chunks.append(self.tokens[tail_at:])
        starts += [s + shift for s in self._starts[last:]]
        token_starts += [t - tail_at + n_tokens for t in self._token_starts[last:]]
        self._starts[first:] = starts
        self._token_starts[first:] = token_starts
        self.tokens = np.concatenate(chunks)


class LiveDocument:
    """One open document: tokens before and after the cursor, each with a suffix automaton. Not
    thread-safe. About 200 bytes a token."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        cuts: re.Pattern[str] | None = None,
        name: str = "",
    ) -> None:
        """cuts: `safe_cuts(tokenizer)`, where the caller has it already. name: key in
        `OpenDocuments`."""
        self.name = name
        cuts = safe_cuts(tokenizer) if cuts is None else cuts
        self._cuts = cuts
        self._cache = cache = PieceCache(tokenizer, cuts)
        self._text = ""
        self._secrets: list[SecretValue] | None = []  # None: not searched since the text changed
        self._lent: SuffixAutomaton | None = None
        self._lent_without: list[SecretValue] = []
        self._with_begun: list[SecretValue] | None = None
        self._left = TokenizedText(cache, cuts)
        self._right = TokenizedText(cache, cuts)
        self._masked: tuple[TokenizedText, TokenizedText] | None = None
        self.before = SuffixAutomaton()
        """Suffix automaton of the tokens before the cursor."""
        self.after = SuffixAutomaton()
        """Suffix automaton of the tokens after the cursor."""

    def update(self, prefix: str, suffix: str) -> bool:
        """Set the text around the cursor, \\n line ends. Returns True if it differs from before.

        After a typed character the cost is that of tokenising one line and comparing the texts;
        after an edit elsewhere, or a jump, the automata also read again from there on, about 10
        million tokens a second.
        """
        step = MAX_PREFIX_CHARS // 2
        # In steps: a start that moved with every character would make all tokens new each time.
        start = max(0, len(prefix) // step - 1) * step
        self._left.update(prefix[start:])
        self._right.update(suffix[:MAX_SUFFIX_CHARS])
        text = self._left.text + self._right.text
        is_new = text != self._text
        self._with_begun = None  # it is told by the cursor
        if is_new:
            self._text, self._secrets, self._lent = text, None, None
        self.before.assign(self.left)
        self.after.assign(self.right)
        return is_new

    @property
    def text(self) -> str:
        """The whole text of the last update, as far as it is kept."""
        return self._text

    @property
    def secrets(self) -> list[SecretValue]:
        """Secrets found in `text`. The first question after a change searches the text; typing asks
        nothing."""
        if self._secrets is None:
            self._secrets = find(self._text)
        return self._secrets

    @property
    def holds_key(self) -> bool:
        """True if it holds a secret of several lines: lines that were lost before the secret was
        complete may be a part of it."""
        return any("\n" in self._text[start:end] for start, end, _ in self.secrets)

    @property
    def _unlent(self) -> list[SecretValue]:
        """`secrets`, and the one that is being typed."""
        if self._with_begun is None:
            self._with_begun = self._find_begun()
        return self._with_begun

    def _find_begun(self) -> list[SecretValue]:
        left, at = self._left.text, len(self._left.text)
        if any(start < at <= end for start, end, _ in self.secrets) or not in_secret(left):
            return self.secrets
        begun = re.search(rf"{_WORD}\Z", left)
        rest = re.match(_WORD, self._right.text)
        start = begun.start() if begun is not None else at
        end = at + (rest.end() if rest is not None else 0)
        around = [s for s in self.secrets if s.end <= start or s.start >= end]
        return sorted((*around, SecretValue(start, end, "begun")))

    @property
    def lent_text(self) -> str:
        """`text` without secrets, for other documents."""
        if not (unlent := self._unlent):
            return self._text
        return "".join(self._text[a:b] for a, b in spans_left(unlent, 0, len(self._text)))

    @property
    def lent(self) -> tuple[SuffixAutomaton, ...]:
        """Automata that other documents may draft from: `before` and `after`, or, where there are
        secrets, one automaton with breaks in their places."""
        if not (unlent := self._unlent):
            return self.before, self.after
        if self._lent is None or unlent != self._lent_without:
            self._lent, self._lent_without = SuffixAutomaton(), unlent
            for start, end in spans_left(unlent, 0, len(self._text)):
                pieces = list(split(self._text[start:end], self._cuts, 1))
                self._lent.extend(np.concatenate(self._cache.encode(pieces)))
                self._lent.extend_break()
        return (self._lent,)

    @property
    def is_in_secret(self) -> bool:
        """True if the cursor is in a secret, finished or not."""
        at = len(self._left.text)
        return any(start < at <= end for start, end, _ in self.secrets) or in_secret(
            self._left.text
        )

    @property
    def masked(self) -> tuple[Tokens, Tokens]:
        """Tokens before and after the cursor, with asterisks in the place of secrets. Do not
        write."""
        if not self.secrets:
            return self.left, self.right
        if self._masked is None:
            cache, cuts = self._cache, self._cuts
            self._masked = TokenizedText(cache, cuts), TokenizedText(cache, cuts)
        before, after = self._masked
        text, at = masked(self._text, self.secrets), len(self._left.text)
        before.update(text[:at])
        after.update(text[at:])
        return before.tokens, after.tokens

    @property
    def left(self) -> Tokens:
        """Tokens before the cursor. Do not write."""
        return self._left.tokens

    @property
    def right(self) -> Tokens:
        """Tokens after the cursor. Do not write."""
        return self._right.tokens
