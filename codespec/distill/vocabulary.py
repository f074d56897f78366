"""A draft model's vocabulary: the target's, or the part of it that a workspace needs.

Half of a small model is its embedding: with the 152,000 tokens of a large target, a draft model of
width 96 would be 15 M parameters of embedding around 0.2 M of model, and each of its passes a
product with all of them. What a workspace is written in is a few thousand tokens. The rest become
one: unknown, read but never drafted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from codespec.errors import ModelError
from codespec.models.distilled import DRAFT_FOR_KEY, UNKNOWN
from codespec.types import ModelInfo

N_WHOLE = 16_384  # vocabularies up to this size stay whole
N_REDUCED = 8_192
_UNSEEN = 1e-9


@dataclass(frozen=True, slots=True)
class DraftVocabulary:
    """ids: (n,) int32, the target's id of each token of the draft model but the unknown one, which
    is the last; None where both vocabularies are one.
    """

    n_target: int
    ids: npt.NDArray[np.int32] | None = None

    @property
    def n_draft(self) -> int:
        return self.n_target if self.ids is None else len(self.ids) + 1

    def to_draft(
        self, tokens: npt.NDArray[np.int32], unknown: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Draft ids of target ids of any shape; -1 stays -1. unknown: what tokens outside become,
        the unknown token if None.
        """
        if self.ids is None:
            return tokens.astype(np.int64)
        table = np.full(self.n_target + 1, len(self.ids) if unknown is None else unknown)
        table[self.ids] = np.arange(len(self.ids))
        table[-1] = -1
        return table[tokens]


def choose(
    info: ModelInfo, counts: npt.NDArray[np.float64], is_known: npt.NDArray[np.bool_]
) -> DraftVocabulary:
    """The likeliest tokens by counts (n_vocab,), and those every prompt or end is made of. Where
    there is room, also those that were not seen, but are known (n_vocab,) to the model that it
    begins with: tokenizers number what is common first.
    """
    if info.n_vocab <= N_WHOLE:
        return DraftVocabulary(info.n_vocab)
    always = set(info.eog) | ({info.bos} if info.bos is not None else set[int]())
    if info.fim:
        always |= set(info.fim.markers)
    counts = np.where(is_known & (counts == 0), _UNSEEN, counts)
    counts[list(always)] = np.inf
    best = np.argsort(-counts, kind="stable")[: N_REDUCED - 1]
    return DraftVocabulary(info.n_vocab, np.sort(best[counts[best] > 0]).astype(np.int32))


def add_to(
    writer: gguf.GGUFWriter,
    vocabulary: DraftVocabulary,
    target: Path,
    token_texts: list[str],
    target_info: ModelInfo,
) -> None:
    """Writes the draft model's tokenizer: a copy of the target's, or the texts of its part.

    Raises: ModelError if the target's cannot be read.
    """
    writer.add_string(DRAFT_FOR_KEY, target_info.tokenizer_hash)
    if vocabulary.ids is None:
        for field in _fields(target):
            kind, sub = field.types[0], field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), kind, sub)
        return
    texts = [*(token_texts[t] for t in vocabulary.ids.tolist()), UNKNOWN]
    # Never asked to tokenise anything: the engine maps ids by these texts.
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(texts)
    types = [gguf.TokenType.NORMAL] * (len(texts) - 1) + [gguf.TokenType.UNUSED]
    writer.add_token_types(types)
    writer.add_token_merges([f"{texts[0]} {texts[1]}"])
    end = int(np.searchsorted(vocabulary.ids, min(target_info.eog))) if target_info.eog else 0
    writer.add_eos_token_id(end)
    writer.add_add_bos_token(False)


def _fields(path: Path) -> Iterable[gguf.ReaderField]:
    try:
        fields = gguf.GGUFReader(path).fields
    except (OSError, ValueError, IndexError) as error:
        raise ModelError(f"{path}: not a readable GGUF file ({error})") from error
    return [field for name, field in fields.items() if name.startswith("tokenizer.")]
