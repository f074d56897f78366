"""One editor's completions: from a snapshot of a document to edits of it. No LSP types.

For each document there is at most one request that waits and one generation that runs. A newer
request takes the waiting one's place. The generation goes on as long as what is typed agrees with
what it said; otherwise it ends, and a new one begins. When a request's time is over it gets the
finished lines, and the rest goes into the suggestions that are kept. A slow model may have finished
none by then: the first one comes late, to an editor that has not asked again. Where an editor can
show more of a suggestion as it comes, it gets the first lines soon and is told of the others.

Editors wait a moment after a key before they ask. Where one has asked after the last key, the
generation begins with the next one and runs meanwhile. Who has just taken a suggestion may take the
next one, too: what comes after that is asked for while it is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from codespec.config import Settings
from codespec.daemon.address import address_of
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.wire import StateChanged
from codespec.edit import Edit
from codespec.errors import CodespecError
from codespec.index.openfiles import OpenFileRules
from codespec.occasions import BELOW, kind_of_place, why_unwelcome
from codespec.requests import Completion
from codespec.stats import Stats

from .ahead import Ahead
from .answers import Answer, Ask
from .documents import Snapshot
from .generation import Generation
from .growth import Grown, Growth
from .offers import Offers
from .status import words_of
from .suggestions import Suggestion, Suggestions, going_on, may_fit, rest_of
from .underway import Underway

# Of the deadline, for our own way back to the editor.
_MARGIN_S = 0.005
# Of the deadline: where a suggestion may grow, all of it is waited for so long.
_ALL = 0.25
# An editor that cancels may be about to ask again for text that was typed along.
_GRACE_S = 0.02


class Session:
    """On one event loop."""

    def __init__(
        self,
        settings: Settings,
        on_state: Callable[[StateChanged], None],
        lines_of: Callable[[str, int, int], str],
        on_generated: Callable[[Completion], None] = lambda _: None,
        on_grown: Grown | None = None,
    ) -> None:
        """`lines_of(uri, first, last)`: text of an open document, "" if it is not. `on_generated`:
        told of every generation when it ended, those that nobody wanted any more, too. `on_grown`:
        of more of a suggestion that is shown; None where the editor cannot show that."""
        self.settings = settings
        self._on_state = on_state
        self._on_generated = on_generated
        self._state = StateChanged(state="starting")
        self._model = ""
        self._client = AsyncClient(settings, self._state_changed)
        self._rules = OpenFileRules(settings.index.exclude)
        self._suggestions = Suggestions()
        self._documents: dict[str, Underway] = {}
        self._growth = Growth(on_grown)
        self._ahead = Ahead(self._read_ahead)
        self._lines_of = lines_of
        self._numbers = count(1)
        self._ending: set[asyncio.Task[None]] = set()
        self._offers = self._new_offers()

    def _new_offers(self) -> Offers:
        stats = Stats() if self.settings.stats.enabled else None
        return Offers(stats, self._lines_of, self._numbers)

    def start(self) -> None:
        """Begin to start or join the daemon, and to read the user's habits."""
        self._client.connect()
        self._offers.start()

    def configure(self, settings: Settings) -> None:
        """Other settings from now on; with another model, of another daemon.

        Raises: ConfigError, DaemonError; then everything is as it was.
        """
        leads_elsewhere = self._leads_elsewhere(settings)
        before, self.settings = self.settings, settings
        self._rules = OpenFileRules(settings.index.exclude)
        for document in self._documents.values():
            document.end_turn()
            self._end_generation(document)
        self._suggestions.clear()
        if leads_elsewhere:
            self._end(self._client)
            self._client = AsyncClient(settings, self._state_changed)
            self._client.connect()
        if settings.stats != before.stats:
            self._end(self._offers)
            self._offers = self._new_offers()
            self._offers.start()

    def _leads_elsewhere(self, settings: Settings) -> bool:
        address = address_of(settings)
        try:
            return address != address_of(self.settings)
        except CodespecError:  # those of the start, which lead nowhere
            return True

    def _end(self, old: AsyncClient | Offers) -> None:
        """In the background: nobody waits for it."""
        task = asyncio.ensure_future(old.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def suggest(self, ask: Ask) -> Answer:
        """Within the deadline of the settings, with nothing if need be, and at once when a newer
        request for the document comes. Cancelling the task cancels the request."""
        started = asyncio.get_running_loop().time()
        document = self._documents.setdefault(ask.snapshot.uri, Underway())
        document.end_turn()
        turn = document.turn = asyncio.get_running_loop().create_future()
        self._ahead.cancel()
        document.end_grace()
        document.went_along, document.reading = False, None
        self._growth.end()
        try:
            answer = await self._answer(ask, document, turn)
        except asyncio.CancelledError:
            if document.turn is turn and not document.went_along:
                document.grace = asyncio.get_running_loop().call_later(
                    _GRACE_S, self._end_generation, document
                )
            raise
        self._offers.made(ask, answer, (asyncio.get_running_loop().time() - started) * 1e3)
        grows = bool(answer.offers) and self.is_growing(ask.snapshot.uri)
        if grows and (growing := document.generation) is not None:
            self._growth.begin(ask, growing.suggestion, self._offers, answer.offers[0])
        if answer.offers and document.is_taking and self.settings.completion.prefetch:
            if grows:
                document.reading = ask
            else:
                self._think_ahead(ask, answer.offers[0].edit, document)
        return answer

    def why_paused(self, uri: str, path: str, workspace: str, language_id: str) -> str:
        """Why this document gets no suggestions, whoever asks; "" where it does."""
        limits = self.settings.completion
        if not limits.enabled:
            return "switched off in the settings"
        if language_id in limits.disabled_languages:
            return f"switched off for {language_id} in the settings"
        name = uri.rpartition("/")[2]
        why = self._rules.why_excluded(path or name, workspace, language_id)
        return f"file {why}" if why.startswith(("ignored by", "excluded by")) else why

    async def _answer(self, ask: Ask, document: Underway, turn: asyncio.Future[None]) -> Answer:
        now = ask.snapshot
        document.foresight.asked(now, invoked=ask.invoked)
        if why := self.why_paused(now.uri, ask.path, ask.workspace, now.language_id):
            self._end_generation(document)
            return Answer(paused=why)
        asked_s = asyncio.get_running_loop().time()
        rest = self._suggestions.find(now)
        cached = rest is not None and rest.suggestion.done
        if rest is None or (ask.invoked and cached and not rest.suggestion.is_all):
            if not ask.invoked and (why := _why_unwelcome(now) or self._habit(now, _kind_of(now))):
                self._end_generation(document)
                self.prefetch(now.uri, now.place.line, lambda: ask)
                return Answer(reason=why)
            cached = False
            suggestion = self._begin(ask, document)
        else:
            suggestion = rest.suggestion
            if suggestion.is_cut and (more := going_on(suggestion, now)) is not None:
                suggestion = self._begin(ask, document, more)
        if not suggestion.done and document.generation is not None:
            limits = self.settings.completion
            due_s = max(0.001, limits.deadline_ms(ask.invoked) / 1e3 - _MARGIN_S)
            line_s = None if limits.show_late and self._state.state == "ready" else due_s
            may_grow = self._growth.is_shown and not ask.invoked
            all_s = _ALL * due_s if may_grow else due_s
            if cached:  # there is something to show at once
                all_s = 0.0
            await document.generation.wait(now, turn, all_s, line_s)
        if turn.done():
            return Answer(reason="a newer request, other settings or the document's end came first")
        begun_s, suggestion.foreseen_s = suggestion.foreseen_s, None
        cached = cached and begun_s is None
        ahead_ms = 0.0 if begun_s is None else (asked_s - begun_s) * 1e3
        left = rest_of(suggestion, now)
        edits = left.edits if left is not None else ()
        if rest is not None and ask.invoked:  # what is shown already stays first
            edits = tuple(dict.fromkeys((*rest.edits, *edits)))
        if not ask.invoked:  # several to choose from are for who asks
            edits = edits[:1]
            if edits and suggestion.tally.kind and suggestion.is_below:
                suggestion.tally.kind = BELOW
                if not suggestion.tally.is_offered and (why := self._habit(now, BELOW)):
                    return Answer(reason=why)
        if not edits:
            reason = suggestion.reason or self._why_late()
            return Answer(reason=reason, cached=cached).with_times(suggestion, ahead_ms)
        offers = tuple(self._offers.make(ask, edit, suggestion.tally) for edit in edits)
        return Answer(offers, cached=cached).with_times(suggestion, ahead_ms)

    def foresee(self, ask: Ask) -> None:
        """A key left this text: begin with what the editor is about to ask, where it does."""
        document = self._documents.setdefault(ask.snapshot.uri, Underway())
        now = document.foresight.typed(ask.snapshot)
        if now is None or self._state.state != "ready":
            return
        is_known = self._suggestions.find(now) is not None
        if is_known or self.why_paused(now.uri, ask.path, ask.workspace, now.language_id):
            return
        adapts, kind = self.settings.completion.adaptive, _kind_of(now)
        is_hopeless = adapts and self._offers.is_hopeless(now.language_id, kind)
        if not is_hopeless and not _why_unwelcome(now):
            suggestion = self._begin(replace(ask, snapshot=now), document)
            suggestion.foreseen_s = asyncio.get_running_loop().time()
            document.went_along = True

    def _habit(self, now: Snapshot, kind: str) -> str:
        """The habit against suggesting anything unasked."""
        if not self.settings.completion.adaptive:
            return ""
        return self._offers.why_not(now.language_id, kind)

    def _why_late(self) -> str:
        if self._state.state != "ready":
            return f"no suggestion by the deadline: {words_of(self._state)}"
        return "no line was finished by the deadline"

    def _state_changed(self, change: StateChanged) -> None:
        if change.model and change.model != self._model:
            if self._model:
                self._suggestions.clear()  # of another model
            self._model = change.model
        self._state = change
        self._on_state(change)
        self._ahead.ready(change.state == "ready")

    # --- generations ------------------------------------------------------------------------

    def _begin(self, ask: Ask, document: Underway, more: Suggestion | None = None) -> Suggestion:
        """`more`: of a suggestion that is known, for the model to go on with."""
        self._end_generation(document)
        document.read = None
        self._ahead.asked(ask.snapshot.uri, ask.snapshot.place.line)
        suggestion = Suggestion(ask.snapshot) if more is None else more
        if more is None:
            document.is_taking = False
            suggestion.has_alternatives = ask.invoked
            suggestion.tally.kind = "" if ask.invoked else _kind_of(ask.snapshot)
        limits = self.settings.completion
        request, linger_ms = ask.request(limits), limits.linger_ms
        document.generation = Generation(
            suggestion,
            self._suggestions,
            lambda tell: self._client.complete(request, tell, linger_ms),
            self._on_generated,
            self._said,
        )
        return suggestion

    def _said(self, suggestion: Suggestion) -> None:
        """More of it, or all."""
        self._growth.more(suggestion)
        document = self._documents.get(suggestion.base.uri)
        if suggestion.done and document is not None and document.reading is not None:
            ask, document.reading = document.reading, None
            rest = rest_of(suggestion, ask.snapshot)
            if rest is not None and rest.edits and not suggestion.is_cut:
                document.generation = None  # which is all there, and may grow to that
                self._think_ahead(ask, rest.edits[0], document)

    def _end_generation(self, document: Underway) -> None:
        document.end_grace()
        document.reading = None
        if document.read is not None:
            self._growth.end_of(document.read)
        if document.generation is not None:
            self._growth.end_of(document.generation.suggestion)
            document.generation.end()
        document.generation = None

    def prefetch(self, uri: str, line: int, ask_of: Callable[[], Ask | None]) -> None:
        """The user went to a line of a document: read its prompt while the model is free, unless
        that was done. `ask_of`: what would be asked there, None for nothing."""
        if self.settings.completion.prefetch:
            self._ahead.moved(uri, line, ask_of)

    def _read_ahead(self, ask: Ask) -> None:
        now = ask.snapshot
        if not self.why_paused(now.uri, ask.path, ask.workspace, now.language_id):
            self._client.prefetch(ask.request(self.settings.completion))

    # --- what became of an offer ------------------------------------------------------------

    def shown(self, offer_id: str) -> None:
        self._offers.shown(offer_id)

    def partially_accepted(self, offer_id: str, n_units: int) -> None:
        """`n_units`: how much up to now, in units of UTF-16."""
        self._offers.partially_accepted(offer_id, n_units)

    def accepted(self, offer_id: str) -> None:
        """All of it was."""
        self._growth.end()
        offered = self._offers.accepted(offer_id)
        if offered is not None:
            ask, edit = offered
            document = self._documents.setdefault(ask.snapshot.uri, Underway())
            self._think_ahead(ask, edit, document)

    def _think_ahead(self, ask: Ask, edit: Edit, document: Underway) -> None:
        """So that what comes after `edit` is there when it is asked for."""
        now = ask.snapshot
        if self.why_paused(now.uri, ask.path, ask.workspace, now.language_id):
            return
        ahead = replace(ask, snapshot=now.after(edit), invoked=False)
        if self._suggestions.find(ahead.snapshot) is None and not _why_unwelcome(ahead.snapshot):
            self._begin(ahead, document)
            before = self._suggestions.find(now)
            document.read = before.suggestion if before is not None else None
            document.went_along = True
        document.is_taking = True

    # --- documents --------------------------------------------------------------------------

    def is_growing(self, uri: str) -> bool:
        """Whether a generation runs for this document, and `changed` wants to know of changes."""
        document = self._documents.get(uri)
        generation = document.generation if document is not None else None
        return generation is not None and generation.is_running

    def changed(self, now: Snapshot) -> None:
        """The text is other than it was; the cursor is likely where the change ended, or before
        brackets that it closes. What runs for a text that is no more ends at once."""
        document = self._documents[now.uri]
        growing = document.generation.suggestion if document.generation is not None else None
        if not any(way is not None and may_fit(way, now) for way in (growing, document.read)):
            document.is_taking = False
            self._end_generation(document)
        else:
            document.went_along = True
            document.end_grace()

    def typed(self, language_id: str, n_chars: int) -> None:
        """Characters came into a document by typing."""
        self._offers.typed(language_id, n_chars)

    def closed(self, uri: str) -> None:
        """The document is no longer open. One that was only read ahead is known to the engine,
        too."""
        document = self._documents.pop(uri, None)
        if document is not None:
            document.end_turn()
            self._end_generation(document)
        self._client.closed(uri)
        self._suggestions.forget(uri)
        self._offers.forget(uri)
        self._ahead.forget(uri)

    async def close(self) -> None:
        self._ahead.cancel()
        for document in self._documents.values():
            self._end_generation(document)
        await asyncio.gather(self._offers.close(), self._client.close(), *self._ending)


def _kind_of(now: Snapshot) -> str:
    return kind_of_place(now.prefix, now.suffix)


def _why_unwelcome(now: Snapshot) -> str:
    return why_unwelcome(now.suffix, now.after_deletion)
