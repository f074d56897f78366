"""What is asked of a session, and what it says. No LSP types."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codespec.config import CompletionSettings
from codespec.edit import Edit
from codespec.requests import CompletionRequest
from codespec.types import SamplingParams

from .documents import Snapshot
from .suggestions import Suggestion


@dataclass(frozen=True, slots=True)
class Ask:
    """A request. `path` and `workspace`: absolute or "". `invoked`: the user asked, waits longer,
    and may want to choose."""

    snapshot: Snapshot
    path: str
    workspace: str
    invoked: bool

    def request(self, limits: CompletionSettings) -> CompletionRequest:
        """The engine's request, with the deadline that the user's settings give such a one."""
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
    """`reason`: why there are no offers; `paused`: why there are none in this document at all.
    `cached`: the model was not asked. `ahead_ms`: how long before the request it was."""

    offers: tuple[Offer, ...] = ()
    reason: str = ""
    cached: bool = False
    paused: str = ""
    engine_ms: float = 0.0
    model_ms: float = 0.0
    ahead_ms: float = 0.0

    def with_times(self, made: Suggestion, ahead_ms: float) -> Answer:
        """How long the engine took, where it was asked."""
        if self.cached:
            return self
        times = {"engine_ms": made.engine_ms, "model_ms": made.model_ms, "ahead_ms": ahead_ms}
        return replace(self, **times)

    @property
    def words(self) -> str:
        """For a trace."""
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
