"""Requests to a session, and its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codespec.config import CompletionSettings
from codespec.edit import Edit
from codespec.requests import CompletionRequest, Eagerness
from codespec.types import SamplingParams

from ..documents import Snapshot
from .suggestion import Suggestion


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of an editor.

    path, workspace: absolute, or "".
    invoked: True if the user asked, who waits longer and may want to choose.
    """

    snapshot: Snapshot
    path: str
    workspace: str
    invoked: bool

    def request(
        self, limits: CompletionSettings, eagerness: Eagerness | None = None
    ) -> CompletionRequest:
        """The engine's request, with the deadline that the user's settings give such a one.
        eagerness: for one that the user did not ask for."""
        snapshot = self.snapshot
        return CompletionRequest(
            prefix=snapshot.prefix,
            suffix=snapshot.suffix,
            path=self.path,
            workspace=self.workspace,
            language_id=snapshot.language_id,
            max_tokens=limits.max_tokens,
            deadline_ms=limits.deadline_ms(self.invoked),
            sampling=SamplingParams(temperature=limits.temperature),
            n_candidates=limits.n_candidates if self.invoked else 1,
            multiline=limits.lines != "single",
            eagerness=None if self.invoked else eagerness,
            document=snapshot.uri,
            version=snapshot.version,
            start=snapshot.begin,
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """An edit that an editor may show, of the version that was asked about; `id` comes back with
    what became of it."""

    id: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class Answer:
    """The offers, best first, or the reason for none.

    reason: why there are no offers.
    paused: why there are none in this document at all.
    is_ready: True if there is one for whom asks: see `Restraint.trigger`.
    cached: True if the model was not asked.
    engine_ms, model_ms: time that the generation took, in the engine and its model.
    ahead_ms: how long before the request the generation began.
    """

    offers: tuple[Offer, ...] = ()
    reason: str = ""
    cached: bool = False
    paused: str = ""
    is_ready: bool = False
    engine_ms: float = 0.0
    model_ms: float = 0.0
    ahead_ms: float = 0.0

    def with_times(self, made: Suggestion, ahead_ms: float) -> Answer:
        """The answer with the times of its generation, if the model was asked."""
        if self.cached:
            return self
        times = {"engine_ms": made.engine_ms, "model_ms": made.model_ms, "ahead_ms": ahead_ms}
        return replace(self, **times)

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """The answer's figures, for programs that measure."""
        return {
            "answer": {
                "n_offers": len(self.offers),
                "is_kept": self.cached,
                "engine_ms": self.engine_ms,
                "model_ms": self.model_ms,
                "ahead_ms": self.ahead_ms,
            }
        }

    @property
    def words(self) -> str:
        """The answer in a sentence for traces, without source text."""
        engine = ""
        if self.engine_ms:
            engine = f", {self.engine_ms:.2f} ms in the engine, {self.model_ms:.2f} in the model"
        if self.ahead_ms:
            engine += f", begun {self.ahead_ms:.2f} ms before"
        if self.paused or self.reason:
            return f"no suggestion: {self.paused or self.reason}{engine}"
        n_chars = len(self.offers[0].edit.text)
        source = "made before" if self.cached else "by the model"
        return f"{len(self.offers)} suggestions, {n_chars} characters, {source}{engine}"
