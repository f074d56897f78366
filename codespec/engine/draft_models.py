"""The draft model of a workspace, and its vocabulary beside the target's."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.backends.base import Model, Target
from codespec.backends.registry import open_vocabulary
from codespec.cost.cost_curve import CostCurve
from codespec.cost.tuner import Tuner
from codespec.drafters.base import Drafter
from codespec.drafters.draft_model import DraftModel, OnPass, SameVocabularyModel
from codespec.drafters.heterogeneous import HeterogeneousModel
from codespec.drafters.reduced_vocabulary import ReducedVocabularyModel, shared_ids
from codespec.errors import CodespecError, ModelError
from codespec.models import distilled
from codespec.models.resolve import TIMES_DEARER
from codespec.system.files import FileState, state_of
from codespec.types import ModelInfo, Tokenizer

log = logging.getLogger(__name__)


Unload = Callable[[], None]

_Found = tuple[Path, FileState]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A draft model's file after loading. drafter: None where the file cannot be used."""

    file: _Found
    drafter: Drafter | None
    unload: Unload = lambda: None


class WorkspaceDrafts:
    """Draft models distilled for one target, loaded when their workspace is first asked about. One
    distilled meanwhile is used from the next request on; the one before is unloaded as soon as no
    request uses it.

    load: loads a draft model's file as a drafter. Returns that and a function to unload it.
    """

    def __init__(self, target: Path, load: Callable[[Path], tuple[Drafter, Unload]]) -> None:
        self._fingerprint = distilled.fingerprint(target)
        self._load = load
        self._folders: dict[str, Path] = {}
        self._loaded: dict[Path, _Loaded] = {}  # by folder
        self._replaced: list[tuple[weakref.ref[Drafter], Unload]] = []

    def get(self, workspace: str) -> Drafter | None:
        """The drafter of a workspace; None where there is none, or where its file cannot be used: a
        faulty draft model must not fail a request."""
        if not workspace:
            return None
        if workspace not in self._folders:
            self._folders[workspace] = distilled.draft_folder(self._fingerprint, workspace)
        folder = self._folders[workspace]
        file = _found(folder)
        if folder in self._loaded and self._loaded[folder].file != file:
            self._replace(folder)
        self._unload_unused()
        if file is None:
            return None
        if folder not in self._loaded:
            self._loaded[folder] = self._try(file)
        return self._loaded[folder].drafter

    def _try(self, file: _Found) -> _Loaded:
        try:
            return _Loaded(file, *self._load(file[0]))
        except CodespecError as e:
            log.warning("a distilled draft model cannot be used: %s", e.message)
            return _Loaded(file, None)

    def _replace(self, folder: Path) -> None:
        gone = self._loaded.pop(folder)
        if gone.drafter is not None:
            self._replaced.append((weakref.ref(gone.drafter), gone.unload))

    def _unload_unused(self) -> None:
        """Unload replaced drafters that no request holds any more; a request that is paused holds
        its own."""
        in_use: list[tuple[weakref.ref[Drafter], Unload]] = []
        for drafter, unload in self._replaced:
            if drafter() is None:
                unload()
            else:
                in_use.append((drafter, unload))
        self._replaced = in_use


def dearest(target: CostCurve, curves: Sequence[CostCurve]) -> int:
    """Index of the draft model to use, of several in the order of their quality and cost, by the
    cost of their passes."""
    most_ms = _single_ms(target) / TIMES_DEARER
    return max((i for i, curve in enumerate(curves) if _single_ms(curve) <= most_ms), default=0)


def _single_ms(curve: CostCurve) -> float:
    """Milliseconds of a pass over one token without the load that other programs caused at the
    time: models do not run at the same time. A prior knows the scale of passes alone."""
    return curve.pass_ms(1) if curve.is_prior else curve.quiet_ms(1)


class Choice:
    """Chooses among draft models that serve any workspace, in the order of `draft_paths`: by priors
    until all costs are measured, then once and for all, as another draft model would have to read
    each prompt anew.

    target, small: with the cost of their passes.
    """

    def __init__(self, target: Tuner, small: Sequence[tuple[Drafter, Tuner]]) -> None:
        self._target, self._small = target, small
        self._chosen: Drafter | None = None

    def get(self) -> Drafter | None:
        """The chosen draft model; None without any."""
        if self._chosen is not None or not self._small:
            return self._chosen
        tuners = [tuner for _, tuner in self._small]
        found, _ = self._small[dearest(self._target.curve, [tuner.curve for tuner in tuners])]
        if all(tuner.is_measured for tuner in (self._target, *tuners)):
            self._chosen = found
        return found


def _found(folder: Path) -> _Found | None:
    path = distilled.find(folder)
    if path is None:
        return None
    state = state_of(path)
    return None if state is None else (path, state)  # None: the file is gone since


def as_draft(
    model: Model,
    context: Target,
    target: Model,
    tokenizer: Tokenizer,
    on_pass: OnPass,
) -> DraftModel:
    """Adapt a loaded draft model to the target's tokens, which `tokenizer` makes: its vocabulary
    equals the target's, is a part of it, or is another one (heterogeneous).

    Raises: ModelError where it was made for another target.
    """
    ids = _mapping(model, target)
    if ids is not None:
        return SameVocabularyModel(ReducedVocabularyModel(context, ids, target.info), on_pass)
    if shares_tokens(model.info, target.info):
        return SameVocabularyModel(context, on_pass)
    return HeterogeneousModel(context, model.tokenizer, tokenizer, on_pass)


def shares_tokens(draft: ModelInfo, target: ModelInfo) -> bool:
    """True if both have the same vocabulary: the same text has the same ids, and there are no
    others."""
    same = draft.tokenizer_hash == target.tokenizer_hash
    return same and draft.n_vocab == target.n_vocab


def check_draft(target: str | Path, draft: str | Path) -> bool:
    """True if the draft model drafts by ids, False if by text. Raises: ModelError unless one file
    can draft for the other. Cost: loads both vocabularies."""
    loaded = [open_vocabulary(path) for path in (target, draft)]
    try:
        is_part = _mapping(loaded[1], loaded[0]) is not None
        return is_part or shares_tokens(loaded[1].info, loaded[0].info)
    finally:
        for model in loaded:
            model.close()


def _mapping(model: Model, target: Model) -> npt.NDArray[np.int32] | None:
    """The target's ids of a draft model's tokens, the last one left out, where its vocabulary lacks
    some of the target's: it is a reduced one, or that of a family whose larger models have more
    tokens, as padding. None where it is complete, or another one.

    Raises: ModelError where it is a reduced part of another one.
    """
    made_for = model.metadata(distilled.DRAFT_FOR_KEY)
    if not made_for or made_for == model.info.tokenizer_hash:
        first = range(model.info.n_vocab - 1)
        are_first = model.info.n_vocab < target.info.n_vocab and all(
            model.token_text(t) == target.token_text(t) for t in first
        )
        return np.array(first, np.int32) if are_first else None
    texts = model.token_texts()
    is_part = made_for == target.info.tokenizer_hash and texts[-1] == distilled.UNKNOWN
    ids = shared_ids(target.token_texts(), texts) if is_part else None
    if ids is None:
        raise ModelError(
            f"{model.info.path}: its vocabulary is no part of that of {target.info.name}",
            "It was distilled for another target; distil it again: codespec distill.",
        )
    return ids
