"""A model that decodes by itself, where `passes.py` decodes with a target's passes.

The generator's stream runs on a thread of its own, as it may block for any time: cancellation,
deadlines and other requests' turns are served meanwhile. There are no drafts and no alternatives,
as both need passes.
"""

from __future__ import annotations

import dataclasses
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from codespec.backends.generators import Generator, GeneratorFigures, GeneratorPrompt, Made
from codespec.backends.model_figures import fim_prompt
from codespec.config import Settings
from codespec.context.masked_tokens import masked_tokens
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.engine.decoder import Decoded, Decoder
from codespec.engine.generation import Due, Generation
from codespec.engine.output import Output, OutputLimits, Stop
from codespec.engine.reading import Reading
from codespec.engine.turns import Turns
from codespec.errors import CodespecError, InputError, ModelError
from codespec.models.figures import ModelFigures
from codespec.requests import CompletionRequest, Paused
from codespec.types import Context, Finish, SourceStats, Tokens, Trace
from codespec.verify.sampling import Sampler

log = logging.getLogger(__name__)

_POLL_S = 0.005
"""Seconds between two looks at whether to go on waiting for a piece."""
_FAREWELL_S = 0.5
"""Most seconds that the end waits for the last stream's."""


class Streamed(Decoder):
    """`Decoder` over a generator."""

    has_log_probs = False

    def __init__(
        self,
        generator: Generator,
        settings: Settings,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._generator = generator
        self._clock = clock
        self._busy_s = 0.0
        self._last: _Feed | None = None
        self._shown: Callable[[str], None] = lambda text: None
        self.info, self.tokenizer = generator.info, generator.tokenizer
        self.n_units, self.heals = generator.n_units, generator.heals
        self.is_elsewhere = generator.is_elsewhere
        self.reading = Reading(settings, _Unmeasured(), lambda: 0.0, self.n_units)

    @property
    def trouble(self) -> str:
        return self._generator.trouble

    @property
    def busy_s(self) -> float:
        return self._busy_s

    @property
    def figures(self) -> ModelFigures:
        def text_of(marker: int) -> str:
            return self._generator.text(np.array([marker], np.int32))

        prompt = fim_prompt(self.info.fim, text_of)
        return msgspec.structs.replace(super().figures, fim_prompt=prompt)

    def watch(self, shown: Callable[[str], None], sent: Callable[[str], None]) -> None:
        self._shown = shown
        self._generator.watch(sent)

    def decoding(
        self,
        made: Generation,
        due: Due,
        ends: Stop,
        is_in_line: Callable[[], bool],
        paused: Paused,
    ) -> Turns[Decoded]:
        request = made.request
        if request.sampling.has_form:
            raise InputError(
                f"{self.info.name} cannot be held to a grammar",
                "Ask without one, or choose another model.",
            )
        trace, context = made.trace, made.context
        n_free = made.n_repeating(self.tokenizer)
        limits = OutputLimits(request.max_tokens * self.n_units, due.at, n_free=n_free)
        trace.n_prompt_tokens = -(-len(context.prompt) // self.n_units)
        started = self._clock()

        def told(said: list[int]) -> bool:
            if not trace.first_token_ms:
                trace.first_token_ms = (self._clock() - started) * 1e3
            return ends(said)

        output = Output(Sampler(request.sampling), limits, self.info.eog, told)
        try:
            finish = None
            if context.healed:
                asked = self._asked(context, request, due, context.prompt)
                said = self._said(asked, output, trace, due, paused, context.healed)
                finish = yield from said
            if finish is None and self._generator.holds:
                asked = self._asked(context, request, due, context.prompt)
                asked = dataclasses.replace(asked, held=context.healed)
                said = self._said(asked, output, trace, due, paused, context.healed)
                finish = (yield from said) or "stop"
            if finish is None:
                held_back = self.tokenizer.encode(context.healed)
                asked = self._asked(
                    context, request, due, np.concatenate([context.prompt, held_back])
                )
                output.take(held_back.tolist())
                finish = output.finish or (yield from self._said(asked, output, trace, due, paused))
            return output.tokens, finish or "stop"
        finally:
            trace.n_tokens = -(-len(output.tokens) // self.n_units)
            trace.target_ms = (self._clock() - started) * 1e3 - trace.paused_ms

    def _asked(
        self, context: Context, request: CompletionRequest, due: Due, prompt: Tokens
    ) -> GeneratorPrompt:
        is_healed = len(prompt) == len(context.prompt)
        held_back, n_held_back = context.healed, len(self.tokenizer.encode(context.healed))
        if self.is_elsewhere:  # text of other files, or spelled out by a client
            prompt = masked_tokens(prompt, self.tokenizer)
        before = self.tokenizer.decode(context.left[len(context.left) - context.n_before :])
        after = self.tokenizer.decode(context.right[: context.n_after])
        return GeneratorPrompt(
            prompt,
            self._generator.text(prompt),
            (before if is_healed else before + held_back).decode("utf-8", "replace"),
            after.decode("utf-8", "replace"),
            request.max_tokens + (n_held_back if is_healed else 0),
            request.sampling,
            request.stop,
            lambda: due.at - self._clock(),
            path=request.path,
            workspace=request.workspace,
        )

    def _said(
        self,
        asked: GeneratorPrompt,
        output: Output,
        trace: Trace,
        due: Due,
        paused: Paused,
        healed: bytes = b"",
    ) -> Turns[Finish | None]:
        """Feed the generator's tokens to `output`. Returns the cause of the end; None, with nothing
        fed, where the tokens do not begin with `healed`."""
        self._shown(asked.text)
        feed = self._last = _Feed(self._generator, asked)
        undecided: list[int] = []
        started = self._clock()
        try:
            while True:
                if due.cancelled():
                    return "cancelled"
                if self._clock() >= output.limits.deadline:
                    return "deadline"
                if paused(True):
                    self._busy_s += self._clock() - started
                    yield
                    started = self._clock()
                got = feed.next(_POLL_S)
                if got is None:
                    continue
                if isinstance(got, _End):
                    return None if healed else got.finish
                if isinstance(got, GeneratorFigures):
                    _count(got, trace)
                    continue
                undecided += self.tokenizer.encode(got).tolist() if isinstance(got, bytes) else got
                if healed:
                    said = self.tokenizer.decode(undecided)
                    n = min(len(said), len(healed))
                    if said[:n] != healed[:n]:
                        return None
                    if n < len(healed):
                        continue
                    healed = b""
                output.take(undecided)
                if output.finish is not None:
                    return output.finish
                undecided = []
        finally:
            feed.close()
            self._busy_s += self._clock() - started

    def reading_ahead(
        self,
        context: Context,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[None]:
        if not self._generator.reads_ahead:
            return
        asked = self._asked(context, request, Due(request, self._clock, cancelled), context.prompt)
        feed = self._last = _Feed(self._generator, dataclasses.replace(asked, only_reads=True))
        try:
            while not cancelled() and not isinstance(feed.next(_POLL_S), _End):
                if paused(False):
                    yield
        except CodespecError as e:
            log.info("nothing is read ahead: %s", e.message)  # a request will tell
        finally:
            feed.close()

    def close(self) -> None:
        if self._last is not None:
            self._last.wait()
        self._generator.close()


def _count(figures: GeneratorFigures, trace: Trace) -> None:
    trace.n_target_passes += figures.n_passes
    for source, stats in figures.by_source.items():
        known = trace.by_source.setdefault(source, SourceStats())
        known.n_drafted += stats.n_drafted
        known.n_accepted += stats.n_accepted
        trace.n_drafted += stats.n_drafted
        trace.n_accepted += stats.n_accepted


@dataclass(frozen=True, slots=True)
class _End:
    finish: Finish


class _Feed:
    """A generator's pieces, made on a thread of their own."""

    def __init__(self, generator: Generator, asked: GeneratorPrompt) -> None:
        self._generator = generator
        self._asked = asked
        self._made = queue.SimpleQueue[Made | _End | CodespecError]()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._make, name="generator", daemon=True)
        self._thread.start()

    def next(self, timeout_s: float) -> Made | _End | None:
        """The next piece; None where there is none in time. Raises: CodespecError."""
        try:
            made = self._made.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(made, CodespecError):
            raise made
        return made

    def close(self) -> None:
        """Abandon the stream; its thread ends with the next piece."""
        self._is_closed.set()

    def wait(self) -> None:
        """Wait a moment for the thread: what it holds is to be freed before the process ends."""
        self._thread.join(_FAREWELL_S)

    def _make(self) -> None:
        try:
            stream = self._generator.stream(self._asked, self._is_closed.is_set)
            try:
                while not self._is_closed.is_set():
                    self._made.put(next(stream))
            except StopIteration as end:
                self._made.put(_End(end.value or "stop"))
            finally:
                stream.close()
        except CodespecError as e:
            self._made.put(e)
        except Exception as e:
            # The exception's text may quote the prompt, so it is left out.
            error = ModelError(
                f"{self._generator.info.name} failed: {type(e).__name__}",
                "See whether what runs it works; another model: codespec models default bundled.",
            )
            self._made.put(error)


class _Unmeasured:
    """`reading.PassCosts` of a model without passes."""

    is_measured = False

    @property
    def curve(self) -> CostCurve:
        return FLAT
