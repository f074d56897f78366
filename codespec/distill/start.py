"""The model that a distillation begins with: the bundled draft model, in the target's tokens.

Where these are others, only the embedding is new: a token's is the mean of those of its pieces,
which for most tokens of code is one that the bundled model has itself. So it knows code before the
first lesson, which a new model would have to learn from a few hundred thousand tokens.

Source: Gee et al. 2022, Fast vocabulary transfer for language model compression.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.backends.registry import open_vocabulary
from codespec.distill.vocabulary import DraftVocabulary
from codespec.training import export
from codespec.training.network import Llama
from codespec.types import FileMarkers, ModelInfo, Tokenizer


class Start:
    """A model to begin with, and what it knows of a target's tokens.

    path: a file of the kind that `training.export` writes. tokenizer: the target's.

    Raises: ModelError.
    """

    def __init__(self, path: Path, target: ModelInfo, tokenizer: Tokenizer) -> None:
        self._model = export.read_gguf(path)[0].train()
        loaded = open_vocabulary(path)
        own, info = loaded.tokenizer, loaded.info
        shares = info.tokenizer_hash == target.tokenizer_hash
        self._pieces = (
            [[t] for t in range(target.n_vocab)]
            if shares
            else _pieces(_same_markers(info, target), own, tokenizer)
        )
        loaded.close()
        self.is_known: npt.NDArray[np.bool_] = np.array([len(p) == 1 for p in self._pieces])
        """(n_vocab of the target,) which of its tokens are tokens of the model's own, too."""

    def model(self, vocabulary: DraftVocabulary) -> Llama:
        """With the tokens of this vocabulary; of the unknown one it knows nothing."""
        old = self._model.embedding.weight.detach()
        chosen = range(vocabulary.n_target) if vocabulary.ids is None else vocabulary.ids.tolist()
        rows = old.mean(0).repeat(vocabulary.n_draft, 1)
        for row, token in zip(rows, chosen, strict=False):
            if pieces := self._pieces[token]:
                row[:] = old[pieces].mean(0)
        made = Llama(dataclasses.replace(self._model.config, n_vocab=vocabulary.n_draft))
        made.load_state_dict(self._model.state_dict() | {"embedding.weight": rows})
        return made


def _pieces(markers: dict[int, int], own: Tokenizer, tokenizer: Tokenizer) -> list[list[int]]:
    """The model's own tokens with the text of each of a target's tokens; [] where none have it.

    markers: own tokens of those without a text.
    """
    pieces = ((own.piece(token), token) for token in reversed(range(own.n_vocab)))
    same = {piece: token for piece, token in pieces if piece}
    made: list[list[int]] = []
    for token in range(tokenizer.n_vocab):
        piece = tokenizer.piece(token)
        if token in markers:
            made.append([markers[token]])
        elif piece in same:
            made.append([same[piece]])
        else:
            # Half of a character is no text.
            made.append(own.encode(piece).tolist() if _is_text(piece) else [])
    return made


def _same_markers(own: ModelInfo, target: ModelInfo) -> dict[int, int]:
    """The model's own marker for each of a target's."""
    end = min(own.eog)
    same = dict.fromkeys(target.eog, end)
    if target.bos is not None:
        same[target.bos] = end
    if own.fim is not None and target.fim is not None:
        for name in ("prefix", "suffix", "middle"):
            same[getattr(target.fim, name)] = getattr(own.fim, name)
        for name in ("repository", "file"):
            theirs, ours = (fim.files or FileMarkers() for fim in (target.fim, own.fim))
            same[getattr(theirs, name)] = getattr(ours, name)
    same.pop(-1, None)
    return same


def _is_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return bool(piece)
