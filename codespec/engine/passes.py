"""`Decoder` over a target: models, drafters, cost of passes, and the decoding loop."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from codespec.backends.model_figures import figures_of
from codespec.config import Settings
from codespec.context.healing import HealingMask, vocabulary_of
from codespec.documents.open_documents import OpenDocuments
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.lookup import Repository
from codespec.edit import Edit
from codespec.engine.candidates import alternatives
from codespec.engine.completer import Completer
from codespec.engine.decoder import Decoded, Decoder
from codespec.engine.drafting import Drafting
from codespec.engine.generation import Due, Generation
from codespec.engine.loaded_models import Models
from codespec.engine.output import OutputLimits, Stop
from codespec.engine.reading import Reading
from codespec.engine.stretch import Stretches
from codespec.engine.turns import Turns, read_in_turns
from codespec.models.figures import ModelFigures
from codespec.requests import CompletionRequest, Paused
from codespec.types import Context, SamplingParams, Trace
from codespec.verify.sampling import Sampler, TokenMask

WIDER = 4
"""Factor of the most tokens drafted for a pass where an old text is rewritten: runs that are copied
are longer than a completion."""


class TargetDecoder(Decoder):
    """`Decoder` over a target that `where` names. Loads its models at once.

    on_loading: called with the share of the target that is loaded, 0 to 1.

    Raises: ModelError, ConfigError.
    """

    drafting: Drafting

    def __init__(
        self,
        settings: Settings,
        where: str,
        on_loading: Callable[[float], None],
        policy: GuardPolicy,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._clock = clock
        self.models = Models(settings.model)
        running = self.models.load(where, on_loading, mtp_head=settings.may_draft_itself)
        self._running = running
        self._model, self.target, self.tuner = running.model, running.context, running.tuner
        self.info = self.target.info
        self.tokenizer = self._model.tokenizer
        self._vocabulary = vocabulary_of(self.tokenizer)
        self._special_tokens: Mapping[str, int] | None = None
        self.stretches: Stretches | None = None
        if self.target.can.has_stretches:
            self.stretches = Stretches(self.target, self._vocabulary, lambda: self.tuner.is_trying)
        self.reading = Reading(settings, self.tuner, lambda: self.target.read_ms)

    @property
    def busy_s(self) -> float:
        return self.models.busy_s

    @property
    def saved_bytes(self) -> int:
        return self.models.saved_bytes

    @property
    def special_tokens(self) -> Mapping[str, int]:
        if self._special_tokens is None:
            self._special_tokens = self._model.special_tokens
        return self._special_tokens

    @property
    def figures(self) -> ModelFigures:
        return figures_of(self._model, self.info.n_ctx)

    def chat_prompt(self, messages: Sequence[tuple[str, str]]) -> str | None:
        return self._model.chat_prompt(messages)

    def serve(
        self, documents: OpenDocuments, repository: Callable[[str], Repository | None]
    ) -> None:
        self.drafting = Drafting(
            self._settings,
            self.models,
            self._running,
            self.tokenizer,
            self._vocabulary,
            documents,
            repository,
            self._policy,
        )

    def begin(self) -> None:
        self.models.tuners.learn()

    def decoding(
        self,
        made: Generation,
        due: Due,
        ends: Stop,
        is_in_line: Callable[[], bool],
        paused: Paused,
    ) -> Turns[Decoded]:
        request = made.request
        sampler = Sampler(request.sampling, self._mask(made.context, request))
        rewrites = len(made.context.old) > 0
        drafter = self.drafting.drafter(request.workspace, request.drafters, rewrites=rewrites)
        completer = self._completer(drafter)
        width, n_free = self._settings.drafting.max_width, made.n_repeating(self.tokenizer)
        if rewrites:
            width *= WIDER
        limits = OutputLimits(request.max_tokens, due.at, width, n_free, is_in_line)
        context, trace = made.context, made.trace
        return completer.turns(
            context, sampler, limits, ends, due.cancelled, paused, trace, made.log_probs
        )

    def decode(
        self, context: Context, max_tokens: int, drafter: CombinedDrafter
    ) -> tuple[list[int], Trace]:
        """Decode greedily after a prompt, without healing and without the rules that end a
        suggestion, to compare ways of decoding. `Trace.ms` counts from the prefilled prompt on."""
        context = dataclasses.replace(context, healed=b"")
        self.begin()
        self.target.prefill(context.prompt, lambda: False)
        trace = Trace(model=self.info.name, n_ctx=self.info.n_ctx, backend=self.info.backend)
        width = self._settings.drafting.max_width
        limits = OutputLimits(max_tokens, max_width=width, is_in_line=lambda: True)
        started, busy_s = self._clock(), self.busy_s
        tokens, _ = self._completer(drafter).run(
            context, Sampler(SamplingParams()), limits, trace=trace
        )
        trace.ms = (self._clock() - started) * 1e3
        trace.model_ms = (self.busy_s - busy_s) * 1e3
        return tokens, trace

    def _completer(self, drafter: CombinedDrafter) -> Completer:
        return Completer(self.target, drafter, self._clock, self.tuner.observe_all, self.stretches)

    def _mask(self, context: Context, request: CompletionRequest) -> TokenMask | None:
        if context.healed:
            return HealingMask(context.healed, self._vocabulary, self.tokenizer)
        if request.sampling.json_schema:
            return self._model.schema_mask(request.sampling.json_schema)
        if request.sampling.grammar:
            return self._model.grammar_mask(request.sampling.grammar)
        return None

    @contextmanager
    def left_off(self) -> Generator[None]:
        """The target's KV cache is kept: recomputed in passes of other widths, its values would
        differ in the last digits."""
        held = self.target.checkpoint()
        try:
            yield
            self.target.restore(held)
        finally:  # the held cache may have been evicted
            self.target.release(held)

    def alternatives(self, best: Generation, edit: Edit | None, due: Due) -> tuple[Edit, ...]:
        def mask() -> TokenMask | None:
            return self._mask(best.context, best.request)

        return alternatives(
            self.target, self.tokenizer, best, edit, mask, self._vocabulary, due.is_over
        )

    def reading_ahead(
        self,
        context: Context,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[None]:
        # Lookups open the index and read the text around the place.
        drafter = self.drafting.drafter(request.workspace, request.drafters)
        drafter.begin(context)
        yield from read_in_turns(self.target, context.prompt, cancelled, paused)
        for reader in drafter.readers(context):
            yield from read_in_turns(reader, context, cancelled, paused)

    def idle(self, interrupted: Callable[[], bool]) -> bool:
        """Make at most one pass, to measure its cost."""
        self.models.tuners.learn()
        return self.models.tuners.measure(interrupted)

    def close(self) -> None:
        self.drafting.save()
        self.models.close()
