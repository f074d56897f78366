"""How well a draft model drafts: through the real loop, with llama.cpp, on places kept aside."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codespec.backends.base import Model, Target
from codespec.backends.registry import targets_of
from codespec.config import Settings
from codespec.context.healing import HealingMask, vocabulary_of
from codespec.context.prompt_window import Window, build_context
from codespec.cost.cost_curve import FLAT, CostCurve
from codespec.cost.measure import measure
from codespec.distill.workspace import LessonPlace
from codespec.drafters.base import Drafter
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.draft_model import DRAFT_MODEL, DraftModel, OnPass, ignore_pass
from codespec.drafters.model_drafter import ModelDrafter
from codespec.engine.completer import Completer
from codespec.engine.draft_models import as_draft
from codespec.engine.output import OutputLimits
from codespec.models.distilled import DraftFigures
from codespec.requests import CompletionRequest
from codespec.syntax import text
from codespec.types import (
    NO_DRAFT,
    Context,
    Draft,
    PassState,
    SamplingParams,
    Tokenizer,
    Trace,
)
from codespec.verify.sampling import Sampler

N_DRAFT = 4
MAX_TOKENS = 32
N_CTX = 2048


class FixedDrafter(Drafter):
    """`Drafter` that always drafts a model's N_DRAFT greedy tokens, whether it pays or not."""

    name = "fixed"

    def __init__(self, small: DraftModel) -> None:
        self._small = small
        self._n_prompt = 0

    def begin(self, context: Context) -> None:
        self._small.begin(context)
        self._n_prompt = len(context.prompt)

    def propose(self, state: PassState, n_max: int) -> Draft:
        emitted = state.emitted
        if not self._small.fits(self._n_prompt + len(emitted) + N_DRAFT):
            return NO_DRAFT
        self._small.catch_up(emitted, lambda: False)
        words = [self._small.next() for _ in range(min(N_DRAFT, n_max))]
        return Draft.chain([word[0] for word in words if word is not None], DRAFT_MODEL)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A draft model, in the target's tokens, and the cost of its passes."""

    speaking: Callable[[OnPass], DraftModel]
    curve: CostCurve

    def small(self) -> DraftModel:
        return self.speaking(ignore_pass)


class Contest:
    """Draft models against plain decoding, on the same places and side by side."""

    def __init__(
        self,
        target: Target,
        curve: CostCurve,
        tokenizer: Tokenizer,
        places: list[LessonPlace],
        window: Window,
    ) -> None:
        self._target, self._curve, self._tokenizer = target, curve, tokenizer
        self.vocabulary = vocabulary_of(tokenizer)
        cuts = text.safe_cuts(tokenizer)
        self.asked: list[tuple[LessonPlace, Context]] = []
        """Places, and what is read for them."""
        for place in places:
            request = CompletionRequest(
                place.prefix, place.suffix, path=place.path, max_tokens=MAX_TOKENS
            )
            left, right = (text.encode(t, tokenizer, cuts) for t in (place.prefix, place.suffix))
            context = build_context(request, left, right, target.info, tokenizer, window)
            if len(context.prompt):
                self.asked.append((place, context))

    def run(
        self,
        contestants: list[Contestant],
        on_place: Callable[[int, int], None] = lambda done, total: None,
    ) -> list[DraftFigures]:
        """In the order given. Plain decoding and all contestants take turns at each place, so that
        a busy machine slows all alike. on_place: told how many of how many are done.
        """
        fixed = [FixedDrafter(c.small()) for c in contestants]
        served = [ModelDrafter(c.small(), self._curve, c.curve) for c in contestants]
        plain_s, plain_tokens = 0.0, 0
        drafted, accepted = np.zeros(len(contestants)), np.zeros(len(contestants))
        seconds, tokens = np.zeros(len(contestants)), np.zeros(len(contestants))
        for done, (_, context) in enumerate(self.asked):
            on_place(done, len(self.asked))
            self.complete(context)  # the prompt into the cache
            trace, spent = self.complete(context)
            plain_s, plain_tokens = plain_s + spent, plain_tokens + trace.n_tokens
            for i, (always, adaptive) in enumerate(zip(fixed, served, strict=True)):
                trace, _ = self.complete(context, always)
                drafted[i] += trace.n_drafted
                accepted[i] += trace.n_accepted
                trace, spent = self.complete(context, adaptive)
                seconds[i] += spent
                tokens[i] += trace.n_tokens
        plain = plain_tokens / max(plain_s, 1e-9)
        return [
            DraftFigures(
                acceptance=float(accepted[i] / max(drafted[i], 1)),
                speed=float(tokens[i] / max(seconds[i], 1e-9) / max(plain, 1e-9)),
                n_drafted=int(drafted[i]),
            )
            for i in range(len(contestants))
        ]

    def complete(
        self,
        context: Context,
        *drafters: Drafter,
        curve: CostCurve = FLAT,
        pads: bool = False,
    ) -> tuple[Trace, float]:
        """(what happened, seconds) of one greedy completion with these drafters; curve: what the
        target's passes are taken to cost where several are asked. pads: see `CombinedDrafter`.
        """
        target = self._target
        mask = HealingMask(context.healed, self.vocabulary, self._tokenizer)
        sampler = Sampler(SamplingParams(), mask if context.healed else None)
        drafter = CombinedDrafter(drafters, target.info.n_vocab, curve=curve, pads=pads)
        trace = Trace()
        started = time.perf_counter()
        Completer(target, drafter).run(context, sampler, OutputLimits(MAX_TOKENS), trace=trace)
        return trace, time.perf_counter() - started


@contextmanager
def opened(
    path: Path, settings: Settings, n_threads: int
) -> Generator[tuple[Model, Target], None, None]:
    """A model and a context of it, of N_CTX tokens where it has so many. Raises: ModelError."""
    backend, n_gpu_layers = targets_of(path), settings.model.n_gpu_layers
    with closing(backend.open(str(path), n_gpu_layers=n_gpu_layers)) as loaded:
        n_ctx = min(N_CTX, loaded.info.n_ctx or N_CTX)
        kv_type = settings.model.kv_type
        target = loaded.context(n_ctx=n_ctx, n_threads=n_threads, kv_type=kv_type)
        with closing(target) as context:
            yield loaded, context


@contextmanager
def contestants(
    files: Sequence[Path], target: Model, settings: Settings, n_threads: int
) -> Generator[list[Contestant], None, None]:
    """Draft models for a target, measured. Raises: ModelError where one cannot draft for it."""
    if not files:
        yield []
        return
    with (
        opened(files[0], settings, n_threads) as (loaded, context),
        contestants(files[1:], target, settings, n_threads) as others,
    ):
        tokenizer = target.tokenizer

        def speaking(on_pass: OnPass) -> DraftModel:
            return as_draft(loaded, context, target, tokenizer, on_pass)

        contestant = Contestant(speaking, measure(context))
        contestant.small()  # one that cannot draft is refused before any place is asked
        yield [contestant, *others]
