"""Prompt formats for fill-in-the-middle.

Two token orders are in use (Bavarian et al. 2022, "Efficient training of language models to fill
in the middle"): prefix-suffix-middle, and suffix-prefix-middle, where the text before the cursor
comes last. The second keeps the KV cache valid while the user types. In the first, what stands
before the cursor on its line counts as the beginning of the middle, so that a typed character comes
last there, too; models are trained on middles that begin anywhere.
"""

from __future__ import annotations

import numpy as np

from codespec.types import NO_TOKENS, FimTokens, ModelInfo, Tokens

FAMILIES = (
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    ("▁<PRE>", "▁<SUF>", "▁<MID>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
)
"""Markers in vocabularies, by family of models: before the prefix, the suffix, the middle.
Sources: the model cards of Code Llama, StarCoder 2, DeepSeek Coder, CodeGemma, Codestral."""


def assemble(
    info: ModelInfo,
    left: Tokens,
    right: Tokens,
    before: Tokens = NO_TOKENS,
    n_in_line: int = 0,
) -> tuple[Tokens, bool]:
    """(prompt, whether it is a FIM prompt). Without FIM ids the model continues `left` alone.

    before:    what goes first, other files between their own markers.
    n_in_line: how many of `left` stand on the cursor's line.
    """
    head = [*([] if info.bos is None else [info.bos]), *before.tolist()]
    if info.fim is None:
        return _join(head, left), False
    return _join(head, *_parts(info.fim, left, right, n_in_line)), True


def _parts(fim: FimTokens, left: Tokens, right: Tokens, n_in_line: int) -> list[Tokens | list[int]]:
    if fim.order == "psm":
        at = len(left) - n_in_line
        return [[fim.prefix], left[:at], [fim.suffix], right, [fim.middle], left[at:]]
    return [[fim.prefix, fim.suffix], right, [fim.middle], left]


def n_markers(info: ModelInfo) -> int:
    """Tokens a prompt has beside the document's own."""
    return (info.bos is not None) + (3 if info.fim else 0)


def _join(*parts: Tokens | list[int]) -> Tokens:
    return np.concatenate([np.asarray(part, np.int32) for part in parts])
