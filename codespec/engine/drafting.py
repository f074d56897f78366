"""The drafters of an engine, and which of them serve a request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from codespec import folders
from codespec.config import Settings
from codespec.drafters import registry
from codespec.drafters.base import Drafter
from codespec.drafters.calibrate import Planners, prior
from codespec.drafters.chain import DraftChain
from codespec.drafters.guard import Policy
from codespec.drafters.kinds import token_kinds
from codespec.drafters.lookup import LookupDrafter, Repository
from codespec.drafters.model import ModelDrafter
from codespec.drafters.own_layer import OwnLayer
from codespec.drafters.worth import Worth
from codespec.engine.documents import OpenDocuments
from codespec.engine.drafts import Choice, Unload, WorkspaceDrafts, as_draft
from codespec.engine.models import Models, Running
from codespec.engine.pace import Pace
from codespec.errors import ModelError
from codespec.models.registry import draft_paths
from codespec.native import Boundary, Vocabulary
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
        policy: Policy = Policy.LEAVE_OUT,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._models = models
        self._target = target
        self._tokenizer = tokenizer
        info = target.context.info
        self._worth = Worth(target.pace.curve) if settings.drafting.adaptive else None
        # A layer of the target's own reads what passes leave, a state cannot be cut back.
        self._fills = target.own is None and target.context.can.rolls_back
        self._planners = Planners(
            token_kinds(tokenizer),
            f"{info.name}:{info.file_bytes}",
            folders.cache_path() / "acceptance",
            prior(info.n_params),
        )
        registry.check(settings.drafting.drafters)
        self._lookup = LookupDrafter(
            documents.get,
            self._planners.of,
            repository,
            neighbours=documents.neighbours,
            overridden=lambda c: documents.overridden(c.path, c.workspace),
            boundary=lambda c: Boundary(c.left, c.healed, vocabulary, target.model.encoder),
            curve=target.pace.curve,
            max_leaves=target.context.can.max_leaves,
        )
        small: list[tuple[ModelDrafter, Pace]] = []
        if target.own is not None:
            speaking = OwnLayer(target.own.context, target.own.pace.observe)
            curves = target.pace.curve, target.own.pace.curve
            own = ModelDrafter(speaking, *curves)
            small = [(own, target.own.pace)]
        elif "model" in settings.drafting.drafters:
            for path in draft_paths(settings.model, info.file_bytes):
                drafter, running = self._draft_model(path)
                small.append((drafter, running.pace))
        self._small = Choice(target.pace, small)
        # Drafts are distilled for files.
        self._distilled = WorkspaceDrafts(Path(info.path), self._loaded) if info.path else None
        context = target.context
        self._site = registry.Site(info, tokenizer, target.pace.curve, context.can.max_leaves)
        self._added: dict[str, Drafter] = {}
        self.watchers: list[Drafter] = []
        """See each request's context and verdicts; what they draft comes last."""

    def chain(self, workspace: str, names: tuple[str, ...] | None = None) -> DraftChain:
        """The named drafters for a request in a workspace; default: those of the settings.

        Raises: ConfigError.
        """
        names = self._settings.drafting.drafters if names is None else names
        registry.check(names)
        found = [self._drafter(name, workspace) for name in names]
        members = [drafter for drafter in (*found, *self.watchers) if drafter is not None]
        context = self._target.context
        return DraftChain(
            members,
            context.info.n_vocab,
            context.can.max_leaves,
            self._target.pace.curve,
            self._worth,
            self._fills,
            self._policy,
        )

    def save(self) -> None:
        """Keep what acceptance was learned."""
        self._planners.save()

    def _drafter(self, name: str, workspace: str) -> Drafter | None:
        is_auto = self._settings.model.draft == "auto"
        if name == "model" and self._distilled is not None and is_auto:
            distilled = self._distilled.get(workspace)
            if distilled is not None:
                return distilled
        if name in registry.BUILT_IN:
            return self._small.get() if name == "model" else self._lookup
        if name not in self._added:
            self._added[name] = registry.made(name, self._site)
        return self._added[name]

    def _loaded(self, path: Path) -> tuple[ModelDrafter, Unload]:
        drafter, small = self._draft_model(path)
        return drafter, partial(self._models.unload, small)

    def _draft_model(self, path: Path) -> tuple[ModelDrafter, Running]:
        small = self._models.load(path)
        try:
            speaking = as_draft(
                small.model, small.context, self._target.model, self._tokenizer, small.pace.observe
            )
        except ModelError:
            self._models.unload(small)
            raise
        curves = self._target.pace.curve, small.pace.curve
        return ModelDrafter(speaking, *curves), small
