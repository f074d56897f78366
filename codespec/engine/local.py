"""`LocalEngine`: documents, a model and what becomes of its output, in this process."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TypeVar, cast

from codespec import secrets
from codespec.backends.base import GeneratorBackend, Target
from codespec.backends.registry import backend_of, target_of
from codespec.config import Settings
from codespec.context.build import build_context
from codespec.drafters.base import Drafter
from codespec.drafters.chain import DraftChain
from codespec.drafters.cost import CostCurve
from codespec.drafters.guard import Policy
from codespec.drafters.lookup import Repository
from codespec.edit import Edit
from codespec.engine.decoder import Decoder
from codespec.engine.documents import OpenDocuments
from codespec.engine.gather import Gatherer
from codespec.engine.generation import Generation
from codespec.engine.generator import Streamed
from codespec.engine.output import Stop
from codespec.engine.passes import Passes
from codespec.engine.postprocess import Place, UnitStop, place_in, shape_at
from codespec.engine.progress import Teller
from codespec.engine.turns import Turns, in_one_turn
from codespec.engine.until import Until
from codespec.errors import ModelError
from codespec.index.languages import TEXT
from codespec.index.reader import WorkspaceIndex
from codespec.index.text import safe_cuts
from codespec.index.trees import Trees
from codespec.native import MAX_DEPTH
from codespec.requests import Completion, CompletionRequest, OnProgress, Paused
from codespec.types import NO_TOKENS, Context, ModelInfo, Tokens, Trace

T = TypeVar("T")

GRACE_S = 0.05
"""After the deadline, to make what was generated fit its place."""


class LocalEngine:
    """`Engine` over a model of any backend. Loads it at once; one thread only.

    Raises: ModelError, ConfigError.
    """

    def __init__(
        self,
        settings: Settings,
        on_loading: Callable[[float], None] = lambda _: None,
        repository: Callable[[str], Repository | None] | None = None,
        policy: Policy = Policy.LEAVE_OUT,
    ) -> None:
        """on_loading: told the share of the target that is loaded, 0 to 1. repository: gives the
        index of a workspace folder; default: the one in the cache folder. policy: what
        becomes of a drafter that fails."""
        self.settings = settings
        self._clock = time.perf_counter
        # Rules of secrets are read beside the model, and not with the first key.
        Thread(target=secrets.find, args=("",), daemon=True).start()
        self._decoder = _decoder(settings, on_loading, policy, lambda: self._clock())
        self.info: ModelInfo = self._decoder.info
        self.tokenizer = self._decoder.tokenizer
        cuts = safe_cuts(self.tokenizer)
        self._documents = OpenDocuments(self.tokenizer, cuts, settings.index.exclude)
        self._trees = Trees()
        self._gatherer = Gatherer(
            settings.context, self.info, self.tokenizer, self._documents, self._index, self._trees
        )
        self._indexes: dict[str, WorkspaceIndex] = {}
        self._decoder.serve(self._documents, repository or self._index)
        self.remembers = True
        """True if answers are drafted from later; not where the same is asked to be timed."""

    def complete(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: OnProgress | None = None,
    ) -> Completion:
        return in_one_turn(self.completing(request, cancelled, on_progress))

    def completing(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: OnProgress | None = None,
        paused: Paused = lambda has_progressed: False,
    ) -> Turns[Completion]:
        """See `requests.Interruptible`."""
        started, busy_s = self._clock(), self._decoder.busy_s
        if why := self._documents.why_excluded(request):
            return Completion(
                reason=why,
                trace=Trace(model=self.info.name, backend=self.info.backend),
            )
        made = yield from self._generating(request, cancelled, on_progress, paused)
        trace = made.trace
        before_finish = self._clock()
        made = self._in_time(made, request, started, cancelled)
        finished = made.finished(self.tokenizer.decode(made.tokens), made.finish)
        trace.trimmed = finished.trimmed
        trace.finish_ms = (self._clock() - before_finish) * 1e3
        alternatives = self._alternatives(request, made, finished.edit, started, cancelled)
        trace.ms = (self._clock() - started) * 1e3
        trace.model_ms += (self._decoder.busy_s - busy_s) * 1e3
        return Completion(
            edit=finished.edit,
            finish=made.finish,
            reason="" if finished.edit else made.why_empty(finished),
            trace=trace,
            alternatives=alternatives,
        )

    def _alternatives(
        self,
        request: CompletionRequest,
        best: Generation,
        edit: Edit | None,
        started: float,
        cancelled: Callable[[], bool],
    ) -> tuple[Edit, ...]:
        def late() -> bool:
            spent_ms = (self._clock() - started) * 1e3
            return cancelled() or bool(request.deadline_ms and spent_ms >= request.deadline_ms)

        best = self._in_time(best, request, started, cancelled)
        return self._decoder.alternatives(request, best, edit, late)

    def _in_time(
        self,
        made: Generation,
        request: CompletionRequest,
        started: float,
        cancelled: Callable[[], bool],
    ) -> Generation:
        """With little time left after the deadline, and none once it is cancelled."""
        clock, deadline, until = self._clock, _deadline(request, started), 0.0

        def late() -> bool:
            nonlocal until
            now = clock()
            # From when it is first asked: passes end after the deadline, too.
            until = until or max(deadline, now) + GRACE_S
            return cancelled() or now >= until

        return dataclasses.replace(made, late=late)

    def open(self, request: CompletionRequest) -> None:
        """Take note of a document without completing it: its text and what was changed in it serve
        the workspace's other documents."""
        if not self._documents.why_excluded(request):
            self._documents.update(request)

    def closed(self, path: str) -> None:
        """The document is no longer open: what its file holds counts again, and nothing is drafted
        from text that was not saved."""
        if self._documents.close(path):
            self._gatherer.forget(path)

    def generate(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: OnProgress | None = None,
    ) -> Generation:
        """The tokens of a completion, before they become the text to insert."""
        return in_one_turn(self._generating(request, cancelled, on_progress))

    def _generating(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        on_progress: OnProgress | None,
        paused: Paused = lambda has_progressed: False,
    ) -> Turns[Generation]:
        started = self._clock()
        made = self._prepare(request)
        context, trace = made.context, made.trace
        trace.context_ms = (self._clock() - started) * 1e3
        if not len(context.prompt):
            return made
        deadline = _deadline(request, started)
        n_free = made.n_repeating(self.tokenizer)
        ends, is_in_line = made.ends(self.tokenizer), lambda: made.is_in_line
        if on_progress is not None:
            told = self._in_time(made, request, started, cancelled)
            ends, is_in_line = self._telling(on_progress, told, ends), lambda: False
        turns = self._decoder.decoding(made, request, deadline, ends, is_in_line, cancelled, paused)
        tokens, ended = yield from self._taking_turns(turns, request, made)
        trace.n_repeated = n_free(tokens)
        if self.remembers:
            self._documents.answered(context, tokens)
        return dataclasses.replace(made, tokens=tokens, finish=ended)

    def _taking_turns(
        self, turns: Turns[T], request: CompletionRequest, made: Generation
    ) -> Turns[T]:
        """Between two turns others are at work, for whom the model's state and the document make
        room."""
        trace, parsed = made.trace, made.place.parsed
        text = parsed.text if parsed is not None else b""
        name = made.context.document
        document = self._documents.get(name)
        while True:
            self._decoder.begin()
            try:
                next(turns)
            except StopIteration as end:
                return cast(T, end.value)
            paused_s, busy_s = self._clock(), self._decoder.busy_s
            with self._decoder.left_off():
                yield
            # Others may have asked about the same document, or one that was taken for it.
            if parsed is not None:
                parsed.update(text)
            self._documents.go_on(request, name, document)
            trace.paused_ms += (self._clock() - paused_s) * 1e3
            trace.model_ms -= (self._decoder.busy_s - busy_s) * 1e3  # of others

    def _prepare(self, request: CompletionRequest) -> Generation:
        """Everything before the first pass: the prompt, and how much to suggest."""
        trace = Trace(model=self.info.name, backend=self.info.backend)
        name = self._documents.name_of(request)
        document = self._documents.update(request, name)
        right = document.right if self.info.fim is not None else NO_TOKENS
        shown = self._decoder.reading.of(request, len(document.left), len(right))
        snippets = self._gatherer.snippets(request, shown.n_snippet_tokens, name)
        n_units = self._decoder.n_units
        context = build_context(
            dataclasses.replace(request, max_tokens=request.max_tokens * n_units),
            document.left,
            document.right,
            self.info,
            self.tokenizer,
            shown.window,
            snippets,
            self._gatherer.render(snippets, request),
            name,
            heals=self._decoder.heals,
        )
        n_shown = context.n_before + context.n_after
        trace.n_left_out = (len(context.left) + len(context.right) - n_shown) // n_units
        trace.n_snippets = len(context.snippets)
        started = self._clock()
        # A grammar says what the text is.
        is_verbatim = request.verbatim or bool(request.sampling.grammar)
        # What follows is about shapes; to look for one takes seconds in a line of megabytes.
        place = Place("", "", TEXT)
        if not is_verbatim and not request.parses:
            place = Place(request.prefix, request.suffix, TEXT)
        elif not is_verbatim:
            place = place_in(self._trees, request.prefix, request.suffix, name, request.language_id)
        shape = shape_at(place, multiline=request.multiline)
        trace.shape, trace.shape_why = shape.kind, shape.why
        trace.syntax_ms = (self._clock() - started) * 1e3
        stop = UnitStop(self.tokenizer, shape, place, len(context.healed))
        return Generation(
            request,
            context,
            place,
            shape,
            stop,
            trace,
            until=Until(request.stop, request.min_indent, request.max_line_ms),
            is_verbatim=is_verbatim,
        )

    def context(self, request: CompletionRequest) -> Context:
        """The prompt of a request, and what drafters know of its place."""
        return self._prepare(request).context

    def _telling(self, tell: OnProgress, made: Generation, stop: Stop) -> Stop:
        teller = Teller(
            tell,
            self.tokenizer.decode,
            len(made.context.healed),
            lambda raw: made.finished(raw, "deadline").edit,
            made.late,
            self._clock,
        )

        def ends(emitted: list[int]) -> bool:
            teller(emitted)
            return stop(emitted)

        return ends

    def prefetching(
        self,
        request: CompletionRequest,
        cancelled: Callable[[], bool] = lambda: False,
        paused: Paused = lambda has_progressed: False,
    ) -> Turns[None]:
        """See `requests.Prefetcher`."""
        if self._documents.why_excluded(request):
            return
        context = self._prepare(request).context
        if len(context.prompt):
            yield from self._decoder.reading_ahead(context, request, cancelled, paused)

    def idle(self, interrupted: Callable[[], bool] = lambda: False) -> bool:
        """Do one piece of work that is due but that no request waits for: a pass at most. True
        while there is more. `interrupted` says that a request came."""
        if self._decoder.idle(interrupted):
            return True
        return any(index.check_some() for index in self._indexes.values())

    @property
    def passes(self) -> Passes:
        """Target, drafters and loop, for measurements while no request is at work. Raises:
        ModelError for a model that decodes by itself."""
        if isinstance(self._decoder, Passes):
            return self._decoder
        raise ModelError(
            f"{self.info.name} writes text by itself, and has no passes to measure",
            "Give the file of a model instead.",
        )

    @property
    def watchers(self) -> list[Drafter]:
        """See `Drafting.watchers`."""
        return self.passes.drafting.watchers

    def chain(self, workspace: str, names: tuple[str, ...] | None = None) -> DraftChain:
        """See `Drafting.chain`."""
        return self.passes.drafting.chain(workspace, names)

    @property
    def curve(self) -> CostCurve:
        """Cost of the target's passes by now."""
        return self.passes.pace.curve

    @property
    def target(self) -> Target:
        """The model itself."""
        return self.passes.target

    @property
    def saved_bytes(self) -> int:
        """Most memory for states that are put aside, beside what loading took."""
        return self._decoder.saved_bytes

    def settle(self) -> None:
        """All of `idle` at once: cost curves are measured afterwards."""
        while self.idle():
            pass

    def close(self) -> None:
        self._decoder.close()

    def file_with(self, tokens: Tokens, request: CompletionRequest) -> str:
        """The indexed file that holds most of the end of `tokens`, and goes on; "" for none."""
        index = self._index(request.workspace) if request.workspace else None
        if index is None:
            return ""
        place = index.locate(index.find(tokens[-MAX_DEPTH:], 1, (request.path,)))
        return str(Path(index.root, place.path)) if place is not None and place.path else ""

    def open_texts(self, request: CompletionRequest) -> list[tuple[str, str]]:
        """(path, text) of the other documents that serve this request."""
        return self._documents.texts(request.path, request.workspace)

    def _index(self, workspace: str) -> WorkspaceIndex | None:
        index = self._indexes.get(workspace)
        if index is None:
            index = WorkspaceIndex.open(Path(workspace), self.tokenizer.hash)
            if index is not None:
                self._indexes[workspace] = index
            return index
        index.refresh()
        return index


def _decoder(
    settings: Settings,
    on_loading: Callable[[float], None],
    policy: Policy,
    clock: Callable[[], float],
) -> Decoder:
    where = target_of(settings.model)
    backend = backend_of(where)
    if isinstance(backend, GeneratorBackend):
        return Streamed(backend.open(where), settings, clock)
    return Passes(settings, where, on_loading, policy, clock)


def _deadline(request: CompletionRequest, started: float) -> float:
    """On the clock of `started`."""
    return started + request.deadline_ms / 1e3 if request.deadline_ms else float("inf")
