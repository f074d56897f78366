"""Prompts without secrets, as tokens."""

from __future__ import annotations

import numpy as np

from codespec.rules.secrets import find, masked
from codespec.types import Tokenizer, Tokens


def masked_tokens(tokens: Tokens, tokenizer: Tokenizer) -> Tokens:
    """A prompt (n,) with asterisks in the place of secrets; markers stay."""
    if not find(tokenizer.decode(tokens)):
        return tokens
    pieces = [tokenizer.piece(token) for token in tokens.tolist()]
    ends = np.cumsum([len(piece) for piece in pieces])
    text = b"".join(pieces)
    found = find(text)
    hidden = masked(text, found)
    parts: list[Tokens] = []
    done = 0
    for start, end, _ in found:
        # The tokens with a byte of it; a marker has none.
        first, last = (int(np.searchsorted(ends, at, "right")) for at in (start, end - 1))
        first = max(first, done)
        if last < first:
            continue
        at = int(ends[first]) - len(pieces[first])
        parts += tokens[done:first], tokenizer.encode(hidden[at : int(ends[last])])
        done = last + 1
    return np.concatenate([*parts, tokens[done:]])
