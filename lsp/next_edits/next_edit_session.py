"""One editor's next edits."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

from codespec.config import EditsSettings, Settings
from codespec.edits.typed_edits import Typed, typed
from codespec.limits import FILES
from codespec.next_edit import BARS, Dismissed, NextEdit, NextEditRequest, NextEdits, NoNextEdit
from codespec.rules.exclusion import text_of
from codespec.rules.open_files import OpenFileRules
from codespec.syntax.text import normalise
from codespec.system.power import PowerSource
from codespec.usage.statistics import Stats

from ..documents import Document
from ..positions import Encoding
from ..uris import path_of
from .look_ahead import LookAhead
from .passed_over import as_dismissed, is_made, stands, without
from .places import EditPlace, placed

MAX_LISTED = 100
"""Edits that an editor gets which asks for all places."""
_MAX_OFFERS = 256
_MAX_COUNTED = 1024
_MAX_UNDONE = 32
"""Accepted edits whose undoing is looked for, the last ones."""
_AGAIN_S = 1.0
"""Seconds until a model that is being loaded is asked again."""
_LOADING_S = 120.0
"""Seconds for which it is asked again."""

_NOT_FOR_MODELS = (NoNextEdit.NOTHING_EDITED, NoNextEdit.EXCLUDED, NoNextEdit.NO_FILE)
"""Reasons for no repeats that hold for a model, too."""


class Find(Protocol):
    """Asks the daemon for next edits. with_model: the next-edit model is asked, too slow to be
    asked first."""

    def __call__(
        self, request: NextEditRequest, with_model: bool = False
    ) -> Awaitable[NextEdits]: ...


@dataclass(frozen=True, slots=True)
class EditAsk:
    """A question of an editor, with the document as it is then.

    line: the cursor's, from 0.
    everywhere: True if the editor shows edits of other documents, too.
    n_most: most edits of the answer.
    """

    uri: str
    path: str
    workspace: str
    language_id: str
    version: int
    text: str
    cursor: int
    line: int
    everywhere: bool
    n_most: int = 1


@dataclass(frozen=True, slots=True)
class EditOffer:
    """An edit that the editor may show. number, count: which one it is of how many places, those
    that were accepted before included."""

    id: str
    edit: NextEdit
    place: EditPlace
    asked: EditAsk
    number: int
    count: int


@dataclass(frozen=True, slots=True)
class EditAnswer:
    """The offers, best first. why: the reason for none. ms: in the engine."""

    offers: tuple[EditOffer, ...] = ()
    why: str = ""
    ms: float = 0.0

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """The answer's figures, for programs that measure."""
        return {"next_edits": {"n_offers": len(self.offers), "engine_ms": self.ms}}

    @property
    def words(self) -> str:
        """The answer in a sentence for traces, without source text."""
        if not self.offers:
            return f"no next edit: {self.why}"
        first = self.offers[0]
        return (
            f"next edit {first.number} of {first.count} in line {first.place.start.line + 1}, "
            f"{first.edit.kind}, {first.edit.chance:.2f} likely, {self.ms:.2f} ms in the engine"
        )


