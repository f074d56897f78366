"""Conversions between the types of LSP and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codespec.limits import NAME_CHARS

from .documents import SelectedCompletion
from .positions import DocumentPlace, Encoding

if TYPE_CHECKING:
    from pygls.workspace import Workspace

    from .documents import Snapshot
    from .next_edits.next_edit_session import EditOffer
    from .suggestions.answers import Offer

ACCEPTED = "codespec.accepted"
"""The command of an item, which editors run when the item is accepted."""
EDIT_ACCEPTED = "codespec.nextEditAccepted"
"""The command of a next edit, which editors run once it is made."""


def encoding_of(workspace: Workspace) -> Encoding:
    """Units of columns, negotiated at `initialize`."""
    kind = workspace.position_encoding or types.PositionEncodingKind.Utf16
    return types.PositionEncodingKind(kind).value


def place_of(position: types.Position) -> DocumentPlace:
    return DocumentPlace(position.line, position.character)


def selection_of(info: types.SelectedCompletionInfo | None) -> SelectedCompletion | None:
    if info is None:
        return None
    return SelectedCompletion(place_of(info.range.start), place_of(info.range.end), info.text)


def item_of(snapshot: Snapshot, offer: Offer, encoding: Encoding) -> types.InlineCompletionItem:
    """The item of an offer. Its range is always given; its command carries the offer's id."""
    start, end = snapshot.range_of(offer.edit, encoding)
    return types.InlineCompletionItem(
        insert_text=offer.edit.text.replace("\n", snapshot.line_end),
        range=types.Range(
            types.Position(start.line, start.character), types.Position(end.line, end.character)
        ),
        command=types.Command("Completion accepted", ACCEPTED, arguments=[offer.id]),
    )


def edit_of(offer: EditOffer) -> dict[str, Any]:
    """A next edit as Copilot's protocol has it; with `old`, the text that it replaces, and `number`
    of `count`, which one it is."""
    place = offer.place
    return {
        "text": place.text,
        "range": types.Range(
            types.Position(place.start.line, place.start.character),
            types.Position(place.end.line, place.end.character),
        ),
        "textDocument": {"uri": place.uri, "version": place.version},
        "command": types.Command("Next edit accepted", EDIT_ACCEPTED, arguments=[offer.id]),
        "old": offer.edit.old,
        "number": offer.number,
        "count": offer.count,
    }


def offer_id_of(params: Any) -> str:
    """The argument of the command of `params.item`, "" where there is none."""
    command = getattr(getattr(params, "item", None), "command", None)
    arguments = getattr(command, "arguments", None)
    offer_id = arguments[0] if isinstance(arguments, list) and arguments else ""
    return offer_id if isinstance(offer_id, str) and len(offer_id) <= NAME_CHARS else ""
