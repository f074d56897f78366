"""Passes over a target: its models and drafters, what passes cost, and the loop over them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from codespec.config import Settings
from codespec.context.healing import HealingMask, vocabulary_of
from codespec.drafters.chain import DraftChain
from codespec.drafters.guard import Policy
from codespec.drafters.lookup import Repository
from codespec.edit import Edit
from codespec.engine.ahead import read_in_turns
from codespec.engine.candidates import alternatives
from codespec.engine.completer import Completer
from codespec.engine.decoder import Decoder
from codespec.engine.documents import OpenDocuments
from codespec.engine.drafting import Drafting
from codespec.engine.generation import Generation
from codespec.engine.models import Models
from codespec.engine.output import Limits, Stop
from codespec.engine.reading import Reading
from codespec.engine.stretch import Stretches
from codespec.engine.turns import Turns
from codespec.requests import CompletionRequest, Paused
from codespec.sampling import Sampler, TokenMask
from codespec.types import Context, Finish, SamplingParams, Trace


class Passes(Decoder):
    """`Decoder` over a target that `where` names. Loads its models at once.

    on_loading: told the share of the target that is loaded, 0 to 1.

    Raises: ModelError, ConfigError.
    """

    drafting: Drafting

    def __init__(
        self,
        settings: Settings,
        where: str,
        on_loading: Callable[[float], None],
        policy: Policy,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._clock = clock
        self.models = Models(settings.model)
        running = self.models.load(where, on_loading, own_layer=settings.may_draft_itself)
        self._running = running
        self._model, self.target, self.pace = running.model, running.context, running.pace
        self.info = self.target.info
        self.tokenizer = self._model.tokenizer
        self._vocabulary = vocabulary_of(self.tokenizer)
        self.stretches: Stretches | None = None
        if self.target.can.has_stretches:
            self.stretches = Stretches(self.target, self._vocabulary, lambda: self.pace.is_trying)
        self.reading = Reading(settings, self.pace, lambda: self.target.read_ms)

    @property
    def busy_s(self) -> float:
        return self.models.busy_s

    @property
    def saved_bytes(self) -> int:
        return self.models.saved_bytes

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
        self.models.paces.learn()

    def decoding(
        self,
        made: Generation,
        request: CompletionRequest,
        deadline: float,
        ends: Stop,
        is_in_line: Callable[[], bool],
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[tuple[list[int], Finish]]:
        sampler = Sampler(request.sampling, self._mask(made.context, request))
        completer = self._completer(self.drafting.chain(request.workspace, request.drafters))
        width, n_free = self._settings.drafting.max_width, made.n_repeating(self.tokenizer)
        limits = Limits(request.max_tokens, deadline, width, n_free, is_in_line)
        return completer.turns(made.context, sampler, limits, ends, cancelled, paused, made.trace)

    def decode(
        self, context: Context, max_tokens: int, chain: DraftChain
    ) -> tuple[list[int], Trace]:
        """Greedy tokens after a prompt, without the rules for half-typed words and for where a
        suggestion ends: what is left for comparing ways to decode. `Trace.ms` is the time from the
        processed prompt on."""
        context = dataclasses.replace(context, healed=b"")
        self.begin()
        self.target.prefill(context.prompt, lambda: False)
        trace = Trace(model=self.info.name, backend=self.info.backend)
        width = self._settings.drafting.max_width
        limits = Limits(max_tokens, max_width=width, is_in_line=lambda: True)
        started, busy_s = self._clock(), self.busy_s
        tokens, _ = self._completer(chain).run(
            context, Sampler(SamplingParams()), limits, trace=trace
        )
        trace.ms = (self._clock() - started) * 1e3
        trace.model_ms = (self.busy_s - busy_s) * 1e3
        return tokens, trace

    def _completer(self, chain: DraftChain) -> Completer:
        return Completer(self.target, chain, self._clock, self.pace.observe_all, self.stretches)

    def _mask(self, context: Context, request: CompletionRequest) -> TokenMask | None:
        if context.healed:
            return HealingMask(context.healed, self._vocabulary, self.tokenizer)
        if request.sampling.grammar:
            return self._model.grammar_mask(request.sampling.grammar)
        return None

    @contextmanager
    def left_off(self) -> Generator[None]:
        """The target's cache keeps what it holds: read again, in passes of other widths, it would
        not be the same to the last digit."""
        held = self.target.hold()
        try:
            yield
            self.target.take_back(held)
        finally:  # it may have been forgotten
            self.target.let_go(held)

    def alternatives(
        self,
        request: CompletionRequest,
        best: Generation,
        edit: Edit | None,
        late: Callable[[], bool],
    ) -> tuple[Edit, ...]:
        def mask() -> TokenMask | None:
            return self._mask(best.context, request)

        return alternatives(self.target, self.tokenizer, request, best, edit, mask, late)

    def reading_ahead(
        self,
        context: Context,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[None]:
        # Lookups open the index and read the text around the place.
        chain = self.drafting.chain(request.workspace, request.drafters)
        chain.begin(context)
        yield from read_in_turns(self.target, context.prompt, cancelled, paused)
        for reader in chain.readers(context):
            yield from read_in_turns(reader, context, cancelled, paused)

    def idle(self, interrupted: Callable[[], bool]) -> bool:
        """A pass at most, to see what passes cost."""
        self.models.paces.learn()
        return self.models.paces.measure(interrupted)

    def close(self) -> None:
        self.drafting.save()
        self.models.close()
