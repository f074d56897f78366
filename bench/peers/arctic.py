"""ArcticInference's suffix trie as a drafter of ours, with the rule it ships."""

from __future__ import annotations

import numpy as np

from codespec.types import NO_DRAFT, NO_TOKENS, Context, Draft, Source, Tokens, Verdict

from ..peer import MAX_DEPTH, PeerTree

# Its own defaults: as many tokens as the match is long, each likelier than a tenth.
MAX_SPEC_FACTOR = 1.0
MIN_TOKEN_PROB = 0.1


class ArcticDrafter:
    """`Drafter` over the prompt and what follows it, as their decoder uses the trie."""

    name = "arctic"

    def __init__(self, tree: PeerTree) -> None:
        self._tree = tree
        self._text = NO_TOKENS

    def begin(self, context: Context) -> None:
        self._text = np.ascontiguousarray(context.prompt, np.int32)
        self._tree.extend_ndarray(0, self._text)

    def propose(self, emitted: Tokens, n_max: int) -> Draft:
        recent = np.concatenate([self._text, emitted])[-MAX_DEPTH:].astype(np.int32)
        found = self._tree.speculate_ndarray(
            recent, n_max, MAX_SPEC_FACTOR, 0.0, MIN_TOKEN_PROB, False
        )
        tokens = found.token_ids
        return Draft.chain(tokens, Source.OTHER) if len(tokens) else NO_DRAFT

    def observe(self, emitted: Tokens, draft: Draft, verdict: Verdict) -> None:
        new = np.array(verdict.emitted, np.int32)
        self._tree.extend_ndarray(0, new)
