"""Next edits that a next-edit model writes: the prompt for a moment, and its answer as edits that
are certain enough and fit their document."""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Protocol, TypeVar

from codespec.context.special_tokens import encoded
from codespec.edits.base import LineEdit
from codespec.edits.formats.base import (
    EditedDocument,
    EditPrompt,
    ModelAnswer,
    NextEditFormat,
    earlier_windows,
    edits_in,
    prompt_of,
)
from codespec.engine.generation import Generation
from codespec.engine.next_edit_model import (
    NextEditModel,
    SpeakingEngine,
    format_of,
    without_draft_model,
)
from codespec.engine.next_edits import EditMoment, NextEditFinder
from codespec.engine.turns import Turns
from codespec.next_edit import NextEditRequest, NextEdits, NoNextEdit
from codespec.requests import CompletionRequest, Paused
from codespec.suggest.edited import fits
from codespec.suggest.strangers import Knows
from codespec.system.files import relative
from codespec.types import Tokenizer, Tokens

_E = TypeVar("_E", bound="PromptEngine")

N_PROMPT = 4096
"""Most tokens of a prompt."""
_LEAST_PROMPT = 1024
MOST_OTHERS = 2
"""Other documents in a prompt."""


class PromptEngine(SpeakingEngine, Protocol):
    """An engine that answers whole prompts."""

    tokenizer: Tokenizer

    @property
    def share_read(self) -> float:
        """Share of the usual budget of a prompt that the model reads in time, 0 to 1."""
        ...

    def answering(
        self,
        prompt: Tokens,
        old: Tokens,
        request: CompletionRequest,
        cancelled: Callable[[], bool],
        paused: Paused,
    ) -> Turns[Generation]:
        """Decode greedily after a prompt, with the log-probabilities of what is said. old: the
        answer if nothing changed, to draft from. request: the prompt as text, and limits."""
        ...


class ModelEdits:
    """Finds next edits by the next-edit model. One thread only.

    texts: other open documents that may be shown to a model, for a document. people: those whom the
    user's texts name.
    """

    def __init__(
        self,
        model: NextEditModel[_E],
        finder: NextEditFinder,
        texts: Callable[[CompletionRequest], Sequence[tuple[str, str]]],
        people: Callable[[CompletionRequest], Knows],
    ) -> None:
        self._model, self._finder = model, finder
        self._texts, self._people = texts, people

    def finding(
        self, request: NextEditRequest, cancelled: Callable[[], bool], paused: Paused
    ) -> Turns[NextEdits]:
        """See `requests.ModelEditFinder`."""
        started = time.perf_counter()
        moment = self._finder.moment(request)
        if isinstance(moment, NextEdits):
            return moment
        if not self._model.where:
            return NextEdits(why=NoNextEdit.NO_MODEL)
        engine = self._model.ready()
        if engine is None:
            return NextEdits(why=NoNextEdit.LOADING)
        form = format_of(engine)
        if form is None:
            return NextEdits(why=NoNextEdit.NO_MODEL)
        document = CompletionRequest(request.text, path=request.path, workspace=request.workspace)
        others, knows = self._texts(document), self._people(document)
        answer_of = partial(self._finder.answer, in_order=True)
        found = yield from model_edits(
            engine, form, moment, others, knows, answer_of, cancelled, paused
        )
        return replace(found, ms=(time.perf_counter() - started) * 1e3)


