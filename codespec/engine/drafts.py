"""Which draft model serves a workspace: the one distilled for it, or the target's pair."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.backends.llama import LlamaTarget, LoadedModel, load_model
from codespec.drafters.mapped import MappedModel, shared_ids
from codespec.drafters.model import check_pair
from codespec.errors import CodespecError, ModelError
from codespec.models import drafts
from codespec.types import Drafter, TargetModel

log = logging.getLogger(__name__)


class WorkspaceDrafts:
    """Distilled drafts of one target, loaded when their workspace is first asked about. A draft
    distilled meanwhile is used from the next request on.

    make: loads a draft model's file as a drafter.
    """

    def __init__(self, target: Path, make: Callable[[Path], Drafter]) -> None:
        self._fingerprint = drafts.fingerprint(target)
        self._make = make
        self._folders: dict[str, Path] = {}
        self._loaded: dict[Path, Drafter | None] = {}

    def get(self, workspace: str) -> Drafter | None:
        """None where there is none, or it cannot be used: what is only faster must not fail."""
        if not workspace:
            return None
        if workspace not in self._folders:
            self._folders[workspace] = drafts.folder(self._fingerprint, workspace)
        path = drafts.find(self._folders[workspace])
        if path is None:
            return None
        if path not in self._loaded:
            try:
                self._loaded[path] = self._make(path)
            except CodespecError as e:
                log.warning("a distilled draft model cannot be used: %s", e.message)
                self._loaded[path] = None
        return self._loaded[path]


def as_draft(model: LoadedModel, context: LlamaTarget, target: LoadedModel) -> TargetModel:
    """A loaded draft model in the ids of the target, which its vocabulary equals or is a part of.

    Raises: ModelError unless it can draft for the target.
    """
    ids = _mapping(model, target)
    return context if ids is None else MappedModel(context, ids, target.info)


def check_draft(target: Path, draft: Path) -> None:
    """Raises: ModelError unless one file can draft for the other. Cost: both vocabularies."""
    loaded = [load_model(path, vocab_only=True) for path in (target, draft)]
    try:
        _mapping(loaded[1], loaded[0])
    finally:
        for model in loaded:
            model.close()


def _mapping(model: LoadedModel, target: LoadedModel) -> npt.NDArray[np.int32] | None:
    """The target's ids of a reduced vocabulary; None where both vocabularies are one.

    Raises: ModelError where they are neither.
    """
    made_for = model.metadata(drafts.DRAFT_FOR_KEY)
    if made_for != target.info.tokenizer_hash or made_for == model.info.tokenizer_hash:
        check_pair(target.info, model.info)
        return None
    texts = model.token_texts()
    ids = shared_ids(target.token_texts(), texts) if texts[-1] == drafts.UNKNOWN else None
    if ids is None:
        raise ModelError(
            f"{model.path}: its vocabulary is no part of that of {target.info.name}",
            "Distil it again: codespec distill.",
        )
    return ids