class NextEditSession:
    """The next edits of one editor window, on one event loop."""

    def __init__(
        self, find: Find, documents: Mapping[str, Document], encoding: Callable[[], Encoding]
    ) -> None:
        """find: asks the daemon. documents: those that are open, by URI."""
        self._find = find
        self._documents = documents
        self._encoding = encoding
        self._numbers = count(1)
        self._offers: OrderedDict[str, EditOffer] = OrderedDict()
        self._current: EditOffer | None = None
        self._passing: EditOffer | None = None  # of which a beginning is typed, maybe elsewhere
        self._shown: OrderedDict[Dismissed, bool] = OrderedDict()  # and if it was accepted
        self._dismissed: OrderedDict[Dismissed, EditOffer] = OrderedDict()
        self._series = "", 0  # kind, accepted edits of it in a row
        self._accepted_last: deque[EditOffer] = deque(maxlen=_MAX_UNDONE)
        self._ahead = LookAhead(find)
        self.configure(Settings())

    def configure(self, settings: Settings) -> None:
        """Other settings from now on."""
        self._settings = settings
        self._rules = OpenFileRules(settings.index.exclude)
        self._power = PowerSource(settings.daemon.power)
        self._stats = Stats() if settings.stats.enabled else None

    async def propose(self, ask: EditAsk) -> EditAnswer:
        """The next edits for a question, within the deadline of a suggestion."""
        limits, why = self._scope(ask)
        if why:
            return EditAnswer(why=why)
        request = self._request(ask, limits)
        found = await self._ahead.find(request)
        if self._may_ask_model(ask, found):
            found = await self._of_model(ask, self._patient(request))
        document = self._documents.get(ask.uri)
        if document is None or document.version != ask.version:
            return EditAnswer(why="the document changed meanwhile")
        return self._offered(ask, found)

    async def _of_model(self, ask: EditAsk, request: NextEditRequest) -> NextEdits:
        """The answer of the next-edit model. While it is being loaded it is asked again, as long as
        the document stays as it is."""
        until = time.monotonic() + _LOADING_S
        found = await self._find(request, with_model=True)
        while found.why is NoNextEdit.LOADING and time.monotonic() < until:
            await asyncio.sleep(_AGAIN_S)
            if not self._may_ask_model(ask, found):
                break
            found = await self._find(request, with_model=True)
        return found

    def _may_ask_model(self, ask: EditAsk, found: NextEdits) -> bool:
        """True where there is a next-edit model, and nothing to repeat for the document as it still
        is. A model proposes one edit, not all places, and takes power that a battery saves."""
        document = self._documents.get(ask.uri)
        is_there = document is not None and document.version == ask.version
        is_open = not found.edits and found.why not in _NOT_FOR_MODELS
        is_wanted = bool(self._settings.edits.model) and ask.n_most == 1 and not self._power.saves
        return is_wanted and is_there and is_open

    def _patient(self, request: NextEditRequest) -> NextEditRequest:
        """The request as a model has time for it."""
        chosen = self._settings.completion
        return replace(request, deadline_ms=chosen.deadline_invoked_ms + chosen.linger_ms)

    def _offered(self, ask: EditAsk, found: NextEdits) -> EditAnswer:
        kind, n_done = self._series
        if not found.edits or found.edits[0].kind != kind:
            n_done = 0
        offers: list[EditOffer] = []
        for edit in found.edits:
            place = placed(edit, self._documents, self._encoding())
            if place is not None and (ask.everywhere or place.uri == ask.uri):
                number = n_done + len(offers) + 1
                n_all = n_done + max(found.n_left, len(found.edits))
                offers.append(EditOffer(f"e{next(self._numbers)}", edit, place, ask, number, n_all))
        for offer in offers:
            self._offers[offer.id] = offer
        while len(self._offers) > _MAX_OFFERS:
            self._offers.popitem(last=False)
        if ask.n_most == 1:
            self._current = offers[0] if offers else None
            if self._passing is not None and self._current is not None:
                is_same = _as_dismissed(self._passing) == _as_dismissed(self._current)
                self._passing = None if is_same else self._passing
        why = "" if offers else found.reason or NoNextEdit.NO_PLACE.text
        return EditAnswer(tuple(offers), why, found.ms)

    def _scope(self, ask: EditAsk) -> tuple[EditsSettings, str]:
        """The settings for a document, less what its workspace asks for, and why it gets none."""
        edits = self._settings.edits
        ruling = self._rules.ruling(ask.path, ask.workspace, ask.language_id)
        edits = edits.restrained(ruling.edits)
        if not edits.enabled:
            return edits, "edits.enabled is off"
        if ask.language_id in self._settings.completion.disabled_languages:
            return edits, f"switched off for {ask.language_id} in the settings"
        if not ask.path:
            return edits, NoNextEdit.NO_FILE.text
        return edits, text_of(ruling.exclusion)

    def _request(self, ask: EditAsk, limits: EditsSettings) -> NextEditRequest:
        is_near = not ask.everywhere and limits.where == "workspace"
        return NextEditRequest(
            ask.text,
            ask.cursor,
            ask.path,
            ask.workspace,
            ask.language_id,
            ask.uri,
            ask.version,
            BARS[limits.eagerness],
            "file" if is_near else limits.where,
            ask.n_most,
            tuple(self._dismissed),
            self._settings.completion.deadline_auto_ms,
        )

    # --- what became of it ------------------------------------------------------------------

    def shown(self, offer_id: str) -> None:
        """The editor showed this offer."""
        offer = self._offers.get(offer_id)
        if offer is not None:
            self._count(offer, accepted=False)

    def accepted(self, offer_id: str, ask_of: Callable[[str], EditAsk | None]) -> None:
        """The edit was made, which counts once, however often the editor says so. The next one is
        looked for: ask_of: (uri) to the question about a document as it is now."""
        offer = self._offers.pop(offer_id, None)
        if offer is None:
            return
        self._accepted(offer)
        ask = ask_of(offer.place.uri)
        request = self._request_of(ask and replace(ask, everywhere=offer.asked.everywhere))
        if request is not None:
            self._ahead.begin(request, anywhere=True)

    def dismissed(self, offer_id: str) -> None:
        """The user does not want this edit."""
        offer = self._offers.get(offer_id)
        if offer is not None:
            self._dismiss(offer)

    def changed(self, document: Document) -> None:
        """The text of a document changed. A proposal that was shown and passed over is dismissed,
        unless the user makes the same edit by hand, there or elsewhere."""
        self._look_for_undo(document)
        self._look_for_dismissed(document)
        for offer in (self._passing, self._current):
            if offer is not None and document.uri in (offer.place.uri, offer.asked.uri):
                self._judge(offer, document)

    def look_ahead(self, uri: str, ask_of: Callable[[str], EditAsk | None]) -> None:
        """Find the next edit of a document that changed before the editor asks, which waits a while
        to see if it changes again; not on battery. ask_of: see `accepted`."""
        if self._power.saves:
            self._ahead.drop()
        else:
            self._ahead.begin_soon(lambda: self._request_of(ask_of(uri)))

    def _judge(self, offer: EditOffer, document: Document) -> None:
        text, was_shown = normalise(document.text), _as_dismissed(offer) in self._shown
        if document.uri == offer.place.uri and text == offer.place.made:
            self._let_go(offer)
            if was_shown:
                self._accepted(offer)
            return
        is_there = (document.uri, document.edited.line) == (offer.asked.uri, offer.asked.line)
        if not was_shown or (is_there and offer is not self._passing):
            return
        is_asked = document.uri == offer.asked.uri
        before = offer.asked.text if is_asked else without(offer.edit, offer.place.made)
        how = typed(before, text, offer.edit.old, offer.edit.edit.text)
        if how is Typed.PART:
            self._let_go(offer)
            self._passing = offer
        elif how is Typed.WHOLE:
            self._let_go(offer)
        elif document.uri != offer.place.uri or stands(offer.edit, before, text):
            self._dismiss(offer)

    def closed(self) -> None:
        """A document was closed: its text is that of its file again."""
        self._ahead.drop()

    async def close(self) -> None:
        """End what runs, and store the counts."""
        await self._ahead.close()
        if self._stats is not None:
            await asyncio.to_thread(self._stats.flush)

    def _let_go(self, offer: EditOffer) -> None:
        """Judge an offer no more."""
        self._current = None if self._current is offer else self._current
        self._passing = None if self._passing is offer else self._passing

    def _accepted(self, offer: EditOffer) -> None:
        self._dismissed.pop(_as_dismissed(offer), None)
        self._count(offer, accepted=True)
        self._current = self._passing = None
        last = self._accepted_last[-1].place if self._accepted_last else None
        # The editor says so, and its text.
        if last is None or (last.uri, last.made) != (offer.place.uri, offer.place.made):
            kind, n_done = self._series
            self._series = offer.edit.kind, n_done + 1 if kind == offer.edit.kind else 1
            self._accepted_last.append(offer)

    def _look_for_undo(self, document: Document) -> None:
        """The last accepted edit that still counts is dismissed where its document is again as it
        was before: the user took it back. That says nothing of a later proposal."""
        offer = self._accepted_last[-1] if self._accepted_last else None
        if offer is None or document.uri != offer.place.uri:
            return
        if normalise(document.text) == without(offer.edit, offer.place.made):
            self._accepted_last.pop()
            self._current = self._passing = None
            kind, n_done = self._series
            self._dismiss(offer)
            self._series = kind, max(n_done - 1, 0)

    def _look_for_dismissed(self, document: Document) -> None:
        """A dismissed edit that the user makes by hand counts as made, and is dismissed no more."""
        path = path_of(document.uri)
        for key, offer in [each for each in self._dismissed.items() if each[0].path == path]:
            if is_made(key, document):
                del self._dismissed[key]
                self._count(offer, accepted=True)

    def _dismiss(self, offer: EditOffer) -> None:
        self._let_go(offer)
        self._series = "", 0
        self._dismissed[_as_dismissed(offer)] = offer
        if len(self._dismissed) > FILES:
            self._dismissed.popitem(last=False)

    def _count(self, offer: EditOffer, accepted: bool) -> None:
        """Count an edit once, however often it is offered."""
        key = _as_dismissed(offer)
        was = self._shown.get(key)
        if was is not None and was >= accepted:
            return
        self._shown[key] = accepted
        if len(self._shown) > _MAX_COUNTED:
            self._shown.popitem(last=False)
        if self._stats is not None:
            language, kind = offer.asked.language_id, offer.edit.kind
            self._stats.next_edit(language, kind, n_shown=was is None, n_accepted=accepted)

    def _request_of(self, ask: EditAsk | None) -> NextEditRequest | None:
        """A question that the editor has not asked yet; None for one that would get no answer."""
        if ask is None:
            return None
        limits, why = self._scope(ask)
        return None if why else self._request(ask, limits)


def _as_dismissed(offer: EditOffer) -> Dismissed:
    return as_dismissed(offer.edit, offer.place.made)