def model_edits(
    engine: PromptEngine,
    form: NextEditFormat,
    moment: EditMoment,
    others: Sequence[tuple[str, str]],
    knows: Knows,
    answer_of: Callable[[EditMoment, Sequence[LineEdit]], NextEdits],
    cancelled: Callable[[], bool],
    paused: Paused,
) -> Turns[NextEdits]:
    """Ask a next-edit model. others: (path, text) of other documents to show, best first. knows:
    people whom the user's texts name. answer_of: chooses among the edits that the model made."""
    request = moment.request
    document = _document(moment, others, _budget(engine))
    prompt = prompt_of(form, document)
    if prompt is None:
        return NextEdits(why=NoNextEdit.NO_WINDOW)
    ids = engine.special_tokens
    tokens, old = (
        encoded(parts, ids, engine.tokenizer) for parts in (prompt.parts, prompt.unchanged)
    )
    if len(tokens) >= engine.info.n_ctx:  # text of more tokens than its characters tell
        return NextEdits(why=NoNextEdit.NO_WINDOW)
    asked = CompletionRequest(
        prefix="".join(prompt.parts),
        workspace=request.workspace,
        max_tokens=prompt.max_tokens,
        drafters=without_draft_model(engine.settings),
        deadline_ms=request.deadline_ms,
        stop=prompt.ends,
        verbatim=True,
        raw=True,
        lends=False,
    )
    made = yield from engine.answering(tokens, old, asked, cancelled, paused)
    if made.finish in ("deadline", "cancelled"):
        is_late = made.finish == "deadline"
        return NextEdits(why=NoNextEdit.NO_TIME if is_late else NoNextEdit.CANCELLED)
    spelled = {token: text.encode() for text, token in ids.items()}
    pieces = [spelled.get(t) or engine.tokenizer.piece(t) for t in made.tokens]
    answer = ModelAnswer(b"".join(pieces).decode("utf-8", "replace"), made.finish != "stop")
    earlier = earlier_windows(document, prompt.line, len(prompt.old))
    found = edits_in(form, prompt, answer, request.path, earlier)
    if not found:
        return NextEdits(why=NoNextEdit.NOTHING_TO_CHANGE)
    sure = certain(found, prompt, pieces, made.log_probs or [])
    lines = document.lines
    fitting = [
        edit
        for edit in sure
        if fits(edit.path, lines, edit.line, len(edit.old), edit.new, request.language_id, knows)
    ]
    return answer_of(moment, fitting)


def certain(
    edits: Sequence[LineEdit],
    prompt: EditPrompt,
    pieces: Sequence[bytes],
    log_probs: Sequence[float],
) -> list[LineEdit]:
    """The edits with the model's certainty as their chance: the geometric mean of the probabilities
    of the tokens that wrote an edit's lines, or, where it only deletes, the line that follows; of
    the whole answer, where these cannot be told apart. 0 where probabilities are not known.

    pieces: bytes of the answer's tokens. log_probs: of each, and of the token that ended it.
    """
    raw, head = b"".join(pieces), prompt.prefill.encode()
    ends = list(accumulate(map(len, pieces), initial=0))[1:]
    told, at = head + raw, 0
    chances: dict[LineEdit, float] = {}
    for edit in sorted(edits, key=lambda edit: edit.line):
        after = edit.line - prompt.line + len(edit.old)
        rows = edit.new or prompt.old[after : after + 1]
        text = "\n".join(rows).encode()
        start = told.find(text, at)
        first, last = 0, len(pieces)
        if text and start >= 0:
            at = start + len(text)
            first = bisect_right(ends, max(0, start - len(head)))
            last = bisect_right(ends, max(0, at - 1 - len(head))) + 1
        known = log_probs[first:last]
        chances[edit] = math.exp(sum(known) / len(known)) if known else 0.0
    return [replace(edit, chance=chances[edit]) for edit in edits]


def _budget(engine: PromptEngine) -> int:
    """Tokens of a prompt: what the context holds beside the answer, and the model reads in time."""
    n_readable = max(_LEAST_PROMPT, int(N_PROMPT * engine.share_read))
    return min(N_PROMPT, n_readable, engine.info.n_ctx * 3 // 4)


def _document(
    moment: EditMoment, others: Sequence[tuple[str, str]], n_tokens: int
) -> EditedDocument:
    """The moment's document as a format takes it: paths from the workspace's folder."""
    request = moment.request

    def name(path: str) -> str:
        root = request.workspace or os.path.dirname(request.path)
        return relative(path, root).replace(os.sep, "/")

    return EditedDocument(
        name(request.path),
        request.text,
        request.cursor,
        tuple(replace(change, path=name(change.path)) for change in moment.changes),
        tuple((name(path), text) for path, text in others[:MOST_OTHERS]),
        n_tokens,
    )
