"""Lookups at any place of a text, not only between tokens.

Before the cursor `foo(` ends in a token `(`, where a file that goes on has `(self`: around the
cursor, files that hold the same text have other tokens than the prompt. So a lookup there goes back
to where both agree, takes only what starts with the text since then, and proposes what lies beyond
the prompt's end, in tokens that the model would say there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from codespec.context.healing import Vocabulary
from codespec.types import NO_TOKENS, Tokenizer, Tokens

_Ids = npt.NDArray[np.int32]
Columns = npt.NDArray[np.int32]

_MAX_BACK = 16
"""Tokens to go back at most: a longer run of one kind is no word."""
_SETTLED = 4
"""After so many emitted tokens at most, more do not change how the text around the cursor is
split."""
_MAX_ASKS = 4
_N_EXTRA = 4  # tokens asked for beside those wanted: the text since the agreed place takes some

_WORD = [chr(byte).isalnum() or byte >= 0x80 for byte in range(256)]

# The end of a text that more text may still change the tokens of: a word with the character before
# it, a number, punctuation, white space. Families of tokenizers differ in more than this tells;
# where it is wrong, a lookup misses.
_OPEN_END = re.compile(
    rb"""(?: [^\r\nA-Za-z0-9\x80-\xff]? [A-Za-z\x80-\xff]+
           | \x20? [0-9]{1,3}
           | \x20? [^\sA-Za-z0-9\x80-\xff]+ [\r\n]*
           | \s+ )\Z""",
    re.VERBOSE,
)


class Proposed(Protocol):
    """A drafted chain of k tokens with its votes, as of `native.Proposal`."""

    @property
    def tokens(self) -> _Ids: ...
    @property
    def columns(self) -> Columns: ...
    @property
    def position(self) -> int: ...


class Continuation(msgspec.Struct, frozen=True, eq=False):
    """As `Proposed`, put together from several or cut to begin inside a token."""

    columns: Columns
    position: int = -1

    @property
    def tokens(self) -> _Ids:
        return self.columns[0]


_NO_RUNNER_UP = np.array([[-1], [0]], np.int32)
_NOTHING: Columns = np.zeros((6, 0), np.int32)


class Texts(Protocol):
    """Texts to look up in, numbered, as of `native.Sources`. tail: of the context, after
    `Boundary.base`. allowed: ids that the first token may have, None for any."""

    def draft(self, i: int, tail: Tokens, n_max: int, allowed: _Ids | None = None) -> Proposed: ...
    def draft_all(
        self, tail: Tokens, n_max: int, allowed: _Ids | None = None
    ) -> Sequence[tuple[int, Proposed]]:
        """What each says that has anything to say."""
        ...


class Query(msgspec.Struct, frozen=True, eq=False):
    """tail: what lookups match, after `Boundary.base`. wanted: what a continuation of that must
    start with. n_given: how many bytes of `wanted` the model has read or emitted already."""

    tail: Tokens
    wanted: bytes = b""
    n_given: int = 0


class _Settled(msgspec.Struct, frozen=True, eq=False):
    """What every query begins with whose tokens begin with `by`, the first `n` of them included."""

    by: bytes
    n: int
    begin: Query


class Boundary:
    """The cursor of one request. Not thread-safe.

    left:   the prompt's tokens before the cursor, without the piece held back.
    healed: that piece: the output must start with it.
    """

    def __init__(
        self, left: Tokens, healed: bytes, tokenizer: Tokenizer, vocabulary: Vocabulary
    ) -> None:
        self._left = left
        self._healed = healed
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        n_back = self._n_open()
        self.base = left[: len(left) - n_back]
        """Tokens before the cursor that prompt and files agree on."""
        self._kept = left[len(left) - n_back :]
        self._open = self._text(self._kept)
        self._settled: _Settled | None = None

    def query(self, emitted: Tokens) -> Query:
        """What to look up after these tokens."""
        if not self._open and not self._healed:
            return Query(emitted)
        settled = self._settled
        if settled is not None and emitted.tobytes().startswith(settled.by):
            n, begin = settled.n, settled.begin
        else:
            n = self._n_unsettled(emitted)
            begin = self._begin(emitted[:n])
            if n < len(emitted) or n == _SETTLED:
                self._settled = _Settled(emitted[: min(n + 1, _SETTLED)].tobytes(), n, begin)
        if begin.wanted or len(emitted) == n:
            return begin
        return Query(np.concatenate([begin.tail, emitted[n:]]))

    def is_settled(self, emitted: Tokens) -> bool:
        """Whether, from here on, what is to be looked up after a token more is the same tail and
        that token."""
        if not self._open and not self._healed:
            return True
        settled = self._settled
        if settled is None or settled.begin.wanted:
            return False
        return emitted.tobytes().startswith(settled.by)

    def _n_unsettled(self, emitted: Tokens) -> int:
        """How many tokens it takes until more of them do not change how the text around the cursor
        is split: up to where a word ends for sure."""
        n_healing = len(self._healed)
        last = b""
        for i, token in enumerate(emitted[:_SETTLED].tolist()):
            piece = self._tokenizer.piece(token)
            if n_healing <= 0 and last and piece and _parts(last[-1], piece[0]):
                return i
            n_healing -= len(piece)
            last = piece
        return min(len(emitted), _SETTLED)

    def _begin(self, emitted: Tokens) -> Query:
        """What to look up after the first tokens."""
        head = self._text(emitted)
        if not len(emitted) or len(head) < len(self._healed):
            wanted = self._open + self._healed
            return Query(NO_TOKENS, wanted, len(self._open) + len(head))
        # The tokens that a file has for the text around the cursor, rather than prompt and output.
        return Query(self._tokenizer.encode(self._open + head))

    def ask(self, query: Query, n_max: int, texts: Texts) -> dict[int, Continuation]:
        """What texts propose, at most `n_max` tokens, for a query that wants something. One call
        for all of them, a second for what the first did not find, and some more for those whose
        tokens spell piece by piece what is wanted."""
        found = self._ask(NO_TOKENS, query.wanted, query.n_given, n_max, texts)
        if not self._open or query.n_given > len(self._open):
            return found
        # Tokens may agree further than the rule for where they do is sure of.
        if self._healed:
            return self._ask(self._kept, self._healed, 0, n_max, texts) | found
        others = texts.draft_all(self._kept, n_max)
        return {i: Continuation(p.columns, p.position) for i, p in others} | found

    def _ask(
        self, tail: Tokens, missing: bytes, n_given: int, n_max: int, texts: Texts
    ) -> dict[int, Continuation]:
        allowed = self._vocabulary.compatible(missing)
        found: dict[int, Continuation] = {}
        for i, proposed in texts.draft_all(tail, n_max + _N_EXTRA, allowed):
            columns = self._spelling(i, proposed, tail, missing, n_max, texts)
            if columns is not None:
                beyond = self._beyond(columns, n_given, n_max)
                if beyond.shape[1]:
                    found[i] = Continuation(beyond, proposed.position)
        return found

    def _spelling(
        self, i: int, p: Proposed, tail: Tokens, missing: bytes, n_max: int, texts: Texts
    ) -> Columns | None:
        """What the i-th text proposes from `p` on, if that begins with what is missing."""
        parts: list[Columns] = []
        for _ in range(_MAX_ASKS):
            n, missing = self._spelled(p.tokens, missing)
            parts.append(p.columns[:, :n])
            if not missing:
                return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
            if n == 0:
                break
            tail = np.concatenate([tail, p.tokens[:n]])
            p = texts.draft(i, tail, n_max + _N_EXTRA, self._vocabulary.compatible(missing))
        return None

    def _spelled(self, tokens: Tokens, missing: bytes) -> tuple[int, bytes]:
        """(how many of the tokens are of use, what is missing after them)."""
        for n, token in enumerate(tokens.tolist()):
            piece = self._tokenizer.piece(token)
            if piece.startswith(missing):
                return len(tokens), b""
            if not piece or not missing.startswith(piece):
                return n, missing
            missing = missing[len(piece) :]
        return len(tokens), missing

    def _beyond(self, columns: Columns, n_given: int, n_max: int) -> Columns:
        """What comes after the first `n_given` bytes of the drafted text."""
        pieces = [self._tokenizer.piece(t) for t in columns[0].tolist()]
        first, n_bytes = 0, 0
        while first < len(pieces) and n_bytes + len(pieces[first]) <= n_given:
            n_bytes += len(pieces[first])
            first += 1
        rest = columns[:, first:]
        if n_bytes < n_given and first < len(pieces):
            # Half a token: its other half, in tokens of its own with the votes of the whole.
            half = self._encode(pieces[first][n_given - n_bytes :])
            if not len(half):
                return _NOTHING
            split = np.repeat(rest[:, :1], len(half), axis=1)
            split[0] = half
            split[4:] = _NO_RUNNER_UP
            rest = np.concatenate([split, rest[:, 1:]], axis=1)
        return rest[:, :n_max]

    def _encode(self, raw: bytes) -> Tokens:
        try:
            return self._tokenizer.encode(raw.decode())
        except UnicodeDecodeError:
            return NO_TOKENS

    def _n_open(self) -> int:
        """How many of the last tokens of `left` hold text that is split in another way when more
        text follows."""
        last = self._left[-_MAX_BACK:].tolist()
        pieces = [self._tokenizer.piece(t) for t in last]
        found = _OPEN_END.search(b"".join(pieces) + self._healed)
        n_open = sum(map(len, pieces)) - found.start() if found else 0
        n_back = n_bytes = 0
        for piece in reversed(pieces):
            # Nor must a character be cut in two.
            if n_bytes >= n_open and not _continues(self._after(pieces, n_back)):
                return n_back
            n_back += 1
            n_bytes += len(piece)
        return n_back if n_back < _MAX_BACK else 0

    def _after(self, pieces: list[bytes], n_back: int) -> bytes:
        return b"".join(pieces[len(pieces) - n_back :]) + self._healed

    def _text(self, tokens: Tokens) -> bytes:
        return b"".join(self._tokenizer.piece(int(t)) for t in tokens)


def _parts(last: int, first: int) -> bool:
    """Whether text is split between these two bytes, whatever stands around them."""
    if _WORD[last]:
        return first < 0x80 and not _WORD[first] and first != ord("'")  # 's, 't
    return first == ord(" ") and last not in b" \t\r\n"


def _continues(text: bytes) -> bool:
    """Whether a text begins inside a UTF-8 character."""
    return bool(text) and 0x80 <= text[0] < 0xC0
