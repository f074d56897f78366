"""The cost of leaving out a part of drafting, where passes cost what a curve says.

Each edit of a history is written once by every way: the product, and the product with one part or
several left out. Loop, drafters and draft models are the product's; the target says a known
text, which people wrote or which a model said greedily when it was asked before. A way learns from
its own drafts alone, and knows what the session holds: lines that were replaced, and what was
written earlier in the same commit. Passes of draft models cost what they were measured to cost, and
their planners are told the same time, so that figures do not depend on how busy the machine is.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codespec.backends.base import Target
from codespec.backends.registry import open_model, targets_of
from codespec.config import ModelSettings, Settings
from codespec.cost.cost_curve import CostCurve
from codespec.cost.measure import CurveStore, measure
from codespec.documents.live import LiveDocument
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.heterogeneous import HeterogeneousModel
from codespec.drafters.lookup import LookupDrafter
from codespec.drafters.model_drafter import ModelDrafter
from codespec.drafters.planners import Planners, prior
from codespec.drafters.token_kinds import token_kinds
from codespec.engine.completer import Completer
from codespec.engine.draft_models import dearest
from codespec.engine.loaded_models import curve_key
from codespec.engine.local import LocalEngine
from codespec.engine.output import OutputLimits
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.system import folders
from codespec.types import Context, SamplingParams, Tokenizer, Tokens, Trace
from codespec.verify.sampling import Sampler

from ..history import Hunk
from ..replay import MAX_LEAVES, MAX_TOKENS, Replay, ReplaySession, TextTarget, cost_of
from ..replay_draft import N_CTX
from ..replay_trees import Tree
from ..writers import ModelWriter, TextWriter, key_of
from .mechanisms import AlwaysGoingBack, Mechanisms, NeverSure

N_THREADS = 1


@dataclass(frozen=True, slots=True)
class DraftFile:
    """A draft model, its own tokenizer and what its passes cost."""

    context: Target
    tokenizer: Tokenizer
    curve: CostCurve


@contextmanager
def draft_files() -> Generator[list[DraftFile], None, None]:
    """The bundled models that draft, the cheaper one first. Raises: ModelError."""
    with ExitStack() as stack:
        found: list[DraftFile] = []
        for name in (BUNDLED_DRAFT, BUNDLED_TARGET):
            model = stack.enter_context(closing(open_model(bundled(name))))
            context = model.context(n_ctx=N_CTX, n_threads=N_THREADS)
            stack.enter_context(closing(context))
            found.append(DraftFile(context, model.tokenizer, _measured(context)))
        yield found


def _measured(context: Target) -> CostCurve:
    """Cost of its passes, measured once: as an engine keeps it."""
    store = CurveStore(folders.cache_path() / "curves.json")
    build = targets_of(context.info.path).build()
    key = f"{curve_key(context.info, ModelSettings(), build)}:{N_THREADS}"
    curve = store.load(key)
    if curve is None:
        curve = measure(context)
        store.save(key, curve)
    return curve


@dataclass(frozen=True, slots=True)
class SimulatedTarget:
    """n_params: of what the curve was measured on. writer: says its text. is_own: True where the
    dearer draft model is the target itself."""

    name: str
    curve: CostCurve
    tokenizer: Tokenizer
    n_params: int
    writer: TextWriter
    is_own: bool = False

    def drafts(self, files: Sequence[DraftFile]) -> Sequence[DraftFile]:
        """Draft models that may serve it, the one that the product asks last."""
        usable = files[:1] if self.is_own else files
        return usable[: 1 + dearest(self.curve, [file.curve for file in usable])]

    def cannot(self, mechanism: str, files: Sequence[DraftFile]) -> str:
        """Why leaving out a mechanism makes no difference here, or none that is seen; "" if it
        may."""
        drafts = self.drafts(files)
        if mechanism == "filling" and not self.curve.steady:
            return "passes are filled up on GPUs alone"
        if mechanism == "way_back" and not self.curve.back_ms:
            return "the curve has no way back"
        if mechanism == "dearer_draft" and len(drafts) == 1:
            return "the cheaper draft model is asked in any case"
        return _NOT_SEEN.get(mechanism, "")


_CLOCK = "needs a clock"
_NOT_SEEN = {
    "refinement": _CLOCK,
    "stretches": _CLOCK,
}


def copied(curve: CostCurve) -> CostCurve:
    """The same costs, with nothing learned from passes."""
    return CostCurve(
        curve.points,
        curve.back_ms,
        steady=curve.steady,
        rolls_back=curve.rolls_back,
    )


class Way:
    """Drafting without some parts, beside one target; cost_ms: of all that it has written."""

    def __init__(
        self, target: SimulatedTarget, mechanisms: Mechanisms, files: Sequence[DraftFile]
    ) -> None:
        self._target, self._mechanisms = target, mechanisms
        self._curve = copied(target.curve)
        kinds, start = token_kinds(target.tokenizer), prior(target.n_params)
        self._planners = Planners(kinds, start=start)
        self.cost_ms = 0.0
        self._spent_ms = 0.0
        file = target.drafts(files)[-1 if mechanisms.dearer_draft else 0]
        self._draft_curve = copied(file.curve)
        speaking = HeterogeneousModel(file.context, file.tokenizer, target.tokenizer, self._passed)
        made = ModelDrafter if mechanisms.confidence else NeverSure
        self._model = made(speaking, self._curve, self._draft_curve, self._now)

    def write(
        self,
        context: Context,
        text: Tokens,
        tree: Tree,
        session: ReplaySession,
        document: LiveDocument,
    ) -> None:
        """`text` at a place; its cost is added."""
        max_leaves = MAX_LEAVES if self._mechanisms.trees else 1
        lookup = LookupDrafter(
            lambda path: document,
            self._planners.of,
            lambda workspace: tree,
            lambda context: session.neighbours,
            boundary=self._target.writer.boundary,
            curve=self._curve,
            max_leaves=max_leaves,
        )
        self._model.read_ahead(context, lambda: False)
        n_vocab = self._target.tokenizer.n_vocab
        drafter = (CombinedDrafter if self._mechanisms.way_back else AlwaysGoingBack)(
            (lookup, self._model),
            n_vocab,
            max_leaves,
            self._curve,
            pads=self._mechanisms.filling,
            policy=GuardPolicy.RAISE,
        )
        target = TextTarget(n_vocab, 64)
        target.truth = text
        self._spent_ms = 0.0
        n_most = len(text) if self._target.writer.tells_end else MAX_TOKENS
        trace = Trace()
        emitted, _ = Completer(target, drafter).run(
            context,
            Sampler(SamplingParams()),
            OutputLimits(n_most),
            lambda emitted: len(emitted) == len(text),
            trace=trace,
        )
        assert emitted == text.tolist(), "verification emitted something else"
        self.cost_ms += cost_of(trace.pass_width, self._target.curve) + self._spent_ms

    def _passed(self, n_tokens: int, _ms: float) -> None:
        self._spent_ms += float(self._draft_curve.ms(np.array([n_tokens]))[0])

    def _now(self) -> float:
        return self._spent_ms / 1e3


class Ablation(Replay):
    """Writes the last commits of a history in several ways, by name."""

    def __init__(
        self,
        root: Path,
        target: SimulatedTarget,
        ways: Mapping[str, Mechanisms],
        files: Sequence[DraftFile],
        glob: str = "*.py",
    ) -> None:
        super().__init__(root, target.tokenizer, target.curve, glob, writer=target.writer)
        self.ways = {name: Way(target, chosen, files) for name, chosen in ways.items()}

    def _replay(self, context: Context, truth: Tokens, tree: Tree) -> None:
        for way in self.ways.values():
            way.write(context, truth, tree, self._session, self._document)


class AskedModel:
    """`TextWriter` that asks a real model for its greedy text, once for each place.

    Raises: ModelError.
    """

    tells_end = False

    def __init__(self, settings: Settings) -> None:
        self._engine = LocalEngine(settings, repository=lambda workspace: None)
        # However busy the machine is while it is asked.
        self._engine.passes.models.tuners.freeze()
        self._engine.settle()
        self._engine.remembers = False
        self._model = ModelWriter(self._engine)
        self.boundary = self._model.boundary
        self._known: dict[str, tuple[Context, Tokens]] = {}

    def target(self, name: str, *, is_own: bool) -> SimulatedTarget:
        """It, as measured on this machine."""
        engine = self._engine
        curve, n_params = copied(engine.curve), engine.info.n_params
        return SimulatedTarget(name, curve, engine.tokenizer, n_params, self, is_own)

    def write(self, hunk: Hunk, document: LiveDocument) -> tuple[Context, Tokens]:
        key = key_of(hunk)
        if key not in self._known:
            self._known[key] = self._model.write(hunk, document)
        return self._known[key]

    def close(self) -> None:
        self._engine.close()
