"""The suggestion that an editor would get if a model said a given text: no model is needed."""

from __future__ import annotations

import msgspec

from codespec.backends.byte_tokens import ByteTokenizer
from codespec.engine.generation import generation_at
from codespec.engine.known_people import KnownPeople
from codespec.errors import InputError
from codespec.requests import CompletionRequest
from codespec.syntax.trees import TreeCache
from codespec.types import NO_TOKENS, Context, Finish, Trace

MAX_TEXT = 20_000
"""Characters; models are asked for less."""


class FinishedText(msgspec.Struct, frozen=True, kw_only=True):
    """A given text once it is finished for its place.

    text: to be inserted at the cursor, "" for nothing.
    replaces: text behind the cursor whose place it takes; "" as of now, as all edits that are made
        for a text as it is are insertions.
    trimmed: changes of the given text, in order, for people.
    by_rule: keys of the same changes, see `reasons.Trimming`.
    shape, shape_why: how much is suggested at this place, and why.
    """

    text: str
    replaces: str
    trimmed: list[str]
    by_rule: list[str]
    shape: str
    shape_why: str


def finish_text(request: CompletionRequest, text: str, ended: Finish) -> FinishedText:
    """Finish `text` as the output of a model for `request`: read sign by sign until the rules end
    it, then trimmed and made to fit. Of people, the document and git name those that are known.

    ended: the cause of its end, if the rules do not end it before.

    Raises: InputError for a text of more than MAX_TEXT characters.
    """
    if len(text) > MAX_TEXT:
        raise InputError(
            f"the text has {len(text)} characters", f"Give {MAX_TEXT} at most: models say less."
        )
    tokenizer, trace = ByteTokenizer(), Trace()
    context, knows = Context(NO_TOKENS), KnownPeople(request, tokenizer)
    trees = TreeCache()
    made = generation_at(request, context, request.path, trees, tokenizer, trace, knows)
    stop = made.ends(tokenizer)
    emitted: list[int] = []
    for character in text:
        emitted += character.encode()
        if stop(emitted):
            ended = "stop"
            break
    finished = made.finished(bytes(emitted), ended)
    edit = finished.edit
    at = request.start + len(request.prefix)
    return FinishedText(
        text=edit.text if edit is not None else "",
        replaces=request.suffix[: edit.end - at] if edit is not None else "",
        trimmed=[trimming.text for trimming in finished.trimmed],
        by_rule=[trimming.value for trimming in finished.trimmed],
        shape=trace.shape,
        shape_why=trace.shape_why.text if trace.shape_why else "",
    )
