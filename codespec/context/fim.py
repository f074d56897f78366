"""Prompt formats for fill-in-the-middle.

Three orders are in use (Bavarian et al. 2022, "Efficient training of language models to fill in the
middle", where the last two are variants of one):

- "psm": prefix, suffix, middle, each behind its marker.
- "suffix-first": suffix, prefix, middle, each behind its marker.
- "spm": the markers of prefix and suffix, the suffix, the marker of the middle, and prefix and
  middle as one. The text before the cursor comes last, so the KV cache stays valid while the user
  types.

In the first two, what stands before the cursor on its line counts as the beginning of the middle,
so that a typed character comes last there, too; models are trained on middles that begin anywhere.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from codespec.types import NO_TOKENS, FimOrder, FimTokens, ModelInfo, Tokens


class Files(NamedTuple):
    """Markers in a vocabulary before the name of a repository and the path of a file, "" for none.
    heading, is_inside: see `FileMarkers`."""

    repository: str = ""
    file: str = ""
    heading: str = ""
    is_inside: bool = False


class Family(NamedTuple):
    """Markers in a vocabulary before the prefix, the suffix, the middle; "" for none, as there is
    nothing behind the prefix. named: of models that others share their vocabulary with. files: how
    other files are told, where llama.cpp does not know it."""

    prefix: str
    suffix: str
    middle: str
    order: FimOrder = "psm"
    named: re.Pattern[str] | None = None
    files: Files | None = None


FAMILIES = (
    Family(
        "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "suffix-first",
        re.compile(r"mellum", re.IGNORECASE), Files(file="<filename>"),
    ),
    Family(
        "[PREFIX]", "[SUFFIX]", "", "suffix-first",
        re.compile(r"(?<!mamba.)codestral", re.IGNORECASE),
        Files(heading="+++++ ", is_inside=True),
    ),
    Family(
        "<fim_prefix>", "<fim_suffix>", "<fim_middle>",
        files=Files("<repo_name>", "<file_sep>", is_inside=True),
    ),
    Family("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    Family("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    Family("▁<PRE>", "▁<SUF>", "▁<MID>"),
    Family("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    Family("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "suffix-first"),
)  # fmt: skip
"""The first that fits is a model's own. Sources: the model cards of Code Llama, DeepSeek Coder,
CodeGemma, Codestral, Seed-Coder, Mellum; Lozhkov et al. 2024, "StarCoder 2 and The Stack v2",
section 5.1; for Codestral's other files Continue, core/autocomplete/templating/
AutocompleteTemplate.ts."""

OTHER_FILES = (
    "<file_sep>", "<|file_sep|>", "<|file_separator|>", "<filename>", "<repo_name>", "<reponame>",
)  # fmt: skip
"""Markers that another file begins with: what the model writes before them is over."""


def assemble(
    info: ModelInfo,
    left: Tokens,
    right: Tokens,
    before: Tokens = NO_TOKENS,
    n_in_line: int = 0,
) -> tuple[Tokens, bool]:
    """(prompt, whether it is a FIM prompt). Without FIM ids the model continues `left` alone.

    before:    what goes first, see `snippets.Rendered`.
    n_in_line: how many of `left` stand on the cursor's line.
    """
    head = [*([] if info.bos is None else [info.bos]), *before.tolist()]
    if info.fim is None:
        return _join(head, left), False
    return _join(head, *_parts(info.fim, left, right, n_in_line)), True


def _parts(fim: FimTokens, left: Tokens, right: Tokens, n_in_line: int) -> list[Tokens | list[int]]:
    if fim.order == "spm":
        return [[fim.prefix, fim.suffix], right, [fim.middle], left]
    at = len(left) - n_in_line
    parts = [[fim.prefix], left[:at], [fim.suffix], right]
    if fim.order == "suffix-first":
        parts = parts[2:] + parts[:2]
    return [*parts, [] if fim.middle < 0 else [fim.middle], left[at:]]


def n_markers(info: ModelInfo) -> int:
    """Tokens a prompt has beside the document's own."""
    return (info.bos is not None) + (len(info.fim.markers) if info.fim else 0)


def _join(*parts: Tokens | list[int]) -> Tokens:
    return np.concatenate([np.asarray(part, np.int32) for part in parts])
