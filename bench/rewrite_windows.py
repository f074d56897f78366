"""Windows around the hunks of a history, and what is known of them beforehand: the ideal, and the
prompt lookup that others build in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from codespec.cost.cost_curve import CostCurve, best_width
from codespec.drafters.base import Drafter, Traits
from codespec.types import NO_DRAFT, Context, Draft, PassState, Tokenizer, Tokens

from .history import Hunk

N_LINES = 21
"""Lines of a window: as many as Sweep's next-edit models were trained on."""
N_AROUND = 150
"""Lines of the file in a prompt, on either side of the window."""
N_CHANGES = 6
"""Earlier changes of the commit in a prompt."""
MAX_TOKENS = 1024
"""Most tokens of a window, old or new: next-edit models write no more."""
MAX_NGRAM = 4


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a file, and what a hunk makes of it.

    prompt: tokens that a model reads; the old text comes last.
    """

    path: str
    prompt: Tokens
    old: Tokens
    new: Tokens


def windows(hunks: Sequence[Hunk], tokenizer: Tokenizer) -> Iterator[Window]:
    """The windows of one commit's hunks, without those that are too long. Prompts hold the file
    with the commit's earlier hunks in it, and those hunks themselves, as next-edit prompts do."""
    changes: list[str] = []
    for hunk in hunks:
        window = _window(hunk, changes[-N_CHANGES:], tokenizer)
        if window is not None:
            yield window
        changes.append(f"original:\n{hunk.removed}updated:\n{hunk.text}")


def _window(hunk: Hunk, changes: list[str], tokenizer: Tokenizer) -> Window | None:
    above, below = _lines(hunk.prefix), _lines(hunk.suffix)
    n_around = N_LINES - len(_lines(hunk.removed))
    if n_around < 0:
        return None
    n_above = min(len(above), max(n_around // 2, n_around - len(below)))
    start, n_below = len(above) - n_above, n_around - n_above
    first, last = "".join(above[start:]), "".join(below[:n_below])
    old, new = (tokenizer.encode(first + text + last) for text in (hunk.removed, hunk.text))
    if not all(1 < len(text) <= MAX_TOKENS for text in (old, new)):
        return None
    file = [*above[-N_AROUND - n_above :], hunk.removed, *below[: N_AROUND + n_below]]
    head = f"{hunk.path}\n{''.join(file)}\n{''.join(changes)}\ncurrent:\n"
    return Window(hunk.path, np.concatenate([tokenizer.encode(head), old]), old, new)


def _lines(text: str) -> list[str]:
    """Lines as Git counts them."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def pairs(old: Tokens, new: Tokens) -> list[int]:
    """The place in `old` of each token of `new`, -1 for none, by a longest common subsequence,
    which is a minimal diff."""
    n, m = len(old), len(new)
    best = np.zeros((n + 1, m + 1), np.int32)  # of what is left of both
    same = old[:, None] == new[None, :]
    for i in range(n - 1, -1, -1):
        row = np.maximum(best[i + 1, :-1], np.where(same[i], best[i + 1, 1:] + 1, 0))
        best[i, :-1] = np.maximum.accumulate(row[::-1])[::-1]
    found, i, j = [-1] * m, 0, 0
    while i < n and j < m:
        if same[i, j] and best[i, j] == best[i + 1, j + 1] + 1:
            found[j] = i
            i, j = i + 1, j + 1
        elif best[i + 1, j] >= best[i, j + 1]:
            i += 1
        else:
            j += 1
    return found


class IdealRewrite(Drafter):
    """Drafts the longest run of the old text, aligned by a minimal diff, that will be accepted, as
    much of it as pays on a curve where passes are padded to a width (1: not at all)."""

    name = "ideal"
    traits = Traits(cuts=True)

    def __init__(self, window: Window, curve: CostCurve, width: int = 1) -> None:
        self._old, self._new = window.old, window.new
        self._pairs = pairs(window.old, window.new)
        self._curve = curve
        self._width = width

    def propose(self, state: PassState, n_max: int) -> Draft:
        at = len(state.emitted)
        place = self._pairs[at] if at < len(self._pairs) else -1
        if place < 0:
            return NO_DRAFT
        ahead, truth = self._old[place : place + n_max], self._new[at : at + n_max]
        k = min(len(ahead), len(truth))
        wrong = np.flatnonzero(ahead[:k] != truth[:k])
        n_right = int(wrong[0]) if len(wrong) else k
        after = PassState(state.emitted, state.n_tail, self._width, state.after_single)
        n, _ = best_width([1.0] * n_right, self._curve, after)
        return Draft.chain(ahead[:n])


class LastNgrams:
    """The place where each n-gram, of `MAX_NGRAM` tokens at most, was last followed by a token."""

    def __init__(self, prompt: Tokens) -> None:
        self.tokens: list[int] = prompt.tolist()
        self.ends: dict[tuple[int, ...], int] = {}
        for end in range(1, len(self.tokens)):
            for n in range(1, min(MAX_NGRAM, end) + 1):
                self.ends[tuple(self.tokens[end - n : end])] = end


class FixedLookup(Drafter):
    """Prompt lookup (Saxena 2023) with fixed settings: copies the `n_draft` tokens that followed
    the last occurrence of the last `max_ngram` tokens, or of fewer where these are new. The same
    drafts as of `reference.PromptLookup`; what is known of a prompt is shared by all settings."""

    name = "prompt-lookup"
    traits = Traits(cuts=True)

    def __init__(self, known: LastNgrams, max_ngram: int, n_draft: int) -> None:
        self._known = known
        self._max_ngram, self._n_draft = max_ngram, n_draft
        self._text = list(known.tokens)
        self._ends: dict[tuple[int, ...], int] = {}

    def begin(self, context: Context) -> None:
        self._text, self._ends = list(self._known.tokens), {}

    def propose(self, state: PassState, n_max: int) -> Draft:
        text = self._text
        for token in state.emitted[len(text) - len(self._known.tokens) :].tolist():
            end = len(text)
            for n in range(1, min(self._max_ngram, end) + 1):
                self._ends[tuple(text[end - n :])] = end
            text.append(token)
        for n in range(min(self._max_ngram, len(text) - 1), 0, -1):
            last = tuple(text[-n:])
            end = self._ends.get(last, self._known.ends.get(last, -1))
            if end >= 0:
                return Draft.chain(text[end : end + min(n_max, self._n_draft)])
        return NO_DRAFT
