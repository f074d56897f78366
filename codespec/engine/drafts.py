"""Which draft model serves a workspace, and how it speaks the target's tokens."""

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
from codespec.drafters.base import Drafter
from codespec.drafters.cost import CostCurve
from codespec.drafters.mapped import MappedModel, shared_ids
from codespec.drafters.small import OnPass, SharedVocabulary, SmallModel
from codespec.drafters.translated import Translated
from codespec.engine.pace import Pace
from codespec.errors import CodespecError, ModelError
from codespec.files import FileState, state_of
from codespec.models import drafts
from codespec.models.registry import TIMES_DEARER
from codespec.types import ModelInfo, Tokenizer

log = logging.getLogger(__name__)


Unload = Callable[[], None]

_Found = tuple[Path, FileState]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """drafter: None where the file cannot be used."""

    file: _Found
    drafter: Drafter | None
    unload: Unload = lambda: None


class WorkspaceDrafts:
    """Distilled drafts of one target, loaded when their workspace is first asked about. A draft
    distilled meanwhile is used from the next request on; the one before is unloaded as soon as no
    request uses it.

    load: loads a draft model's file as a drafter, and says how to unload it.
    """

    def __init__(self, target: Path, load: Callable[[Path], tuple[Drafter, Unload]]) -> None:
        self._fingerprint = drafts.fingerprint(target)
        self._load = load
        self._folders: dict[str, Path] = {}
        self._loaded: dict[Path, _Loaded] = {}  # by folder
        self._replaced: list[tuple[weakref.ref[Drafter], Unload]] = []

    def get(self, workspace: str) -> Drafter | None:
        """None where there is none, or it cannot be used: what is only faster must not fail."""
        if not workspace:
            return None
        if workspace not in self._folders:
            self._folders[workspace] = drafts.folder(self._fingerprint, workspace)
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
        """Requests hold the drafters that they use, also while they are left off."""
        in_use: list[tuple[weakref.ref[Drafter], Unload]] = []
        for drafter, unload in self._replaced:
            if drafter() is None:
                unload()
            else:
                in_use.append((drafter, unload))
        self._replaced = in_use


def dearest(target: CostCurve, curves: Sequence[CostCurve]) -> int:
    """Which of several draft models to ask, each better than the one before and dearer, by what
    passes cost."""
    most_ms = _single_ms(target) / TIMES_DEARER
    return max((i for i, curve in enumerate(curves) if _single_ms(curve) <= most_ms), default=0)


def _single_ms(curve: CostCurve) -> float:
    """A pass over one token, whatever load there was when it was last made: models are not at work
    at the same time. Of a guess, its scale is all that passes tell."""
    return curve.pass_ms(1) if curve.is_prior else curve.quiet_ms(1)


class Choice:
    """Of draft models that serve any workspace, in the order of `draft_paths`, the one to ask: a
    guess until all costs are measured, then for good, as another one would have to read each
    prompt anew.

    target, small: with what passes cost.
    """

    def __init__(self, target: Pace, small: Sequence[tuple[Drafter, Pace]]) -> None:
        self._target, self._small = target, small
        self._chosen: Drafter | None = None

    def get(self) -> Drafter | None:
        """None where there is none."""
        if self._chosen is not None or not self._small:
            return self._chosen
        paces = [pace for _, pace in self._small]
        found, _ = self._small[dearest(self._target.curve, [pace.curve for pace in paces])]
        if all(pace.is_measured for pace in (self._target, *paces)):
            self._chosen = found
        return found


def _found(folder: Path) -> _Found | None:
    path = drafts.find(folder)
    if path is None:
        return None
    state = state_of(path)
    return None if state is None else (path, state)  # None: gone since


def as_draft(
    model: Model,
    context: Target,
    target: Model,
    tokenizer: Tokenizer,
    on_pass: OnPass,
) -> SmallModel:
    """A loaded draft model in the tokens of the target, which `tokenizer` makes: its vocabulary
    equals the target's, is a part of it, or is another one.

    Raises: ModelError where it was made for another target.
    """
    ids = _mapping(model, target)
    if ids is not None:
        return SharedVocabulary(MappedModel(context, ids, target.info), on_pass)
    if shares_tokens(model.info, target.info):
        return SharedVocabulary(context, on_pass)
    return Translated(context, model.tokenizer, tokenizer, on_pass)


def shares_tokens(draft: ModelInfo, target: ModelInfo) -> bool:
    """Whether the same text has the same ids, and there are no others."""
    same = draft.tokenizer_hash == target.tokenizer_hash
    return same and draft.n_vocab == target.n_vocab


def check_draft(target: str | Path, draft: str | Path) -> bool:
    """Whether it drafts by ids, not by text. Raises: ModelError unless one file can draft for the
    other. Cost: both vocabularies."""
    loaded = [open_vocabulary(path) for path in (target, draft)]
    try:
        is_part = _mapping(loaded[1], loaded[0]) is not None
        return is_part or shares_tokens(loaded[1].info, loaded[0].info)
    finally:
        for model in loaded:
            model.close()


def _mapping(model: Model, target: Model) -> npt.NDArray[np.int32] | None:
    """The target's ids of the tokens of a draft model, but the last, where it lacks some of the
    target's: its vocabulary is a reduced one, or that of a family whose larger models have more, as
    padding. None where it is whole, or another one.

    Raises: ModelError where it is a reduced part of another one.
    """
    made_for = model.metadata(drafts.DRAFT_FOR_KEY)
    if not made_for or made_for == model.info.tokenizer_hash:
        first = range(model.info.n_vocab - 1)
        are_first = model.info.n_vocab < target.info.n_vocab and all(
            model.token_text(t) == target.token_text(t) for t in first
        )
        return np.array(first, np.int32) if are_first else None
    texts = model.token_texts()
    is_part = made_for == target.info.tokenizer_hash and texts[-1] == drafts.UNKNOWN
    ids = shared_ids(target.token_texts(), texts) if is_part else None
    if ids is None:
        raise ModelError(
            f"{model.info.path}: its vocabulary is no part of that of {target.info.name}",
            "It was distilled for another target; distil it again: codespec distill.",
        )
    return ids
