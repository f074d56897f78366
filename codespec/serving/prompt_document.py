"""The document in a prompt that a client wrote."""

from __future__ import annotations

import numpy as np

from codespec.types import NO_TOKENS, FimTokens, Tokens


def document_in(prompt: Tokens, fim: FimTokens | None) -> tuple[Tokens, Tokens]:
    """(before, after): the document around the cursor, in any order of fill-in-the-middle; before
    it is all of a prompt that lacks a marker. What stands before the last three markers, as other
    files do, is left out."""
    if fim is None:
        return prompt, NO_TOKENS
    places = [np.flatnonzero(prompt == marker) for marker in fim.markers]
    if not all(len(at) for at in places):
        return prompt, NO_TOKENS
    starts = [int(at[-1]) for at in places]
    ends = sorted([*starts, len(prompt)])
    parts = [prompt[start + 1 : ends[ends.index(start) + 1]] for start in starts]
    before = np.concatenate([parts[0], *parts[2:]])
    return np.ascontiguousarray(before), np.ascontiguousarray(parts[1])
