"""The best public peer of our index: ArcticInference's suffix trie, if it is installed.

Source: Oliaro et al. 2024, SuffixDecoding: extreme speculative decoding for emerging AI
applications.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from codespec.errors import InputError
from codespec.types import Tokens

PACKAGE = "arctic-inference"
MAX_DEPTH = 64


class PeerDraft(Protocol):
    token_ids: list[int]
    score: float


class PeerTree(Protocol):
    """Their `SuffixTree`, as far as we use it."""

    def extend_ndarray(self, seq_id: int, tokens: Tokens) -> None: ...
    def speculate_ndarray(
        self,
        context: Tokens,
        max_spec_tokens: int,
        max_spec_factor: float,
        max_spec_offset: float,
        min_token_prob: float,
        use_tree_spec: bool,
    ) -> PeerDraft: ...
    def estimate_memory(self) -> int: ...


class TriePeer:
    def __init__(self, module: ModuleType) -> None:
        self._new = module.SuffixTree

    def tree(self) -> PeerTree:
        return cast(PeerTree, self._new(MAX_DEPTH))

    @staticmethod
    def draft(tree: PeerTree, context: Tokens, n_max: int) -> list[int]:
        """A chain of up to n_max tokens, however short the match: what ours is asked for, too."""
        return tree.speculate_ndarray(context, n_max, float(n_max), 0.0, 0.0, False).token_ids


def load_peer(extension: Path | None) -> TriePeer | None:
    """From the file of its extension module, or the installed package; None without either.

    Raises: InputError for a file that is no such module.
    """
    if extension is None:
        try:
            return TriePeer(importlib.import_module("arctic_inference.suffix_decoding._C"))
        except ImportError:
            return None
    spec = importlib.util.spec_from_file_location("_C", extension)
    try:
        if spec is None or spec.loader is None:
            raise ImportError("not the name of an extension module")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return TriePeer(module)
    except (ImportError, AttributeError) as e:
        raise InputError(
            f"{extension}: {e}", f"Give the _C extension of {PACKAGE}, built for this Python."
        ) from None
