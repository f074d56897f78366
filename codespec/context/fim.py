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

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from codespec.types import NO_TOKENS, FimOrder, ModelInfo, Tokens

Part = TypeVar("Part")
"""Ids or text."""
Marker = TypeVar("Marker")
"""An id or a text."""


def assemble(
    info: ModelInfo,
    left: Tokens,
    right: Tokens,
    before: Tokens = NO_TOKENS,
    n_in_line: int = 0,
) -> tuple[Tokens, bool]:
    """(prompt, True for a FIM prompt). Without FIM ids the model continues `left` alone.

    before:    tokens that go first, see `snippets.Rendered`.
    n_in_line: tokens at the end of `left` that stand on the cursor's line.
    """
    head = [*([] if info.bos is None else [info.bos]), *before.tolist()]
    if info.fim is None:
        return _join(head, left), False
    fim, at = info.fim, len(left) - n_in_line
    markers = [fim.prefix], [fim.suffix], [] if fim.middle < 0 else [fim.middle]
    return _join(head, *in_order(fim.order, markers, left[:at], left[at:], right)), True


def in_order(
    order: FimOrder, markers: tuple[Part, Part, Part], above: Part, line: Part, right: Part
) -> tuple[Part, ...]:
    """The parts of a prompt in the order of `order`. markers: those before the prefix, the suffix,
    the middle; above, line: the text before the cursor's line, and in it before the cursor; right:
    the text after the cursor."""
    prefix, suffix, middle = markers
    if order == "spm":
        return prefix, suffix, right, middle, above, line
    if order == "suffix-first":
        return suffix, right, prefix, above, middle, line
    return prefix, above, suffix, right, middle, line


def other_files(
    others: Sequence[tuple[str, str]],
    path: str,
    repository: str,
    repository_marker: Marker | None,
    file_marker: Marker | None,
    heading: str,
    is_inside: bool,
) -> tuple[list[Marker | str], str]:
    """(markers and texts before the first marker of the document, text directly before its prefix)
    for `others`, (path, text) each, and the document at `path`; the rest as in `FileMarkers`."""
    shown, own = [f"{name}\n{text}\n" for name, text in others], f"{path}\n"
    if file_marker is None:
        return [], "".join(heading + text for text in (*(f"{text}\n" for text in shown), own))
    parts: list[Marker | str] = []
    if repository_marker is not None:
        parts += [repository_marker, repository if is_inside else f"{repository}\n"]
    for text in shown:
        parts += [file_marker, text]
    parts.append(file_marker)
    return (parts, own) if is_inside else ([*parts, own], "")


def n_markers(info: ModelInfo) -> int:
    """Tokens of a prompt beside the document's own."""
    return (info.bos is not None) + (len(info.fim.markers) if info.fim else 0)


def _join(*parts: Sequence[int] | Tokens) -> Tokens:
    return np.concatenate([np.asarray(part, np.int32) for part in parts])
