"""An engine's model and its ways of decoding, for measurements beside requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codespec.backends.base import Target
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.base import Drafter
from codespec.drafters.combined import CombinedDrafter
from codespec.engine.decoder import Decoder
from codespec.engine.passes import TargetDecoder
from codespec.errors import ModelError
from codespec.models.figures import ModelFigures
from codespec.types import ModelInfo


class MeasurableEngine:
    """The parts of an engine that belong to its decoder."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.info: ModelInfo = decoder.info
        self.tokenizer = decoder.tokenizer

    @property
    def passes(self) -> TargetDecoder:
        """Target, drafters and decoding loop, for measurements while no request runs. Raises:
        ModelError for a model that decodes by itself."""
        if isinstance(self._decoder, TargetDecoder):
            return self._decoder
        raise ModelError(
            f"{self.info.name} writes text by itself, and has no passes to measure",
            "Give the file of a model instead.",
        )

    @property
    def watchers(self) -> list[Drafter]:
        """See `Drafting.watchers`."""
        return self.passes.drafting.watchers

    def drafter(self, workspace: str, names: tuple[str, ...] | None = None) -> CombinedDrafter:
        """See `Drafting.drafter`."""
        return self.passes.drafting.drafter(workspace, names)

    @property
    def curve(self) -> CostCurve:
        """Cost curve of the target, as measured so far."""
        return self.passes.tuner.curve

    @property
    def target(self) -> Target:
        """The target in use."""
        return self.passes.target

    @property
    def has_passes(self) -> bool:
        """False for a model that decodes by itself."""
        return isinstance(self._decoder, TargetDecoder)

    def watch(self, shown: Callable[[str], None], sent: Callable[[str], None]) -> None:
        """See `Decoder.watch`."""
        self._decoder.watch(shown, sent)

    @property
    def trouble(self) -> str:
        """See `Generator.trouble`."""
        return self._decoder.trouble

    @property
    def has_log_probs(self) -> bool:
        """True if the model gives the probabilities of its tokens."""
        return self._decoder.has_log_probs

    @property
    def figures(self) -> ModelFigures:
        """Figures of the model."""
        return self._decoder.figures

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """See `Model.special_tokens`."""
        return self._decoder.special_tokens

    @property
    def share_read(self) -> float:
        """See `Reading.share`."""
        return self._decoder.reading.share
