"""A draft model whose vocabulary is a part of the target's, seen as one of the whole vocabulary.

Ids are mapped by the tokens' texts. What the draft model does not know, it reads as its unknown
token and never proposes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from codespec.backends.base import Capabilities, Target
from codespec.types import Draft, Logits, LogitsRows, ModelInfo, Tokens


class MappedRows:
    """`LogitsRows` of the target's width. ids: (n,) target id of each known draft token."""

    def __init__(self, rows: LogitsRows, ids: npt.NDArray[np.int32], n_vocab: int) -> None:
        self._rows = rows
        self._ids = ids
        self._n_vocab = n_vocab

    def row(self, i: int) -> Logits:
        whole = np.full(self._n_vocab, -np.inf, np.float32)
        whole[self._ids] = self._rows.row(i)[: len(self._ids)]
        return whole

    def argmax(self, i: int) -> int:
        return int(self._ids[self._rows.row(i)[: len(self._ids)].argmax()])


class MappedModel(Target):
    """`Target` over a draft model of a reduced vocabulary. Its last token is the unknown one.

    ids: (n_vocab of the draft model - 1,) target id of each of its tokens, no two equal.
    """

    def __init__(self, model: Target, ids: npt.NDArray[np.int32], target: ModelInfo) -> None:
        if len(ids) != model.info.n_vocab - 1:
            raise ValueError("ids must name every token of the draft model but the last")
        self._model = model
        self._ids = ids
        self._own = np.full(target.n_vocab, len(ids), np.int32)
        self._own[ids] = np.arange(len(ids), dtype=np.int32)
        self.info = _seen_as(model.info, target)
        self.can = Capabilities(model.can.max_draft, rolls_back=model.can.rolls_back)

    @property
    def n_cached(self) -> int:
        return self._model.n_cached

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        return self._model.prefill(self._own[tokens], cancelled)

    def decode(self, tokens: Tokens, draft: Draft) -> MappedRows:
        own = Draft(self._own[draft.tokens], draft.parents, draft.probs, draft.sources)
        rows = self._model.decode(self._own[tokens], own)
        return MappedRows(rows, self._ids, self.info.n_vocab)

    def keep(self, path: Sequence[int]) -> None:
        self._model.keep(path)


def _seen_as(own: ModelInfo, target: ModelInfo) -> ModelInfo:
    return replace(
        own,
        n_vocab=target.n_vocab,
        fim=target.fim,
        eog=target.eog,
        bos=target.bos,
        tokenizer_hash=target.tokenizer_hash,
    )


def shared_ids(target: list[str], draft: list[str]) -> npt.NDArray[np.int32] | None:
    """(len(draft) - 1,) target id of each token text of the draft but the last; None where one is
    missing.
    """
    at = {text: i for i, text in enumerate(target)}
    ids = [at.get(text, -1) for text in draft[:-1]]
    return None if -1 in ids else np.array(ids, np.int32)
