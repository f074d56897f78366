"""ArcticInference's suffix trie as a drafter of ours, with the rule it ships."""

from __future__ import annotations

import numpy as np

from codespec.drafters.base import Drafter
from codespec.types import NO_DRAFT, NO_TOKENS, Context, Draft, PassState, Source, Tokens, Verdict

from ..peer import MAX_DEPTH, PeerTree

# Its own defaults: as many tokens as the match is long, each likelier than a tenth.
MAX_SPEC_FACTOR = 1.0
MIN_TOKEN_PROB = 0.1


class ArcticDrafter(Drafter):
    """`Drafter` over the prompt and what follows it, as their decoder uses the trie.

    files: a trie of other text, asked as well, as they ask one of earlier answers; the draft whose
    tokens' probabilities add up to more is taken, as they do. It is only read.
    """

    name = "arctic"

    def __init__(
        self,
        tree: PeerTree,
        max_spec_factor: float = MAX_SPEC_FACTOR,
        min_token_prob: float = MIN_TOKEN_PROB,
        files: PeerTree | None = None,
    ) -> None:
        self._tree = tree
        self._factor = max_spec_factor
        self._min_prob = min_token_prob
        self._files = files
        self._text = NO_TOKENS

    def begin(self, context: Context) -> None:
        self._text = np.ascontiguousarray(context.prompt, np.int32)
        self._tree.extend_ndarray(0, self._text)

    def propose(self, state: PassState, n_max: int) -> Draft:
        recent = np.concatenate([self._text, state.emitted])[-MAX_DEPTH:].astype(np.int32)
        found = [
            tree.speculate_ndarray(recent, n_max, self._factor, 0.0, self._min_prob, False)
            for tree in (self._tree, self._files)
            if tree is not None
        ]
        tokens = max(found, key=lambda draft: draft.score).token_ids
        return Draft.chain(tokens, Source.OTHER) if len(tokens) else NO_DRAFT

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        new = np.array(verdict.emitted, np.int32)
        self._tree.extend_ndarray(0, new)
