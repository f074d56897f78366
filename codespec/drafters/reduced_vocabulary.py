"""A draft model whose vocabulary is a subset of the target's, as a model of the whole vocabulary.

Ids are mapped by the tokens' texts. The draft model reads tokens that it lacks as its unknown token
and never proposes them. FR-Spec (Zhao et al. 2025) limits drafts to a part of the vocabulary, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from codespec.backends.base import Capabilities, Target
from codespec.types import Draft, Logits, LogitsRows, ModelInfo, Tokens


class ReducedVocabularyRows:
    """`LogitsRows` over the target's vocabulary. ids: (n,) target id of each draft id but the
    last."""

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


class ReducedVocabularyModel(Target):
    """`Target` over a draft model of a reduced vocabulary, whose last token is the unknown one.

    ids: (n_vocab of the draft model - 1,) target id of each of its tokens, no two equal.

    Raises: ValueError for another number of ids.
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

    def decode(self, tokens: Tokens, draft: Draft) -> ReducedVocabularyRows:
        own = Draft(self._own[draft.tokens], draft.parents, draft.probs, draft.sources)
        rows = self._model.decode(self._own[tokens], own)
        return ReducedVocabularyRows(rows, self._ids, self.info.n_vocab)

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
    """(len(draft) - 1,) target id of each draft token but the last; None where the target lacks
    one.

    target, draft: text of every token of either vocabulary, by id.
    """
    at = {text: i for i, text in enumerate(target)}
    ids = [at.get(text, -1) for text in draft[:-1]]
    return None if -1 in ids else np.array(ids, np.int32)
