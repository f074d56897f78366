"""One editor's suggestions: from a snapshot of a document to edits of it.

For each document at most one request waits, and one generation runs. A newer request takes the
waiting one's place. The generation goes on as long as the typed text agrees with it; otherwise it
ends, and a new one begins. A request whose time is over gets the finished lines, and the generation
goes on for the next request. A slow model may have finished no line by then: the first line is
answered late, to an editor that has not asked again. An editor that can show growth gets the first
lines soon, and is told of the others.

See the package for a suggestion's life, step by step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from codespec.config import CompletionSettings, Settings
from codespec.daemon.address import leads_elsewhere
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.wire import StateChanged
from codespec.edit import Edit
from codespec.requests import Completion
from codespec.usage.statistics import Stats
from codespec.usage.suppression import PlaceKind

from ..documents import Snapshot
from ..status import words_of
from .answers import Answer, Ask
from .document_state import DocumentState
from .eligibility import Eligibility, kind_of
from .in_flight import SuggestionInFlight
from .kept import KeptSuggestions
from .offers import Offers
from .prefill_ahead import PrefillAhead
from .shown import Grown, ShownSuggestion
from .suggestion import Suggestion
from .typed_along import going_on, may_fit, rest_of

_READY = "completion.trigger is subtle: a suggestion is ready, and a key shows it"
_NOT_WANTED = "a newer request, other settings or the document's end came first"
# Seconds until a cancelled request's generation ends: the editor may be about to ask again, for
# text that was typed along.
_GRACE_S = 0.02


class Session:
    """The suggestions of one editor window, on one event loop."""

    def __init__(
        self,
        settings: Settings,
        on_state: Callable[[StateChanged], None],
        lines_of: Callable[[str, int, int], str],
        on_generated: Callable[[Completion], None] = lambda _: None,
        on_grown: Grown | None = None,
    ) -> None:
        """on_state: told of each state of the daemon.
        lines_of: (uri, first, last) to the text of these lines of an open document, or "".
        on_generated: told of every generation when it ended, also of unwanted ones.
        on_grown: told of growth of the shown suggestion; None where the editor cannot show that.
        """
        self.settings = settings
        self._on_state = on_state
        self._on_generated = on_generated
        self._state = StateChanged(state="starting")
        self._model = ""
        self.client = AsyncClient(settings, self._state_changed)
        self._kept = KeptSuggestions()
        self._documents: dict[str, DocumentState] = {}
        self._shown = ShownSuggestion(on_grown)
        self._prefill = PrefillAhead(self._read_ahead)
        self._lines_of = lines_of
        self._numbers = count(1)
        self._ending: set[asyncio.Task[None]] = set()
        self._offers = self._new_offers()
        self.eligibility = Eligibility(settings, self._offers)

    def _new_offers(self) -> Offers:
        stats = Stats() if self.settings.stats.enabled else None
        return Offers(stats, self._lines_of, self._numbers)

    def start(self) -> None:
        """Begin to start or join the daemon, and to read the user's habits."""
        self.client.connect()
        self._offers.start()

    def configure(self, settings: Settings) -> None:
        """Other settings from now on; with another model, of another daemon.

        Raises: ConfigError, DaemonError; then everything is as it was.
        """
        is_moved = leads_elsewhere(settings, self.settings)
        before, self.settings = self.settings, settings
        for document in self._documents.values():
            document.end_turn()
            self._end_generation(document)
        self._kept.clear()
        if is_moved:
            self._end(self.client)
            self.client = AsyncClient(settings, self._state_changed)
            self.client.connect()
        if settings.stats != before.stats:
            self._end(self._offers)
            self._offers = self._new_offers()
            self._offers.start()
        self.eligibility = Eligibility(settings, self._offers)
        self._on_state(self.eligibility.remarked(self._state))

    def _end(self, old: AsyncClient | Offers) -> None:
        """Close it in the background: nobody waits for it."""
        task = asyncio.ensure_future(old.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    # --- asked ------------------------------------------------------------------------------

    async def suggest(self, ask: Ask) -> Answer:
        """The answer, within the deadline of the settings, empty if need be; at once when a newer
        request for the document comes. Cancelling the task cancels the request."""
        started = asyncio.get_running_loop().time()
        document = self._documents.setdefault(ask.snapshot.uri, DocumentState())
        document.end_turn()
        turn = document.turn = asyncio.get_running_loop().create_future()
        self._prefill.cancel()
        document.end_grace()
        document.is_ahead, document.to_follow = False, None
        self._shown.end()
        try:
            answer = await self._answer(ask, document, turn)
        except asyncio.CancelledError:
            if document.turn is turn and not document.is_ahead:
                document.grace = asyncio.get_running_loop().call_later(
                    _GRACE_S, self._end_generation, document
                )
            raise
        self._offers.made(ask, answer, (asyncio.get_running_loop().time() - started) * 1e3)
        grows = bool(answer.offers) and self.is_generating(ask.snapshot.uri)
        if grows and (growing := document.generation) is not None:
            self._shown.begin(ask, growing.suggestion, self._offers, answer.offers[0])
        document.is_ready = answer.is_ready
        if answer.offers and document.has_accepted and self.eligibility.may_work_ahead:
            if grows:
                document.to_follow = ask
            else:
                self._follow(ask, answer.offers[0].edit, document)
        return answer

    async def _answer(
        self, ask: Ask, document: DocumentState, turn: asyncio.Future[None]
    ) -> Answer:
        now = ask.snapshot
        document.next_request.asked(now, invoked=ask.invoked)
        scope, was_ready = self.eligibility.scope_of(ask), document.is_ready
        document.is_ready = False
        if scope.why:
            self._end_generation(document)
            return Answer(paused=scope.why)
        limits = scope.limits
        asked_s = asyncio.get_running_loop().time()
        rest = self._kept.find(now)
        cached = rest is not None and rest.suggestion.done
        wants_more, is_manual = ask.invoked and not was_ready, limits.trigger == "manual"
        if rest is not None and not rest.suggestion.serves(ask.invoked, wants_more, is_manual):
            rest = None
        can_add = wants_more and cached
        if rest is None or (can_add and not rest.suggestion.is_complete):
            if not ask.invoked and (why := await self._why_not_begun(ask, limits, document, turn)):
                return Answer(reason=why)
            cached = False
            suggestion = self._begin(ask, document, limits)
        else:
            suggestion = rest.suggestion
            if suggestion.is_cut and (more := going_on(suggestion, now)) is not None:
                suggestion = self._begin(ask, document, limits, more)
        if not suggestion.done and document.generation is not None:
            await document.generation.wait_for(
                ask,
                turn,
                limits,
                has_some=cached or (ask.invoked and was_ready),
                can_grow=self._shown.can_grow,
                is_model_ready=self._state.state == "ready",
            )
        if turn.done():
            return Answer(reason=_NOT_WANTED)
        begun_s, suggestion.begun_early_s = suggestion.begun_early_s, None
        cached = cached and begun_s is None
        ahead_ms = 0.0 if begun_s is None else (asked_s - begun_s) * 1e3
        left = rest_of(suggestion, now)
        edits = left.edits if left is not None else ()
        if rest is not None and ask.invoked:  # a shown edit stays the first
            edits = tuple(dict.fromkeys((*rest.edits, *edits)))
        if not ask.invoked:  # several to choose from are for users who ask
            edits = edits[:1]
            if edits and suggestion.tally.kind and suggestion.is_below:
                suggestion.tally.kind = PlaceKind.BELOW
                is_offered = suggestion.tally.is_offered
                if not is_offered and (why := self.eligibility.why_habit(now, PlaceKind.BELOW)):
                    return Answer(reason=why)
        if not edits:
            reason = suggestion.reason or self._why_late()
            return Answer(reason=reason, cached=cached).with_times(suggestion, ahead_ms)
        if not ask.invoked and limits.trigger == "subtle" and not self._offers.is_drawn(now):
            return Answer(reason=_READY, is_ready=True).with_times(suggestion, ahead_ms)
        if ask.invoked and was_ready:
            suggestion.tally.kind = None
        offers = tuple(self._offers.make(ask, edit, suggestion.tally) for edit in edits)
        return Answer(offers, cached=cached).with_times(suggestion, ahead_ms)

    async def _why_not_begun(
        self,
        ask: Ask,
        limits: CompletionSettings,
        document: DocumentState,
        turn: asyncio.Future[None],
    ) -> str:
        """The reason not to ask the model for what nobody asked for, "" for none; told once no key
        was pressed for as long as the settings say."""
        why = self.eligibility.why_unasked(ask, limits)
        if why or limits.idle_ms:
            self._end_generation(document)
        if why:
            self.prefetch(ask.snapshot.uri, ask.snapshot.place.line, lambda: ask)
        elif limits.idle_ms:
            await document.idle(limits.idle_ms, turn)
            why = _NOT_WANTED if turn.done() else ""
        return why

    def _why_late(self) -> str:
        if self._state.state != "ready":
            return f"no suggestion by the deadline: {words_of(self._state)}"
        return "no line was finished by the deadline"

    def _state_changed(self, change: StateChanged) -> None:
        if change.model and change.model != self._model:
            if self._model:
                self._kept.clear()  # made by another model
            self._model = change.model
        self._state = change
        self._on_state(self.eligibility.remarked(change))
        self._prefill.ready(change.state == "ready")

    # --- generated --------------------------------------------------------------------------

    def _begin(
        self,
        ask: Ask,
        document: DocumentState,
        limits: CompletionSettings,
        more: Suggestion | None = None,
    ) -> Suggestion:
        """Begin a generation. `limits`: of the document. `more`: a suggestion with the text that
        the model goes on with."""
        self._end_generation(document)
        document.before = None
        self._prefill.asked(ask.snapshot.uri, ask.snapshot.place.line)
        suggestion = Suggestion(ask.snapshot) if more is None else more
        if more is None:
            document.has_accepted = False
            suggestion.has_alternatives = ask.invoked
            suggestion.tally.kind = None if ask.invoked else kind_of(ask.snapshot)
        eagerness = None if ask.invoked else self.eligibility.eagerness(suggestion, limits)
        suggestion.is_restrained = eagerness is not None
        request, linger_ms = ask.request(limits, eagerness), self.eligibility.linger_ms
        document.generation = SuggestionInFlight(
            suggestion,
            self._kept,
            lambda tell: self.client.complete(request, tell, linger_ms),
            self._on_generated,
            self._grew,
        )
        return suggestion

    def _grew(self, suggestion: Suggestion) -> None:
        """The model added lines to it, or finished it."""
        self._shown.grew(suggestion)
        document = self._documents.get(suggestion.base.uri)
        if suggestion.done and document is not None and document.to_follow is not None:
            ask, document.to_follow = document.to_follow, None
            rest = rest_of(suggestion, ask.snapshot)
            if rest is not None and rest.edits and not suggestion.is_cut:
                document.generation = None  # complete; it may still be shown growing to its end
                self._follow(ask, rest.edits[0], document)

    def _end_generation(self, document: DocumentState) -> None:
        document.end_grace()
        document.to_follow = None
        if document.before is not None:
            self._shown.end_if(document.before)
        if document.generation is not None:
            self._shown.end_if(document.generation.suggestion)
            document.generation.end()
        document.generation = None

    # --- before a request -------------------------------------------------------------------

    def key_pressed(self, ask: Ask) -> None:
        """A key left this text: begin with the editor's next request, if that is known."""
        document = self._documents.setdefault(ask.snapshot.uri, DocumentState())
        now = document.next_request.after_key(ask.snapshot)
        if now is None or self._state.state != "ready":
            return
        ask = replace(ask, snapshot=now)
        limits = self.eligibility.early_limits(ask) if self._kept.find(now) is None else None
        if limits is not None:
            suggestion = self._begin(ask, document, limits)
            suggestion.begun_early_s = asyncio.get_running_loop().time()
            document.is_ahead = True

    def prefetch(self, uri: str, line: int, ask_of: Callable[[], Ask | None]) -> None:
        """The user went to a line of a document: have its prompt read while the model is free,
        unless that was done. `ask_of`: the request there, None for none."""
        if self.eligibility.may_work_ahead:
            self._prefill.moved(uri, line, ask_of)

    def _read_ahead(self, ask: Ask) -> None:
        if not self.eligibility.scope_of(ask).why:
            self.client.prefetch(ask.request(self.settings.completion))

    def _follow(self, ask: Ask, edit: Edit, document: DocumentState) -> None:
        """Begin with the suggestion that follows `edit`, which answered `ask` and is accepted or
        likely will be."""
        now = ask.snapshot
        ahead = replace(ask, snapshot=now.after(edit), invoked=False)
        is_new = self._kept.find(ahead.snapshot) is None
        if is_new and (limits := self.eligibility.early_limits(ahead)) is not None:
            self._begin(ahead, document, limits)
            before = self._kept.find(now)
            document.before = before.suggestion if before is not None else None
            document.is_ahead = True
        document.has_accepted = True

    # --- shown, accepted --------------------------------------------------------------------

    def shown(self, offer_id: str) -> None:
        """The editor showed this offer."""
        self._offers.shown(offer_id)

    def partially_accepted(self, offer_id: str, n_units: int) -> None:
        """The first `n_units` UTF-16 units of the offer are accepted by now."""
        self._offers.partially_accepted(offer_id, n_units)

    def accepted(self, offer_id: str) -> None:
        """All of the offer was accepted: it is shown no longer, and the next one is begun."""
        self._shown.end()
        offered = self._offers.accepted(offer_id)
        if offered is not None:
            ask, edit = offered
            document = self._documents.setdefault(ask.snapshot.uri, DocumentState())
            self._follow(ask, edit, document)

    # --- typed along, ended -----------------------------------------------------------------

    def is_generating(self, uri: str) -> bool:
        """True if a generation runs for this document: `changed` is to be told of its changes."""
        document = self._documents.get(uri)
        generation = document.generation if document is not None else None
        return generation is not None and generation.is_running

    def changed(self, now: Snapshot) -> None:
        """The document's text changed to `now`, whose cursor is likely where the change ended, or
        before brackets that it closes. A generation for a text that is no more ends at once."""
        document = self._documents[now.uri]
        growing = document.generation.suggestion if document.generation is not None else None
        if not any(way is not None and may_fit(way, now) for way in (growing, document.before)):
            document.has_accepted = False
            self._end_generation(document)
        else:
            document.is_ahead = True
            document.end_grace()

    def edited(self, uri: str) -> None:
        """The document's text changed just now."""
        document = self._documents.setdefault(uri, DocumentState())
        document.edited_s = asyncio.get_running_loop().time()

    def typed(self, language_id: str, n_chars: int) -> None:
        """Characters came into a document by typing."""
        self._offers.typed(language_id, n_chars)

    def closed(self, uri: str) -> None:
        """The document was closed. The engine is told in any case: it may have read a prompt."""
        document = self._documents.pop(uri, None)
        if document is not None:
            document.end_turn()
            self._end_generation(document)
        self.client.closed(uri)
        self._kept.forget(uri)
        self._offers.forget(uri)
        self._prefill.forget(uri)

    async def close(self) -> None:
        """End all generations and the connection, and store the counts."""
        self._prefill.cancel()
        for document in self._documents.values():
            self._end_generation(document)
        await asyncio.gather(self._offers.close(), self.client.close(), *self._ending)
