"""Prompt formats for fill-in-the-middle.

Two token orders are in use (Bavarian et al. 2022, "Efficient training of language models to fill
in the middle"): prefix-suffix-middle, and suffix-prefix-middle, where the text before the cursor
comes last. The second keeps the KV cache valid while the user types.
"""

from __future__ import annotations

import numpy as np

from codespec.types import NO_TOKENS, FimTokens, ModelInfo, Tokens


def assemble(
    info: ModelInfo, left: Tokens, right: Tokens, before: Tokens = NO_TOKENS
) -> tuple[Tokens, bool]:
    """(prompt, whether it is a FIM prompt). Without FIM ids the model continues `left` alone.

    before: what goes first, other files between their own markers.
    """
    head = [*([] if info.bos is None else [info.bos]), *before.tolist()]
    if info.fim is None:
        return _join(head, left), False
    return _join(head, *_parts(info.fim, left, right)), True


def _parts(fim: FimTokens, left: Tokens, right: Tokens) -> list[Tokens | list[int]]:
    if fim.order == "psm":
        return [[fim.prefix], left, [fim.suffix], right, [fim.middle]]
    return [[fim.prefix, fim.suffix], right, [fim.middle], left]


def n_markers(info: ModelInfo) -> int:
    """Tokens a prompt has beside the document's own."""
    return (info.bos is not None) + (3 if info.fim else 0)


def _join(*parts: Tokens | list[int]) -> Tokens:
    return np.concatenate([np.asarray(part, np.int32) for part in parts])
