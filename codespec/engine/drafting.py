"""The drafters of an engine, and those that serve a request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from codespec.config import Settings
from codespec.cost.tuner import Tuner
from codespec.documents.open_documents import OpenDocuments
from codespec.drafters import registry
from codespec.drafters.base import Drafter
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.drafting_gate import DraftingGate
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.lookup import LookupDrafter, Repository
from codespec.drafters.model_drafter import ModelDrafter
from codespec.drafters.mtp_draft_model import MtpDraftModel
from codespec.drafters.planners import Planners, prior
from codespec.drafters.token_kinds import token_kinds
from codespec.engine.draft_models import Choice, Unload, WorkspaceDrafts, as_draft
from codespec.engine.loaded_models import Models, Running
from codespec.errors import ModelError
from codespec.models.resolve import draft_paths
from codespec.native import Boundary, Vocabulary
from codespec.system import folders
from codespec.types import Tokenizer


class Drafting:
    """The drafters for one target. One thread only.

    repository: gives the index of a workspace folder.
    policy:     what becomes of a drafter that fails.

    Raises: ModelError, ConfigError.
    """

    def __init__(
        self,
        settings: Settings,
        models: Models,
        target: Running,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        documents: OpenDocuments,
        repository: Callable[[str], Repository | None],
        policy: GuardPolicy = GuardPolicy.LEAVE_OUT,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._models = models
        self._target = target
        self._tokenizer = tokenizer
        info = target.context.info
        # Drafting pays in other measure where an old text is rewritten.
        self._gates = {
            rewrites: DraftingGate(target.tuner.curve) if settings.drafting.adaptive else None
            for rewrites in (False, True)
        }
        # An MTP head reads the hidden states of passes; a recurrent state cannot roll padding back.
        self._pads = target.own is None and target.context.can.rolls_back
        registry.check(settings.drafting.drafters)
        kinds = token_kinds(tokenizer)
        self._planners: list[Planners] = []

        def lookup(name: str) -> LookupDrafter:
            planners = Planners(
                kinds, name, folders.cache_path() / "acceptance", prior(info.n_params)
            )
            self._planners.append(planners)
            return LookupDrafter(
                documents.get,
                planners.of,
                repository,
                neighbours=documents.neighbours,
                overridden=lambda c: documents.overridden(c.path, c.workspace),
                boundary=lambda c: Boundary(c.left, c.healed, vocabulary, target.model.encoder),
                curve=target.tuner.curve,
                max_leaves=target.context.can.max_leaves,
            )

        # What is learned where an old text is rewritten moves no weight of completions.
        model = f"{info.name}:{info.file_bytes}"
        self._lookups = {False: lookup(model), True: lookup(f"{model}:rewriting")}
        small: list[tuple[ModelDrafter, Tuner]] = []
        if target.own is not None:
            speaking = MtpDraftModel(target.own.context, target.own.tuner.observe)
            curves = target.tuner.curve, target.own.tuner.curve
            own = ModelDrafter(speaking, *curves)
            small = [(own, target.own.tuner)]
        elif "model" in settings.drafting.drafters:
            for path in draft_paths(settings.model, info.file_bytes):
                drafter, running = self._draft_model(path)
                small.append((drafter, running.tuner))
        self._small = Choice(target.tuner, small)
        # Draft models are distilled for targets that are files.
        self._distilled = WorkspaceDrafts(Path(info.path), self._loaded) if info.path else None
        context = target.context
        self._facts = registry.TargetFacts(
            info, tokenizer, target.tuner.curve, context.can.max_leaves
        )
        self._added: dict[str, Drafter] = {}
        self.watchers: list[Drafter] = []
        """Drafters that see each request's context and verdicts; their drafts come last."""

    def drafter(
        self, workspace: str, names: tuple[str, ...] | None = None, *, rewrites: bool = False
    ) -> CombinedDrafter:
        """The named drafters for a request in a workspace; default: those of the settings.
        rewrites: True for a request with an old text.

        Raises: ConfigError.
        """
        names = self._settings.drafting.drafters if names is None else names
        registry.check(names)
        found = [self._drafter(name, workspace, rewrites) for name in names]
        members = [drafter for drafter in (*found, *self.watchers) if drafter is not None]
        context = self._target.context
        return CombinedDrafter(
            members,
            context.info.n_vocab,
            context.can.max_leaves,
            self._target.tuner.curve,
            self._gates[rewrites],
            self._pads,
            self._policy,
        )

    def save(self) -> None:
        """Save the acceptance statistics."""
        for planners in self._planners:
            planners.save()

    def _drafter(self, name: str, workspace: str, rewrites: bool) -> Drafter | None:
        is_auto = self._settings.model.draft == "auto"
        if name == "model" and self._distilled is not None and is_auto:
            distilled = self._distilled.get(workspace)
            if distilled is not None:
                return distilled
        if name in registry.BUILT_IN:
            return self._small.get() if name == "model" else self._lookups[rewrites]
        if name not in self._added:
            self._added[name] = registry.create(name, self._facts)
        return self._added[name]

    def _loaded(self, path: Path) -> tuple[ModelDrafter, Unload]:
        drafter, small = self._draft_model(path)
        return drafter, partial(self._models.unload, small)

    def _draft_model(self, path: Path) -> tuple[ModelDrafter, Running]:
        small = self._models.load(path)
        try:
            speaking = as_draft(
                small.model, small.context, self._target.model, self._tokenizer, small.tuner.observe
            )
        except ModelError:
            self._models.unload(small)
            raise
        curves = self._target.tuner.curve, small.tuner.curve
        return ModelDrafter(speaking, *curves), small
