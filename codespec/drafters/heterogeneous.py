"""A draft model with a heterogeneous vocabulary: its text is tokenised anew as the target's tokens.

So any small code model drafts for any target. Its prompt is made from the document's text. A target
token is drafted once the word that it is in is complete, as until then it may become another.

Source: string-level exact match (Timor et al. 2025, Accelerating LLM inference with lossless
speculative decoding algorithms for heterogeneous vocabularies).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from codespec.backends.base import Target
from codespec.context.fim import assemble, n_markers
from codespec.context.prompt_window import Window, n_in_line, window_start
from codespec.documents.live import TokenizedText
from codespec.documents.pieces import PieceCache
from codespec.drafters.draft_model import DraftPasses, OnPass, ignore_pass, probability
from codespec.syntax.text import safe_cuts
from codespec.types import NO_DRAFT, NO_TOKENS, Context, Logits, Tokenizer, Tokens

WINDOW = Window(512, 128)
"""Most tokens of the document in the draft model's prompt, output included: half of a target's, as
the prefill must be repaid."""

# Most of the draft model's tokens in a draft, and its most passes for one token of the target.
_MOST_AHEAD, _MOST_PASSES = 128, 8
# The last word of a text, which may still grow. Tokens do not cross the borders of words, as
# tokenizers split text there.
_LAST_WORD = re.compile(rb"(?:[^\r\n\w\x80-\xff]?[\w\x80-\xff]+| ?[^\w\s\x80-\xff]+[\r\n]*|\s+)$")


class HeterogeneousModel:
    """`DraftModel` over a model of any vocabulary. It drafts greedily alone: penalties, grammars
    and sampling are left to verification.

    tokenizer: the draft model's. target: the target's tokenizer.
    """

    is_sampling = False

    def __init__(
        self,
        model: Target,
        tokenizer: Tokenizer,
        target: Tokenizer,
        on_pass: OnPass = ignore_pass,
    ) -> None:
        self._passes = DraftPasses(model, on_pass)
        self._info = model.info
        self._max_draft = min(model.can.max_draft, _MOST_AHEAD)
        n_ctx = model.info.n_ctx - n_markers(model.info)
        self._window = WINDOW.fitted(n_ctx, _MOST_AHEAD)
        self._tokenizer = tokenizer
        self._target = target
        cuts = safe_cuts(tokenizer)
        cache = PieceCache(tokenizer, cuts)
        self._left, self._right = TokenizedText(cache, cuts), TokenizedText(cache, cuts)
        self._before = self._healed = b""  # text before the cursor, and what healing held back
        self._n_head = 0  # bytes before the cursor's line
        self._prompt = NO_TOKENS  # in the draft model's tokens
        self._n_known = 0  # tokens of the prompt in the KV cache
        self._tail = NO_TOKENS
        # Drafted text that is not in a target token yet, and the draft model's tokens in it: their
        # offsets in bytes, their probabilities.
        self._ahead = b""
        self._likely: list[tuple[int, float]] = []
        self._is_over = False

    @property
    def n_cached(self) -> int:
        return self._passes.model.n_cached

    @property
    def n_unread(self) -> int:
        return len(self._prompt) - self._n_known

    def begin(self, context: Context) -> None:
        start = window_start(len(context.left), self._window.n_prefix)
        self._before = self._target.decode(context.left[start:])
        self._healed = context.healed
        after = self._target.decode(context.right[: self._window.n_suffix])
        self._right.update(after.decode("utf-8", "ignore"))
        self._n_head = self._read_left(self._before)
        n_line = n_in_line(self._left.tokens, self._tokenizer)
        self._n_head -= self._n_bytes(self._left.tokens[len(self._left.tokens) - n_line :])
        self._prompt = self._tokens(self._before)
        self._n_known = self._passes.n_known(self._prompt)

    def fits(self, n_tokens: int) -> bool:
        return self._info.n_ctx > 2 * _MOST_AHEAD  # the prompt is never longer than WINDOW

    def read(self, interrupted: Callable[[], bool]) -> None:
        self._passes.read_all(self._prompt, interrupted)

    def catch_up(self, emitted: Tokens, interrupted: Callable[[], bool]) -> None:
        said = self._target.decode(emitted)
        # Bytes that healing held back come first, whatever the draft model prefers.
        self._is_over = not self._healed.startswith(said[: len(self._healed)])
        self._ahead = b"" if self._is_over else self._healed[len(said) :]
        self._likely = []
        own = self._tokens(self._before + said + self._ahead)
        self._tail = self._passes.read(own, interrupted)
        self._n_known = len(self._prompt)

    def next(self) -> tuple[int, float] | None:
        for _ in range(1 + _MOST_PASSES):
            words = self._target.encode(self._ahead)
            n = len(self._target.piece(int(words[0]))) if len(words) else 0
            if n and (self._is_over or n <= self._n_certain):
                return self._taken(int(words[0]), n)
            if self._is_over:
                break
            self._write()
        return None

    @property
    def _n_certain(self) -> int:
        """Length of the drafted text without its last word, in bytes."""
        last = _LAST_WORD.search(self._ahead)
        return last.start() if last else 0

    def draw(self, n: int) -> tuple[list[int], list[Logits]]:
        raise NotImplementedError("its distributions are over other tokens than the target's")

    def _tokens(self, before: bytes) -> Tokens:
        """Prompt and output in the draft model's tokens. An incomplete character at the end is left
        out."""
        n_middle = self._read_left(before) - self._n_head
        left, right = self._left.tokens, self._right.tokens[: self._window.n_suffix]
        left = left[window_start(len(left), self._window.n_prefix) :]
        # Further lines belong to the middle part of the prompt, as in the target's: were it the
        # last line alone, the suffix between prefix and middle would be prefilled anew for each.
        n_in_middle = 0
        for token in left[::-1].tolist():
            n_middle -= len(self._tokenizer.piece(token))
            if n_middle < 0:
                break
            n_in_middle += 1
        return assemble(self._info, left, right, n_in_line=n_in_middle)[0]

    def _read_left(self, before: bytes) -> int:
        """Tokenise the text before the cursor. Returns: the bytes of it that are whole
        characters."""
        text = before.decode("utf-8", "ignore")
        self._left.update(text)
        return len(text.encode())

    def _n_bytes(self, tokens: Tokens) -> int:
        return sum(len(self._tokenizer.piece(token)) for token in tokens.tolist())

    def _write(self) -> None:
        """Draft one more token in the draft model's vocabulary."""
        logits = self._passes.decode(self._tail, NO_DRAFT).row(0)
        token = int(logits.argmax())
        piece = self._tokenizer.piece(token)
        if token in self._info.eog or not piece:
            self._is_over = True
            return
        self._likely.append((len(self._ahead), probability(logits, token)))
        self._ahead += piece
        self._tail = np.array([token], np.int32)

    def _taken(self, word: int, n: int) -> tuple[int, float]:
        """Take a target token of `n` bytes off the drafted text. Returns: (token, the product of
        the probabilities of the draft model's tokens that begin in it)."""
        likely = math.prod(p for at, p in self._likely if at < n)
        self._ahead = self._ahead[n:]
        self._likely = [(at - n, p) for at, p in self._likely if at >= n]
        return word, likely
