"""`LocalEngine`: documents, a model and post-processing of its output, in this process."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import TypeAlias, cast

from codespec.config import Settings
from codespec.context.prompt_window import build_context
from codespec.context.raw_prompt import NO_SPECIAL_TOKENS, whole_context
from codespec.context.retrieval import Gatherer
from codespec.documents.edit_histories import EditHistories
from codespec.documents.live import LiveDocument
from codespec.documents.open_documents import OpenDocuments
from codespec.drafters.guard import GuardPolicy
from codespec.drafters.lookup import Repository
from codespec.edits.base import Proposer
from codespec.engine.decoder import Decoded
from codespec.engine.decoders import decoder_of
from codespec.engine.generation import Due, Generation, Teller, generation_at
from codespec.engine.known_people import KnownPeople
from codespec.engine.likely_lines import ends_of, suggested
from codespec.engine.measurable import MeasurableEngine
from codespec.engine.model_edits import ModelEdits
from codespec.engine.next_edit_model import NextEditModel, roomy
from codespec.engine.next_edits import lookups
from codespec.engine.output import Stop
from codespec.engine.turns import Turns, in_one_turn
from codespec.engine.workspace_indexes import WorkspaceIndexes
from codespec.errors import InputError
from codespec.next_edit import NextEditRequest, NextEdits
from codespec.reasons import NoSuggestion
from codespec.requests import Completion, CompletionRequest, OnProgress, Paused
from codespec.rules import secrets
from codespec.syntax.text import safe_cuts
from codespec.syntax.trees import TreeCache
from codespec.types import NO_TOKENS, Context, Tokens, Trace

Decode: TypeAlias = Callable[[Generation, LiveDocument], Turns[Decoded]]
"""Makes the output for a prompt, which is of this document."""


class LocalEngine(MeasurableEngine):
    """`Engine` over a model of any backend, which it loads at once. One thread only.

    Raises: ModelError, ConfigError.
    """

    def __init__(
        self,
        settings: Settings,
        on_loading: Callable[[float], None] = lambda _: None,
        repository: Callable[[str], Repository | None] | None = None,
        policy: GuardPolicy = GuardPolicy.LEAVE_OUT,
        proposer: Proposer | None = None,
    ) -> None:
        """on_loading: called with the share of the target that is loaded, 0 to 1.
        repository: gives the index of a workspace folder; default: the one in the cache folder.
        policy: treatment of a drafter that fails.
        proposer: of next edits; None: `Repeats`."""
        self.settings = settings
        self._clock = time.perf_counter
        # The rules of secrets load beside the model, or the first key would wait for them.
        Thread(target=secrets.find, args=("",), daemon=True).start()
        super().__init__(decoder_of(roomy(settings), on_loading, policy, lambda: self._clock()))
        cuts = safe_cuts(self.tokenizer)
        histories = EditHistories()
        self._documents = OpenDocuments(self.tokenizer, cuts, settings.index.exclude, histories)
        self._trees = TreeCache()
        self.indexes = WorkspaceIndexes(self.tokenizer.hash)
        index_of = self.indexes.get
        self._gatherer = Gatherer(
            settings.context, self.info, self.tokenizer, self._documents, index_of, self._trees
        )
        self._edits = lookups(settings.index.exclude, index_of, proposer, histories)
        self._decoder.serve(self._documents, repository or index_of)
        self.next_edit_model = NextEditModel(
            settings, lambda chosen: LocalEngine(chosen, repository=repository, policy=policy), self
        )
        self._model_edits = ModelEdits(
            self.next_edit_model, self._edits, self.open_texts, self._known_people
        )
        self.remembers = True
        """True if later requests draft from this engine's answers. Measurements that ask the same
        again set it to False."""

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
        answering = self.next_edit_model.answering(request, self, cancelled, paused)
        engine, request = yield from answering
        if engine is not self:
            return (yield from engine.completing(request, cancelled, on_progress, paused))
        due = Due(request, self._clock, cancelled)
        decode = partial(self._decode, due, on_progress, paused)
        completion, _ = yield from self._through_rooms(request, due, decode)
        return completion

    def _through_rooms(
        self, request: CompletionRequest, due: Due, decode: Decode
    ) -> Turns[tuple[Completion, Generation | None]]:
        """The way of a request: this function enters the rooms of a completion, in this order, and
        passes on to each the values of those before.

        Returns: the completion; the prompt and output that it comes from, None for a document that
        must not be read.
        """
        busy_s = self._decoder.busy_s
        trace = Trace(model=self.info.name, n_ctx=self.info.n_ctx, backend=self.info.backend)

        # documents: the reason why this one must not be read, or its tokens and automata
        if why := self._documents.why_excluded(request):
            return Completion(why=NoSuggestion.EXCLUDED, detail=why, trace=trace), None
        document = self._documents.update(request)
        left, right = document.left, document.right
        if self._decoder.is_elsewhere:
            if document.is_in_secret:
                return Completion(why=NoSuggestion.IN_SECRET, trace=trace), None
            left, right = document.masked

        # context: text of other files, and the prompt
        right = right if self.info.fim is not None else NO_TOKENS
        shown = self._decoder.reading.of(request, len(left), len(right))
        snippets = self._gatherer.snippets(request, shown.n_snippet_tokens, document.name)
        rendered = self._gatherer.render(snippets, request)
        n_units = self._decoder.n_units
        reads_special = request.raw or len(request.messages) > 0
        context = build_context(
            dataclasses.replace(request, max_tokens=request.max_tokens * n_units),
            left,
            right,
            self.info,
            self.tokenizer,
            shown.window,
            snippets,
            rendered,
            document.name,
            heals=self._decoder.heals,
            special_tokens=self._decoder.special_tokens if reads_special else NO_SPECIAL_TOKENS,
            chat_prompt=self._decoder.chat_prompt,
        )
        trace.n_left_out = context.n_left_out // n_units
        trace.n_snippets = len(context.snippets)

        # suggest: the syntax around the cursor, the shape of a suggestion there, its end
        read_ms = due.ms
        made = generation_at(
            request,
            context,
            document.name,
            self._trees,
            self.tokenizer,
            trace,
            self._known_people(request),
        )
        trace.context_ms = due.ms
        trace.syntax_ms = trace.context_ms - read_ms

        # drafters, backends, verify: the output, pass by pass
        if len(context.prompt):
            tokens, ended = yield from decode(made, document)
            made = made.with_output(tokens, ended)
            made.tell_trace(self.tokenizer)
            if self.remembers:
                self._documents.answered(context, tokens)

        # suggest: from the output to the edit, then to alternatives
        decoded_ms = due.ms
        made = made.until_late(due)
        finished = suggested(made, made.tokens, self.tokenizer, made.finish)
        trace.trimmed, trace.chances = finished.trimmed, finished.chances
        trace.n_likely, trace.has_log_probs = finished.n_likely, finished.has_log_probs
        trace.finish_ms = due.ms - decoded_ms
        alternatives = self._decoder.alternatives(made.until_late(due), finished.edit, due)

        trace.ms = due.ms
        trace.model_ms += (self._decoder.busy_s - busy_s) * 1e3
        no_text, detail = (None, "") if finished.edit else made.why_empty(finished)
        completion = Completion(finished.edit, made.finish, no_text, detail, trace, alternatives)
        return completion, made

    def _decode(
        self,
        due: Due,
        on_progress: OnProgress | None,
        paused: Paused,
        made: Generation,
        document: LiveDocument,
    ) -> Turns[Decoded]:
        """`Decode` by the model. Between two turns other requests run; the model's state and the
        document are put back afterwards."""
        ends, is_in_line = ends_of(made, self.tokenizer), lambda: made.is_in_line
        if on_progress is not None:
            ends, is_in_line = self._telling(on_progress, made, due, ends), lambda: False
        turns = self._decoder.decoding(made, due, ends, is_in_line, paused)
        trace, parsed = made.trace, made.place.parsed
        text = parsed.text if parsed is not None else b""
        while True:
            self._decoder.begin()
            try:
                next(turns)
            except StopIteration as end:
                return cast(Decoded, end.value)
            paused_s, busy_s = self._clock(), self._decoder.busy_s
            with self._decoder.left_off():
                yield
            # Other requests may have been for the same document, or for one that was taken for it.
            if parsed is not None:
                parsed.update(text)
            self._documents.go_on(made.request, document)
            trace.paused_ms += (self._clock() - paused_s) * 1e3
            trace.model_ms -= (self._decoder.busy_s - busy_s) * 1e3  # time of other requests

    def _telling(self, tell: OnProgress, made: Generation, due: Due, stop: Stop) -> Stop:
        """`stop`, which also reports the output so far."""
        told = made.until_late(due)
        teller = Teller(
            tell,
            self.tokenizer.decode,
            len(made.context.healed),
            lambda emitted: suggested(told, emitted, self.tokenizer, "deadline"),
            told.late,
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
        answering = self.next_edit_model.answering(request, self, cancelled, paused)
        engine, request = yield from answering
        if engine is not self:
            return (yield from engine.prefetching(request, cancelled, paused))

        def read(made: Generation, _: LiveDocument) -> Turns[Decoded]:
            yield from self._decoder.reading_ahead(made.context, request, cancelled, paused)
            return [], "empty"

        yield from self._through_rooms(request, Due(request, self._clock, cancelled), read)

    def find_edits(
        self, request: NextEditRequest, cancelled: Callable[[], bool] = lambda: False
    ) -> NextEdits:
        """See `requests.EditFinder`."""
        return self._edits.find(request, cancelled)

    def edit_outcomes(self) -> tuple[int, int]:
        """See `requests.EditFinder`."""
        return self._edits.outcomes()

    def finding(
        self,
        request: NextEditRequest,
        cancelled: Callable[[], bool] = lambda: False,
        paused: Paused = lambda has_progressed: False,
    ) -> Turns[NextEdits]:
        """See `requests.ModelEditFinder`."""
        return self._model_edits.finding(request, cancelled, paused)

    def answering(
        self,
        prompt: Tokens,
        old: Tokens,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[Generation]:
        """See `model_edits.PromptEngine`."""
        due = Due(request, self._clock, cancelled)
        document = self._documents.update(request)
        context = whole_context(request, self.info, prompt, document.left, document.name)
        context = dataclasses.replace(context, old=old)
        name, trees, tokenizer = document.name, self._trees, self.tokenizer
        made = generation_at(request, context, name, trees, tokenizer, Trace())
        made = dataclasses.replace(made, log_probs=[])
        tokens, ended = yield from self._decode(due, None, paused, made, document)
        return made.with_output(tokens, ended)

    def generate(self, request: CompletionRequest) -> Generation:
        """The prompt of a request and its output, before that becomes the text to insert. Raises:
        InputError where the document must not be completed."""
        due = Due(request, self._clock, lambda: False)
        return self._generation(request, due, partial(self._decode, due, None, lambda moved: False))

    def context(self, request: CompletionRequest) -> Context:
        """The prompt of a request and the tokens around its cursor. Raises: InputError where
        the document must not be completed."""
        due = Due(request, self._clock, lambda: False)
        return self._generation(request, due, _decode_nothing).context

    def _generation(self, request: CompletionRequest, due: Due, decode: Decode) -> Generation:
        completion, made = in_one_turn(self._through_rooms(request, due, decode))
        if made is None:
            raise InputError(f"{request.path}: {completion.reason}")
        return made

    def open(self, request: CompletionRequest) -> None:
        """Register a document without completing it: its text and edits serve the workspace's
        other documents."""
        if not self._documents.why_excluded(request):
            self._documents.update(request)

    def closed(self, path: str) -> None:
        """Close a document: the text of its file counts again, and drafts no longer come from text
        that was not saved."""
        if self._documents.close(path):
            self._gatherer.forget(path)
        self._edits.closed(path)
        self.next_edit_model.closed(path)

    def idle(self, interrupted: Callable[[], bool] = lambda: False) -> bool:
        """Do one piece of work that no request waits for: a pass at most. Returns True while there
        is more. interrupted: True once a request came."""
        if self._decoder.idle(interrupted) or self._edits.idle():
            return True
        if self.next_edit_model.idle(interrupted):
            return True
        return self.indexes.check_some()

    @property
    def saved_bytes(self) -> int:
        """Most bytes for KV caches that are put aside, and for the next-edit model: beyond the
        memory that loading took."""
        return self._decoder.saved_bytes + self.next_edit_model.memory_bytes

    def settle(self) -> None:
        """Do all work of `idle` at once; afterwards the cost curves are measured."""
        while self.idle():
            pass

    def close(self) -> None:
        self._edits.save()
        self.next_edit_model.close()
        self._decoder.close()

    def open_texts(self, request: CompletionRequest) -> list[tuple[str, str]]:
        """(path, text) of the other documents that serve this request."""
        return self._documents.texts(request.path, request.workspace)

    def _known_people(self, request: CompletionRequest) -> KnownPeople:
        return KnownPeople(
            request,
            self.tokenizer,
            lambda: [text for _, text in self.open_texts(request)],
            lambda: self.indexes.in_use(request.workspace),
        )


def _decode_nothing(made: Generation, document: LiveDocument) -> Turns[Decoded]:
    yield from ()
    return [], "empty"
